"""Tables of the tokens of one vocabulary, shared by its guides."""

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

_MAX_CACHED_RESULTS: Final = 64
"""Results of each kind that are cached: a model's requests have a handful of dialects and markers."""


class FreeTokens(NamedTuple):
    """Tokens that are allowed in free text, as a mask over the vocabulary, and the ids of all others."""

    allowed: Mask
    refused: Places


class CompletingTokens(NamedTuple):
    """Plain tokens that may complete some text and continue after it."""

    inside: tuple[int, ...]
    """Tokens that contain the whole text, after their beginning."""
    by_rest: tuple[tuple[int, ...], ...]
    """`by_rest[n]` are the tokens that begin with the last n + 1 bytes of the text."""


class TokenTable:
    """Tables of a vocabulary; made once, unchanged except for cached results.

    Args:
        pieces: the bytes of each token; b"" for those without text.
        specials: the texts of the tokens that are matched as a whole, by id.
        controls: those of them that are no text: CONTROL and UNKNOWN tokens. Tokens that contain a `MARK` are
            treated alike.
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
        """The bytes under which the front gets a special token that a dialect needs."""
        self.eog: Final = frozenset(eog)
        self._controls: Final = np.zeros(len(pieces), bool)
        self._controls[[token for token, piece in enumerate(pieces) if not piece or MARK in piece]] = True
        self._controls[list(controls)] = True
        self._ends: Final = np.array(sorted(eog), np.intp)
        plain = (int(token) for token in np.flatnonzero(~self._controls))
        self._sorted: Final = sorted(plain, key=pieces.__getitem__)
        self._texts: Final = [pieces[token] for token in self._sorted]
        self._joined: Final = MARK.join(self._texts)  # no plain token has one
        lengths = [len(text) + len(MARK) for text in self._texts]
        self._starts: Final = np.cumsum([0, *lengths[:-1]])
        self.free = lru_cache(_MAX_CACHED_RESULTS)(self._free)
        self.completing = lru_cache(_MAX_CACHED_RESULTS)(self._completing)
        self.containing = lru_cache(_MAX_CACHED_RESULTS)(self._containing)

    def _free(self, specials: frozenset[int], *, ends: bool) -> FreeTokens:
        """Returns all plain tokens, the given specials, and the ends of generation if `ends`."""
        refused = self._controls.copy()
        refused[list(specials)] = False
        refused[self._ends] = not ends
        return FreeTokens(~refused, np.flatnonzero(refused))

    def _completing(self, text: bytes) -> CompletingTokens:
        """Returns the tokens that may complete `text`, which is not empty, and continue after it."""
        found = (match.start() for match in re.finditer(re.escape(text), self._joined))
        places = sorted(
            {int(place) for place in np.searchsorted(self._starts, list(found), side="right") - 1}
        )
        containing = [(self._sorted[place], self._texts[place]) for place in places]
        inside = (token for token, piece in containing if 0 < piece.find(text, 1) < len(piece) - len(text))
        rests = (self._extensions(text[-size:]) for size in range(1, len(text) + 1))
        return CompletingTokens(tuple(inside), tuple(rests))

    def _containing(self, text: bytes) -> Mask:
        """Returns the plain tokens that contain `text`."""
        mask = np.zeros(len(self.pieces), bool)
        mask[[token for token in self._sorted if text in self.pieces[token]]] = True
        return mask

    def _extensions(self, start: bytes) -> tuple[int, ...]:
        """Returns the plain tokens that begin with `start` and are longer."""
        return tuple(token for token in self._beginning(start) if len(self.pieces[token]) > len(start))

    def _beginning(self, start: bytes) -> Iterator[int]:
        """Yields the plain tokens that begin with `start`, each before its own extensions."""
        for at in range(bisect_left(self._texts, start), len(self._texts)):
            if not self._texts[at].startswith(start):
                return
            yield self._sorted[at]

    def has_extension(self, text: bytes, following: Collection[int] | None = None) -> bool:
        """Returns whether a plain token begins with `text` and is longer.

        If `following` is not None, the next byte must be one of it.
        """
        at = bisect_right(self._texts, text)
        if at == len(self._texts) or not self._texts[at].startswith(text):
            return False
        return following is None or any(self._begins_a_token(text + bytes((byte,))) for byte in following)

    def _begins_a_token(self, text: bytes) -> bool:
        """Returns whether a plain token begins with `text`."""
        return next(self._beginning(text), None) is not None

    def _with_bytes(self, piece: bytes) -> Iterator[int]:
        return takewhile(lambda token: self.pieces[token] == piece, self._beginning(piece))

    def compatible(self, text: bytes) -> tuple[int, ...]:
        """Returns the plain tokens that the non-empty `text` begins with, and those that begin with it."""
        shorter = [token for size in range(1, len(text)) for token in self._with_bytes(text[:size])]
        return (*shorter, *self._beginning(text))
