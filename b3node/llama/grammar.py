"""Grammars of llama.cpp as the engine's constraints.

Parsed within bounds, and checked where llama.cpp checks nothing.

llama.cpp's handling of mistakes decides the design (version 0.3.36, measured):

* A grammar that it cannot parse is a NULL, an empty one is no constraint at all: both are errors here. Its
  parser recurses once a group and once a leftmost rule, so a text is bounded and parsed on a thread with a
  large stack.
* A token that is accepted against the grammar aborts the process: only tokens that `allows` has allowed are
  accepted.
* It matches tokens by their text, so inside a JSON string `<|im_start|>` would be allowed: every token that
  is not plain text is banned, except the ends of generation. It ignores the bytes after a NUL in a token, so
  such tokens are banned, too.
* Special tokens that a grammar names are asked about as the characters that stand in for them
  (`llama.special_token_chars`); plain tokens with such characters are banned.
* It does not check the bytes of UTF-8 sequences: bytes that cannot begin valid UTF-8 are refused here.

A parsed grammar is cached, and every sequence gets a clone of it. `narrow` asks about the 256 one-byte tokens
first: if one is refused, so is every token that begins with that byte, and mostly that leaves few. (This
holds as long as character classes are positive. In llama.cpp's negated ones a byte may be refused whose
continuations are not.)
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from b3node.engine.sampling.constraint import ConstraintError, ForcedText, Mask, TokenIds
from b3node.engine.sampling.sampler import Places
from b3node.gbnf import MAX_GRAMMAR_BYTES, MAX_REPEATS, count_repeats
from b3node.llama.library import lib
from b3node.llama.special_token_chars import named_tokens, without_tokens
from b3node.llama.tokens import MAX_BATCH_TOKENS, GrammarTokens, unfinished
from b3node.llama.vocab import Vocabulary
from b3node.lru import LruCache

MAX_CACHED: Final = 64
"""Parsed grammars that are cached."""
MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that the cached grammars are estimated to take."""
PARSER_STACK_BYTES: Final = 256 * 1024 * 1024
"""Stack of the parsing thread, on which 200,000 nested groups were parsed; address space until it is used."""

_NEGATED: Final = "[^"


