"""What the tokens of one vocabulary say, in tables that guides share."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import abc
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import takewhile
from typing import Final, NamedTuple

import numpy as np

from b3node.dialects.outline import MARK
from b3node.engine.sampling.constraint import Mask
from b3node.engine.sampling.sampler import Places

_KNOWN: Final = 64
"""Results of each kind that are kept: a model's requests have a handful of dialects and markers."""


class FreeTokens(NamedTuple):
    """The tokens that may be written where anything goes: a mask over the vocabulary, and the others' ids."""

    allowed: Mask
    refused: Places


class CompletingTokens(NamedTuple):
    """Plain tokens that may complete some text and have bytes behind it.

    `by_rest[n]` begin with its last n + 1 bytes, `inside` have all of the text somewhere else than at their
    beginning.
    """

    inside: tuple[int, ...]
    by_rest: tuple[tuple[int, ...], ...]


class TokenTable:
    """The tables; made once a vocabulary, changed by nothing but what is remembered of answers.

    Args:
        pieces: the bytes of each token; b"" for those that say nothing.
        specials: the texts of the tokens that are matched as a whole, by id.
        controls: those of them that are no text: CONTROL and UNKNOWN tokens. Tokens that would be taken for a
            `MARK` are treated alike.
        eog: ids that end a generation.
    """

    def __init__(
        self,
        pieces: abc.Sequence[bytes],
        specials: Mapping[int, str],
        controls: Collection[int],
        eog: Collection[int],
    ) -> None:
        self.pieces: Final = pieces
        self.marked: Final = {token: MARK + text.encode() for token, text in specials.items()}
        """What is told of a special token where a dialect needs it."""
        self.eog: Final = frozenset(eog)
        self._controls: Final = np.zeros(len(pieces), bool)
        self._controls[[token for token, piece in enumerate(pieces) if not piece or MARK in piece]] = True
        self._controls[list(controls)] = True
        self._ends: Final = np.array(sorted(eog), np.intp)
        plain = (int(token) for token in np.flatnonzero(~self._controls))
        self._sorted: Final = sorted(plain, key=pieces.__getitem__)
        self._texts: Final = [pieces[token] for token in self._sorted]
        self._all: Final = MARK.join(self._texts)  # no plain token has one
        lengths = [len(text) + len(MARK) for text in self._texts]
        self._starts: Final = np.cumsum([0, *lengths[:-1]])
        self.free = lru_cache(_KNOWN)(self._free)
        self.completing = lru_cache(_KNOWN)(self._completing)
        self.containing = lru_cache(_KNOWN)(self._containing)

    def _free(self, specials: frozenset[int], *, ends: bool) -> FreeTokens:
        """All plain tokens, those specials, and the ends of generation, if `ends`."""
        refused = self._controls.copy()
        refused[list(specials)] = False
        refused[self._ends] = not ends
        return FreeTokens(~refused, np.flatnonzero(refused))

    def _completing(self, text: bytes) -> CompletingTokens:
        """The tokens that may complete `text`, which is not empty, with bytes behind it."""
        found = (match.start() for match in re.finditer(re.escape(text), self._all))
        places = sorted(
            {int(place) for place in np.searchsorted(self._starts, list(found), side="right") - 1}
        )
        containing = [(self._sorted[place], self._texts[place]) for place in places]
        inside = (token for token, piece in containing if 0 < piece.find(text, 1) < len(piece) - len(text))
        rests = (self._longer(text[-size:]) for size in range(1, len(text) + 1))
        return CompletingTokens(tuple(inside), tuple(rests))

    def _containing(self, text: bytes) -> Mask:
        """The plain tokens that have `text` in them."""
        mask = np.zeros(len(self.pieces), bool)
        mask[[token for token in self._sorted if text in self.pieces[token]]] = True
        return mask

    def _longer(self, start: bytes) -> tuple[int, ...]:
        """The plain tokens that begin with `start` and go on."""
        return tuple(token for token in self._beginning(start) if len(self.pieces[token]) > len(start))

    def _beginning(self, start: bytes) -> Iterator[int]:
        """The plain tokens that begin with `start`, shorter ones before those that go on as they do."""
        for at in range(bisect_left(self._texts, start), len(self._texts)):
            if not self._texts[at].startswith(start):
                return
            yield self._sorted[at]

    def has_extension(self, text: bytes, following: Collection[int] | None = None) -> bool:
        """Whether a plain token begins with `text` and goes on behind it: with a byte of `following`, if not None."""
        at = bisect_right(self._texts, text)
        if at == len(self._texts) or not self._texts[at].startswith(text):
            return False
        return following is None or any(self._begins(text + bytes((byte,))) for byte in following)

    def _begins(self, text: bytes) -> bool:
        """Whether a plain token begins with `text`."""
        return next(self._beginning(text), None) is not None

    def _exactly(self, piece: bytes) -> Iterator[int]:
        return takewhile(lambda token: self.pieces[token] == piece, self._beginning(piece))

    def compatible(self, text: bytes) -> tuple[int, ...]:
        """The plain tokens that `text`, which is not empty, begins with, and those that begin with it."""
        shorter = [token for size in range(1, len(text)) for token in self._exactly(text[:size])]
        return (*shorter, *self._beginning(text))
