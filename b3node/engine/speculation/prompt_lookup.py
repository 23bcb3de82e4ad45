"""Prompt lookup: guesses how a sequence goes on, from where it said the same before.

Agents quote files, answers repeat questions, code repeats itself, JSON its keys: where the last tokens of a sequence
stand in it already, what followed there often follows here. How often is learnt from the sequence alone: each new token
is compared with the guess that was, or would have been, made for it, in classes by how many tokens agreed before it.

Proposed by A. Saxena, "Prompt Lookup Decoding" (2023).
"""

from __future__ import annotations

from array import array
from collections import abc
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

RATE: Final = 0.05
"""Weight of the newest guess in what is learnt of a class of guesses: a short streak of luck must not make it dear."""
_LEAST: Final = 2
"""Tokens that have to agree before anything is guessed."""
_WINDOW: Final = 16_384
"""Tokens of a prompt that are looked at, its last ones."""
_BITS: Final = 32
"""Bits of a token id in a pair's key."""
_PLACES: Final = 4
"""Places where the last tokens stood, latest first, that are compared."""
_CLASSES: Final = (0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5)
"""The class of so many tokens that agree; the last one for all longer ones."""
_AT_FIRST: Final = (0.35, 0.5, 0.6, 0.7, 0.85, 0.95)
"""How often a guess of each class is right, before anything was learnt of a sequence: as often as in SmolLM2's answers."""


class DraftToken(NamedTuple):
    """A token that may come next, and how likely that is taken to be."""

    token: int
    chance: float


class PromptLookup:
    """Guesses for one sequence out of itself; `feed` mutates it.

    Args:
        known: the sequence's tokens; grows, and is never changed here.
    """

    def __init__(self, known: array[int]) -> None:
        self._known = known
        self._pairs = _Pairs(known)
        self._odds = list(_AT_FIRST)
        self._next = -1
        """The place of the token that is guessed to come next; -1 where there is no guess."""
        self._agreed = 0
        """How many tokens before that place are the last ones."""

    def feed(self, place: int) -> None:
        """Takes in the token at `place`, which follows what was taken in before it."""
        known = self._known
        self._pairs.add(place)
        if self._next >= 0:
            right = known[self._next] == known[place]
            which = _class(self._agreed)
            self._odds[which] += RATE * (right - self._odds[which])
            if right:
                self._next += 1
                self._agreed += 1
                return
        self._search(place)

    def guess(self, draft: abc.Sequence[int]) -> DraftToken | None:
        """The token behind the known ones and a draft of such guesses; None where there is none. Changes nothing."""
        if self._next < 0:
            return None
        place = (
            self._next + len(draft) - len(self._known)
        )  # a repeated text may be shorter than a draft of it
        token = self._known[place] if place < 0 else draft[place]
        return DraftToken(token, self._odds[_class(self._agreed + len(draft))])

    def _search(self, last: int) -> None:
        """Finds where most of the tokens up to `last` stood before, the latest place among equals."""
        self._next, self._agreed = -1, 0
        for place in self._pairs.behind(last):
            if (agreed := _agreement(self._known, place, last)) > self._agreed:
                self._next, self._agreed = place, agreed


class _Pairs:
    """Where each two tokens stand one behind the other: of what was known at first the end, and all that came since.

    An index, since looking through the tokens themselves costs a step of one small stream 0.03 ms. It takes some 150
    bytes a token.
    """

    def __init__(self, known: array[int]) -> None:
        self._known = known
        self._begin = max(len(known) - _WINDOW, 0)
        """The first token that is looked at."""
        view = np.frombuffer(known, np.int32)[self._begin :].astype(np.int64)
        pairs = (view[:-2] << _BITS) + view[1:-1]
        self._latest = dict(zip(pairs.tolist(), range(_LEAST, view.size), strict=True))
        """By pair the place behind the last one, counted from the first token that is looked at."""
        self._earlier = array("i", _earlier(pairs).tobytes())
        """For each place behind a pair, from the third one on, the place behind the same pair before it; or -1."""

    def add(self, place: int) -> None:
        """The token at `place` follows a pair."""
        place -= self._begin
        if place < _LEAST:
            return
        pair = self._pair(place - 1)
        self._earlier.append(self._latest.get(pair, -1))
        self._latest[pair] = place

    def behind(self, last: int) -> Iterator[int]:
        """The latest places behind such a pair as that which ends at `last`, latest first."""
        last -= self._begin
        place = self._latest.get(self._pair(last), -1) if last > 0 else -1
        for _ in range(_PLACES):
            if place < 0:
                return
            yield self._begin + place
            place = self._earlier[place - _LEAST]

    def _pair(self, last: int) -> int:
        known, at = self._known, self._begin + last
        return (known[at - 1] << _BITS) + known[at]


def _earlier(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """For each pair the place behind the same one before it, which is two more than its own; -1 for the first."""
    earlier = np.full(pairs.size, -1, np.int32)
    order = pairs.argsort(kind="stable")
    again = pairs[order[1:]] == pairs[order[:-1]]
    earlier[order[1:][again]] = order[:-1][again] + _LEAST
    return earlier


def _agreement(known: array[int], place: int, last: int) -> int:
    """How many tokens before `place` are those up to `last`, as far as that makes a difference: two or more."""
    most = min(place, len(_CLASSES))
    agreed = _LEAST
    while agreed < most and known[place - 1 - agreed] == known[last - agreed]:
        agreed += 1
    return agreed


def _class(agreed: int) -> int:
    return _CLASSES[min(agreed, len(_CLASSES) - 1)]
