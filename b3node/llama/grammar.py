"""Grammars of llama.cpp as the engine's constraints: parsed within bounds, never trusted beyond what they say.

What llama.cpp does with a mistake decides what is done here (version 0.3.36, measured):

* A grammar that it cannot parse is a NULL, an empty one is no constraint at all: both are errors here. Its parser
  recurses once a group and once a leftmost rule, so a text is bounded and parsed on a thread with a large stack.
* A token that is accepted against the grammar aborts the process: only what `allows` has allowed is accepted.
* It matches tokens by their text, so inside a JSON string `<|im_start|>` would do: every token that is not plain
  text is banned, but for the ends of generation. What follows a NUL in a token is not looked at: banned too.
* Special tokens that a grammar names are asked about as the characters that stand for them (`llama.special_token_chars`);
  plain tokens with such characters are banned.
* It does not check the bytes of UTF-8 sequences: what is not the beginning of valid UTF-8 is not allowed here.

A parsed grammar is kept, and every sequence gets a clone of it. `narrow` asks about the 256 one-byte tokens first:
where one is refused, so is every token that begins with that byte, and mostly that leaves few. (That is so as
long as classes are positive. In llama.cpp's negated ones a byte may be refused whose continuations are not.)
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
from b3node.llama.special_token_chars import named, without_tokens
from b3node.llama.tokens import BATCH, Tokens, unfinished
from b3node.llama.vocab import Vocabulary
from b3node.lru import LruCache

MAX_CACHED: Final = 64
"""Parsed grammars that are cached."""
MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that the cached grammars are estimated to take."""
STACK: Final = 256 * 1024 * 1024
"""Bytes of stack to parse on: 200,000 nested groups were parsed on it. Address space only, until it is used."""

_NEGATED: Final = "[^"


