"""Models that answer the last thing that was said: what agents are tried with.

A playbook has pages, each under a capital letter. After any prompt the model plays the page of the last
capital in it, so a conversation's last turn decides, whatever stands before: a question about Oslo is
answered with page O, say a call; that function's result "Sunny" with page S. A page may begin with a
thought, which is skipped where the prompt ends with a blank line, as templates write it behind an empty
thought.

How it works. As in a scripted model of order 2 (see `scripted`) the layer's attention copies the class of
one earlier token beside that of the last; here it is the last *cue*: a capital, or the token behind a call's
marker. Only cues have keys, all the same, and all pairs of a head turn slowly and almost alike, so the score
falls with the distance and the nearest cue wins. That is bounded twice: over `CONTEXT` tokens the turn must
not come round, and rounding keys to 16 bits costs about half a token of distance, so that cues within
`APART` tokens of each other cannot be told apart. Pages are checked for that, prompts are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tests.zoo.architectures import Shape
from tests.zoo.gguf_file import Tensor, write
from tests.zoo.script import Next, S, Script, State
from tests.zoo.scripted import HEAD, ROPE_BASE, classes_of, count_of, matrices, pair_logits, shape_of, silent
from tests.zoo.spelling import Spelling
from tests.zoo.vocabulary import EOG, EOS, N_BASE, Token, base

CONTEXT: Final = 8192
"""Tokens of the trained context. A page's capital is found up to 1500 tokens before the prompt's end."""
APART: Final = 4
_TURN: Final = 5e-4  # radians a token
_LEAN: Final = 0.5  # radians between a query and a key at the same place: there the score falls already
_AMPLITUDE: Final = 245.0  # of queries and of keys, so that one token of distance is worth some 29 in score

Said = bytes | S


@dataclass(frozen=True, slots=True)
class Page:
    """What is said, after a thought. Either all pages of a playbook think, or none does."""

    says: Sequence[Said]
    thinks: bytes = b""


@dataclass(frozen=True)
class Playbook:
    """A table from the last cue and the last token to the next; see `Script`, whose "before" is the cue
    here.
    """

    script: Script
    cues: frozenset[int]

    def follow(self, prompt: Sequence[int], n: int) -> list[int]:
        """The greedy continuation of `prompt`: at most `n` ids, the last an end of generation or the nth."""
        tokens = list(prompt)
        while len(tokens) < len(prompt) + n:
            cue = next((token for token in reversed(tokens) if token in self.cues), None)
            tokens += self.script.after(cue, tokens[-1])
            if tokens[-1] in EOG:
                break
        return tokens[len(prompt) :]


def words(text: str) -> list[Said]:
    """`text` in a token a word."""
    return [word.encode() for word in re.findall(r"\s*\S+", text)]


def call(name: str, arguments: Mapping[str, object]) -> list[Said]:
    """A call as the Qwen family writes it: JSON between two special tokens, a token a member."""
    members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in arguments.items()]
    inside = [member + ", " for member in members[:-1]] + members[-1:]
    pieces = ['\n{"name": ', json.dumps(name), ', "arguments": ', "{", *inside, "}", "}", "\n"]
    return [S("<tool_call>"), *(piece.encode() for piece in pieces), S("</tool_call>")]


def compile_playbook(pages: Mapping[str, Page]) -> Playbook:
    """The playbook of `pages`, by capital. A prompt that ends with no page's capital is answered with "?".

    Raises ValueError for a page that is not under a capital or says nothing, for one whose cues are too near
    to each other, where a cue and a token are followed by two things, and where only some pages think.
    """
    if len({bool(page.thinks) for page in pages.values()}) > 1:
        raise ValueError("either all pages think, or none does")
    writer = _Writer()
    for letter, page in pages.items():
        if len(letter) != 1 or not "A" <= letter <= "Z" or not page.says:
            raise ValueError(f"page {letter!r}: a page is under one capital, and says something")
        writer.page(letter, page)
    at_a_loss = writer.lay([b"?"], None, EOS)
    script = Script(base().extended(writer.tokens), {at_a_loss: 1.0}, writer.states)
    return Playbook(script, frozenset(writer.cues))


class _Writer:
    """Gathers the states, page by page."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        self.states: dict[State, Next] = {}
        self.cues: set[int] = set()
        self._spelling = Spelling(base())

    def page(self, letter: str, page: Page) -> None:
        cue = base().id(letter)
        self.cues.add(cue)
        begun = said = self.lay(page.says, cue, EOS)
        if page.thinks:
            begun = self.lay(
                [S("<think>"), b"\n" + page.thinks + b"\n", S("</think>"), b"\n", b"\n"], cue, said
            )
        self._state(cue, base().id("\n"), begun)
        self._state(cue, base().id("\n\n"), said)

    def lay(self, pieces: Sequence[Said], cue: int | None, then: int) -> int:
        """Lays out `pieces`, and `then` behind them, where `cue` was the last. The first token."""
        ids = [*map(self._token, pieces), then]
        behind_cue = APART
        for at, token in enumerate(ids[:-1]):
            behind_cue += 1
            if at and pieces[at - 1] == S("<tool_call>"):
                if behind_cue < APART:
                    raise ValueError("cues are too near to each other")
                self.cues.add(token)
                cue, behind_cue = token, 0
            self._state(cue if token < N_BASE else None, token, ids[at + 1])
        return ids[0]

    def _token(self, piece: Said) -> int:
        if isinstance(piece, S):
            return base().id(piece.text)
        self.tokens.append(self._spelling.token(piece))
        return N_BASE + len(self.tokens) - 1

    def _state(self, cue: int | None, last: int, following: int) -> None:
        if self.states.setdefault((cue, last), {following: 1.0}) != {following: 1.0}:
            raise ValueError(f"on one page two things follow {base().tokens[last].piece!r}")