class Grammars:
    """Grammars of one vocabulary. Not thread-safe, like the vocabulary itself."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocab = vocabulary.native
        self.tokens: Final = GrammarTokens(vocabulary)
        self._parsed: LruCache[str, LlamaGrammar] = LruCache(
            lambda text, _: 20 * len(text) + 100 * count_repeats(text),
            max_entries=MAX_CACHED,
            max_bytes=MAX_CACHED_BYTES,
        )

    def constrain(self, text: str) -> LlamaGrammar:
        """Returns the constraint of a GBNF text, at its beginning.

        Raises `ConstraintError` if it is no grammar.
        """
        if text not in self._parsed:
            stand_ins = self._stand_ins(text)
            sampler = _on_a_large_stack(lambda: self._parse(text, stand_ins))
            self._parsed[text] = LlamaGrammar(sampler, self.tokens, stand_ins, positive=_NEGATED not in text)
        return self._parsed[text].clone()

    def _parse(self, text: str, stand_ins: Mapping[int, int]) -> Any:
        """Returns a sampler for a GBNF text, to be freed; needs a large stack. Raises `ConstraintError`."""
        if not text.strip() or "\0" in text or len(text.encode()) > MAX_GRAMMAR_BYTES:
            raise ConstraintError("a grammar is empty, too large or no text")
        if (repeats := count_repeats(text)) > MAX_REPEATS:
            raise ConstraintError(f"a grammar repeats {repeats} times; at most {MAX_REPEATS} are taken")
        stand_in_bytes = {token: self.tokens.pieces[stand_in] for token, stand_in in stand_ins.items()}
        with _without_stderr():
            read = without_tokens(text, stand_in_bytes).encode()
            sampler = lib.llama_sampler_init_grammar(self._vocab, read, b"root")
        if not sampler:
            raise ConstraintError("llama.cpp does not take a grammar")
        return sampler

    def _stand_ins(self, text: str) -> dict[int, int]:
        """Returns the plain token that stands in for each token named in a GBNF text.

        Raises `ConstraintError`.
        """
        try:
            tokens = named_tokens(text)
        except ValueError as error:
            raise ConstraintError(str(error)) from error
        if not self.tokens.special.issuperset(tokens):
            raise ConstraintError("a grammar names a token that is not special")
        if len(tokens) > len(self.tokens.stand_ins):
            raise ConstraintError("a grammar names more tokens than can be told apart")
        return dict(zip(tokens, self.tokens.stand_ins, strict=False))

    def runs(self, text: str) -> bool:
        """Returns whether llama.cpp takes the grammar; needs a large stack, caches nothing."""
        try:
            lib.llama_sampler_free(self._parse(text, self._stand_ins(text)))
        except ConstraintError:
            return False
        return True


class LlamaGrammar:
    """Implements `engine.sampling.constraint.Grammar`; `Grammars.constrain` makes them.

    Args:
        sampler: a llama_sampler of its own, freed with it.
        tokens: the vocabulary's.
        stand_ins: the special tokens that the grammar names, each with the token that stands in for it.
        positive: whether a refused byte means that no text beginning with it is allowed.
    """

    def __init__(
        self, sampler: Any, tokens: GrammarTokens, stand_ins: Mapping[int, int], *, positive: bool
    ) -> None:
        self._sampler = sampler
        self._tokens = tokens
        self._stand_ins = stand_ins
        self._positive = positive
        self._partial = b""
        """The bytes of a character that is not complete yet."""
        self._allowed: list[TokenIds] = []
        """Arrays of the tokens allowed since the last accepted one."""
        self._allowed_alone: list[int] = []
        """Tokens allowed since then that were asked about one at a time."""
        self._narrowed: list[TokenIds | None] = []
        """The result of `narrow` at this place, if it was asked."""
        weakref.finalize(self, lib.llama_sampler_free, sampler).atexit = False

    def clone(self) -> LlamaGrammar:
        """Returns an independent grammar in the same state, to which no token was allowed yet."""
        sampler = lib.llama_sampler_clone(self._sampler)
        clone = LlamaGrammar(sampler, self._tokens, self._stand_ins, positive=self._positive)
        clone._partial = self._partial
        return clone

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns for each token whether it may come next.

        See `engine.sampling.constraint.Constraint.allows`.
        """
        if tokens.size == 1:
            return np.array((self._allows(int(tokens[0])),))
        mask: Mask = self._tokens.possible[tokens]
        asked = tokens[mask]
        answers = [
            self._ask(asked[start : start + MAX_BATCH_TOKENS])
            for start in range(0, asked.size, MAX_BATCH_TOKENS)
        ]
        if answers:
            mask[mask] = np.concatenate(answers)
        for special, stand_in in self._stand_ins.items():
            if (at := tokens == special).any():
                mask[at] |= self._accepts(stand_in)
        self._allowed.append(tokens[mask])
        return mask

    def _allows(self, token: int) -> bool:
        """Returns whether one token may come next, which is then accepted without asking again."""
        if token in self._allowed_alone:
            return True
        stand_in = self._stand_ins.get(token)
        allowed = (self._tokens.possible[token] and self._accepts(token)) or (
            stand_in is not None and self._accepts(stand_in)
        )
        if allowed:
            self._allowed_alone.append(token)
        return bool(allowed)

    def narrow(self) -> TokenIds | None:
        """Returns tokens among which all allowed ones are; None if that is most of the vocabulary."""
        if not self._narrowed:
            self._narrowed.append(self._narrow() if self._positive else None)
        return self._narrowed[0]

    def _narrow(self) -> TokenIds | None:
        known = self._tokens
        open_ = np.ones(256, bool)
        open_[known.bytes] = self.allows(known.one_byte)
        parts = [known.by_first_byte[byte] for byte in np.flatnonzero(open_)]
        if 2 * sum(map(len, parts)) > len(known.pieces):
            return None
        specials = [token for token in self._stand_ins if not known.is_eog[token]]
        return np.concatenate((known.eog, np.array(specials, np.int32), *parts))

    def refused(self) -> Places | None:
        """Returns None: the tokens that a grammar refuses are never known before they are asked about."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns the text that has to come next; see `engine.sampling.constraint.Constraint.forced`.

        It is found byte by byte. So it needs a grammar in which a refused byte refuses all that begins with
        it (see above), and a token for every byte that can be written. The text of special tokens is never
        part of it.
        """
        known = self._tokens
        if not (self._positive and known.any_byte) or (
            not self._partial and known.common.allowed(self._sampler) > 1
        ):
            return ForcedText()
        asked = np.concatenate((known.one_byte, known.eog, np.array(list(self._stand_ins), np.int32)))
        copy, text = self.clone(), b""
        while len(text) < max_bytes:
            places = np.flatnonzero(copy.allows(asked))
            if places.size != 1 or places[0] >= known.one_byte.size:
                plain = places[places < known.one_byte.size]
                specials = set(asked[places[plain.size :]].tolist())
                return ForcedText(
                    text, frozenset(known.bytes[plain].tolist()), self._distinct_specials(specials)
                )
            token = int(asked[places[0]])
            copy.accept(token)
            text += known.pieces[token]
        return ForcedText(text)

    def _distinct_specials(self, tokens: Collection[int]) -> tuple[int, ...]:
        """Returns the tokens, but only one of those that do no more than end the text."""
        ends = sorted(
            token for token in tokens if self._tokens.is_eog[token] and token not in self._stand_ins
        )
        return (*ends[:1], *sorted(token for token in tokens if token in self._stand_ins))

    def after(self, text: bytes) -> LlamaGrammar | None:
        """Returns a grammar advanced by `text`, or None; see `engine.sampling.constraint.Grammar.after`."""
        known = self._tokens
        if text and not ((first := known.plain_token(text)) is not None and self._accepts(first)):
            return None  # the usual case, and a clone costs more than to ask
        copy = self.clone()
        while text:
            token = known.plain_token(text)
            if token is None or not copy.allows(np.array([token], np.int32))[0]:
                return None
            copy.accept(token)
            text = text[len(known.pieces[token]) :]
        return copy

    def accept(self, token: int) -> None:
        """Advances by a token that was allowed. Raises `ValueError` for any other: llama.cpp would abort."""
        if token not in self._allowed_alone and not any((passed == token).any() for passed in self._allowed):
            raise ValueError("a token was to be accepted that was not allowed")
        self._allowed_alone.clear()
        self._allowed.clear()
        self._narrowed.clear()
        meant = self._stand_ins.get(token, token)
        if self._tokens.is_eog[token] and not (meant != token and self._accepts(meant)):
            lib.llama_sampler_accept(self._sampler, token)
            return
        lib.llama_sampler_accept(self._sampler, meant)
        if self._partial or not self._tokens.whole[meant]:
            self._partial = unfinished(self._partial + self._tokens.pieces[meant])

    def _accepts(self, token: int) -> bool:
        """Returns whether one token may come next that is possible, or stands in for one."""
        known = self._tokens
        known.one.id, known.one.logit = token, 0.0
        lib.llama_sampler_apply(self._sampler, known.candidate)
        if known.one.logit != 0.0:
            return False
        return bool(known.whole[token] and not self._partial) or self._continues(token)

    def _ask(self, tokens: TokenIds) -> Mask:
        """Returns which of at most `MAX_BATCH_TOKENS` possible tokens llama.cpp and UTF-8 allow."""
        room, candidates = self._tokens.room[: tokens.size], self._tokens.candidates
        room["id"] = tokens
        room["logit"] = 0.0
        candidates.size, candidates.selected, candidates.sorted = tokens.size, -1, False
        lib.llama_sampler_apply(self._sampler, ctypes.byref(candidates))
        allowed: Mask = room["logit"] == 0.0
        doubtful = allowed if self._partial else allowed & ~self._tokens.whole[tokens]
        for place in np.flatnonzero(doubtful):
            allowed[place] = self._continues(int(tokens[place]))
        return allowed

    def _continues(self, token: int) -> bool:
        """Returns whether the text and the token begin valid UTF-8; an end of generation must complete it."""
        if self._tokens.is_eog[token]:
            return not self._partial
        try:
            unfinished(self._partial + self._tokens.pieces[token])
        except UnicodeDecodeError:
            return False
        return True


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Closes stderr meanwhile.

    Llama.cpp prints a grammar that it does not take, with a client's words in it.
    """
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _on_a_large_stack(work: Callable[[], Any]) -> Any:
    """Returns or raises the result of `work`, run on a thread with a stack of `PARSER_STACK_BYTES`."""
    outcome: list[Any] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001 - raised again in the caller
            failure.append(error)

    before = threading.stack_size(PARSER_STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="parse grammar")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