class Grammars:
    """The grammars of one vocabulary. For one thread at a time, like the vocabulary itself."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocab = vocabulary.native
        self.tokens: Final = Tokens(vocabulary)
        self._parsed: LruCache[str, LlamaGrammar] = LruCache(
            lambda text, _: 20 * len(text) + 100 * count_repeats(text),
            max_entries=MAX_CACHED,
            max_bytes=MAX_CACHED_BYTES,
        )

    def constrain(self, text: str) -> LlamaGrammar:
        """The constraint of a GBNF text, at its beginning. Raises `ConstraintError` if it is no grammar."""
        if text not in self._parsed:
            stood = self._stood(text)
            sampler = _on_a_large_stack(lambda: self._parse(text, stood))
            self._parsed[text] = LlamaGrammar(sampler, self.tokens, stood, positive=_NEGATED not in text)
        return self._parsed[text].clone()

    def _parse(self, text: str, stood: Mapping[int, int]) -> Any:
        """A sampler for a GBNF text, to be freed; needs a large stack. Raises `ConstraintError`."""
        if not text.strip() or "\0" in text or len(text.encode()) > MAX_GRAMMAR_BYTES:
            raise ConstraintError("a grammar is empty, too large or no text")
        if (repeats := count_repeats(text)) > MAX_REPEATS:
            raise ConstraintError(f"a grammar repeats {repeats} times; at most {MAX_REPEATS} are taken")
        standing = {token: self.tokens.pieces[stand_in] for token, stand_in in stood.items()}
        with _without_stderr():
            read = without_tokens(text, standing).encode()
            sampler = lib.llama_sampler_init_grammar(self._vocab, read, b"root")
        if not sampler:
            raise ConstraintError("llama.cpp does not take a grammar")
        return sampler

    def _stood(self, text: str) -> dict[int, int]:
        """For each token that a GBNF text names, the plain token that stands for it. Raises `ConstraintError`."""
        try:
            tokens = named(text)
        except ValueError as error:
            raise ConstraintError(str(error)) from error
        if not self.tokens.special.issuperset(tokens):
            raise ConstraintError("a grammar names a token that is not special")
        if len(tokens) > len(self.tokens.stand_ins):
            raise ConstraintError("a grammar names more tokens than can be told apart")
        return dict(zip(tokens, self.tokens.stand_ins, strict=False))

    def runs(self, text: str) -> bool:
        """Whether llama.cpp takes the grammar; needs a large stack, keeps nothing."""
        try:
            lib.llama_sampler_free(self._parse(text, self._stood(text)))
        except ConstraintError:
            return False
        return True


class LlamaGrammar:
    """Implements `engine.sampling.constraint.LlamaGrammar`; `Grammars.constrain` makes them.

    Args:
        sampler: a llama_sampler of its own, freed with it.
        tokens: the vocabulary's.
        stood: the special tokens that the grammar names, each with the token that stands for it.
        positive: whether a refused byte means that nothing that begins with it is allowed.
    """

    def __init__(self, sampler: Any, tokens: Tokens, stood: Mapping[int, int], *, positive: bool) -> None:
        self._sampler = sampler
        self._tokens = tokens
        self._stood = stood
        self._positive = positive
        self._partial = b""
        """The bytes of a character that is not complete yet."""
        self._passed: list[TokenIds] = []
        self._taken: list[int] = []
        """Tokens that were allowed, like those in `_passed`, when each was asked about alone."""
        self._narrowed: list[TokenIds | None] = []
        """What `narrow` found here, if it was asked."""
        weakref.finalize(self, lib.llama_sampler_free, sampler).atexit = False

    def clone(self) -> LlamaGrammar:
        """A grammar of its own that stands where this one stands; nothing has been allowed to it yet."""
        sampler = lib.llama_sampler_clone(self._sampler)
        clone = LlamaGrammar(sampler, self._tokens, self._stood, positive=self._positive)
        clone._partial = self._partial
        return clone

    def allows(self, tokens: TokenIds) -> Mask:
        """For each token, whether the text may go on with it; see `engine.sampling.constraint.Constraint.allows`."""
        if tokens.size == 1:
            return np.array((self._allows(int(tokens[0])),))
        mask: Mask = self._tokens.possible[tokens]
        asked = tokens[mask]
        answers = [self._ask(asked[start : start + BATCH]) for start in range(0, asked.size, BATCH)]
        if answers:
            mask[mask] = np.concatenate(answers)
        for special, standing in self._stood.items():
            if (at := tokens == special).any():
                mask[at] |= self._takes(standing)
        self._passed.append(tokens[mask])
        return mask

    def _allows(self, token: int) -> bool:
        """Whether the text may go on with one token: it is asked about once, then gone on with."""
        if token in self._taken:
            return True
        standing = self._stood.get(token)
        allowed = (self._tokens.possible[token] and self._takes(token)) or (
            standing is not None and self._takes(standing)
        )
        if allowed:
            self._taken.append(token)
        return bool(allowed)

    def narrow(self) -> TokenIds | None:
        """Tokens among which all allowed ones are; None if that is most of the vocabulary."""
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
        named = [token for token in self._stood if not known.is_eog[token]]
        return np.concatenate((known.eog, np.array(named, np.int32), *parts))

    def refused(self) -> Places | None:
        """None: what a grammar refuses is never known before it is asked."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """What has to come next; see `engine.sampling.constraint.Constraint.forced`.

        It is found byte by byte, so only where a refused byte says what it seems to say (see above), and where there
        is a token of every byte that can be written. What special tokens say is never part of it.
        """
        known = self._tokens
        if not (self._positive and known.any_byte) or (
            not self._partial and known.common.allowed(self._sampler) > 1
        ):
            return ForcedText()
        asked = np.concatenate((known.one_byte, known.eog, np.array(list(self._stood), np.int32)))
        behind, text = self.clone(), b""
        while len(text) < max_bytes:
            places = np.flatnonzero(behind.allows(asked))
            if places.size != 1 or places[0] >= known.one_byte.size:
                plain = places[places < known.one_byte.size]
                specials = set(asked[places[plain.size :]].tolist())
                return ForcedText(text, frozenset(known.bytes[plain].tolist()), self._told_apart(specials))
            token = int(asked[places[0]])
            behind.accept(token)
            text += known.pieces[token]
        return ForcedText(text)

    def _told_apart(self, tokens: Collection[int]) -> tuple[int, ...]:
        """The tokens, but only one of those that do no more than to end the text."""
        ends = sorted(token for token in tokens if self._tokens.is_eog[token] and token not in self._stood)
        return (*ends[:1], *sorted(token for token in tokens if token in self._stood))

    def after(self, text: bytes) -> LlamaGrammar | None:
        """A grammar behind `text`, or None; see `engine.sampling.constraint.LlamaGrammar.after`."""
        known = self._tokens
        if text and not ((first := known.spelling(text)) >= 0 and self._takes(first)):
            return None  # mostly so, and a clone costs more than to ask
        behind = self.clone()
        while text:
            token = known.spelling(text)
            if token < 0 or not behind.allows(np.array([token], np.int32))[0]:
                return None
            behind.accept(token)
            text = text[len(known.pieces[token]) :]
        return behind

    def accept(self, token: int) -> None:
        """Goes on with a token that was allowed. Raises `ValueError` for any other: llama.cpp would abort."""
        if token not in self._taken and not any((passed == token).any() for passed in self._passed):
            raise ValueError("a token was to be accepted that was not allowed")
        self._taken.clear()
        self._passed.clear()
        self._narrowed.clear()
        meant = self._stood.get(token, token)
        if self._tokens.is_eog[token] and not (meant != token and self._takes(meant)):
            lib.llama_sampler_accept(self._sampler, token)
            return
        lib.llama_sampler_accept(self._sampler, meant)
        if self._partial or not self._tokens.whole[meant]:
            self._partial = unfinished(self._partial + self._tokens.pieces[meant])

    def _takes(self, token: int) -> bool:
        """Whether one token may come next that is possible, or stands for one."""
        known = self._tokens
        known.one.id, known.one.logit = token, 0.0
        lib.llama_sampler_apply(self._sampler, known.candidate)
        if known.one.logit != 0.0:
            return False
        return bool(known.whole[token] and not self._partial) or self._continues(token)

    def _ask(self, tokens: TokenIds) -> Mask:
        """What llama.cpp says of at most `BATCH` possible tokens, and UTF-8 does not forbid."""
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
        """Whether the text so far and the token are the beginning of valid UTF-8, and its end if it ends it."""
        if self._tokens.is_eog[token]:
            return not self._partial
        try:
            unfinished(self._partial + self._tokens.pieces[token])
        except UnicodeDecodeError:
            return False
        return True


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Closes stderr for a while: llama.cpp prints a grammar that it does not take, a client's words in it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _on_a_large_stack(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises, done on a thread with `STACK` bytes of stack."""
    outcome: list[Any] = []
    failure: list[Exception] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            failure.append(error)

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=run, name="parse grammar")
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