def write_playbook(path: Path, pages: Mapping[str, Page], template: str | None) -> Playbook:
    """Write the model and return its playbook; the same arguments give the same bytes.

    Raises what `compile_playbook` raises, and ValueError where weights cannot say what the playbook says.
    """
    book = compile_playbook(pages)
    classes = classes_of(book.script)
    count = count_of(classes)
    shape = shape_of(1 + 2 * count, 1, CONTEXT, heads=-(-count // HEAD))
    by_last, by_cue = pair_logits(book.script, classes)
    _check(book, classes, by_last, by_cue)
    weights = silent("llama", shape)
    weights.tensors |= _attention([classes[cue] for cue in sorted(book.cues)], count, shape)
    weights.tensors |= matrices(classes, by_last, by_cue, shape.n_embd)
    write(path, weights, book.script.vocabulary, template)
    return book


def _attention(cues: Sequence[int], count: int, shape: Shape) -> dict[str, Tensor]:
    """The layer's attention, which copies the class of the last cue; `cues` are the classes of all.

    Copies stand right behind the classes themselves, where `matrices` reads them.
    """
    pairs, width = HEAD // 2, shape.n_head * HEAD
    scale = _AMPLITUDE * np.sqrt(2 / shape.n_embd)  # the root undoes the norm of a stream of two ones
    q, k, v = (np.zeros((width, shape.n_embd), np.float32) for _ in range(3))
    q[:, 0] = np.tile([np.cos(_LEAN), np.sin(_LEAN)], width // 2) * scale
    k[::2, [1 + cue for cue in cues]] = scale
    v[cues, [1 + cue for cue in cues]] = scale / _AMPLITUDE
    out = np.zeros((shape.n_embd, width), np.float32)
    out[[1 + count + cue for cue in cues], cues] = 1
    turns = _TURN * (1 + np.arange(pairs) / 50)  # unequal, so that their roundings are
    usual = ROPE_BASE ** (-np.arange(pairs) / pairs)
    layer = {"attn_q": q, "attn_k": k, "attn_v": v, "attn_output": out, "attn_norm": np.ones(shape.n_embd)}
    named = {f"blk.0.{name}.weight": np.asarray(tensor, np.float32) for name, tensor in layer.items()}
    return named | {"rope_freqs.weight": np.asarray(usual / turns, np.float32)}


def _check(book: Playbook, classes: Mapping[int, int], by_last: Tensor, by_cue: Tensor) -> None:
    """Raises ValueError if a sum of two columns does not say what the playbook says."""
    letters = {cue for cue in book.cues if cue < N_BASE}
    lasts = {last for _, last in book.script.states if last < N_BASE} | {0}
    pairs = {(cue, last) for cue in letters for last in lasts}
    pairs |= {(cue, last) for cue, last in book.script.states if cue is not None}
    for cue, last in pairs:
        logits = by_last[:, classes[last]] + by_cue[:, classes[cue]]
        (expected,) = book.script.after(cue, last)
        others = np.delete(logits, expected)
        if logits[expected] < others.max() + 15:
            raise ValueError(
                f"the weights cannot tell what follows {book.script.vocabulary.join([cue, last])!r}"
            )
