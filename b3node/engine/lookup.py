"""Prompt lookup: guesses how a sequence goes on, from where it said the same before.

Agents quote files, answers repeat questions, code repeats itself, JSON its keys: where the last tokens of a sequence
stand in it already, what followed there often follows here. How often is learnt from the sequence alone: each new token
is compared with the guess that was, or would have been, made for it, in classes by how many tokens agreed before it.

Proposed by A. Saxena, "Prompt Lookup Decoding" (2023).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence as Many
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

RATE: Final = 0.05
"""Weight of the newest guess in what is learnt of a class of guesses: a short streak of luck must not make it dear."""
_LEAST: Final = 2
"""Tokens that have to agree before anything is guessed."""
_WINDOW: Final = 16_384
"""Tokens that are looked through: 0.01 ms."""
_PLACES: Final = 4
"""Places where the last tokens stood, latest first, that are compared."""
_CLASSES: Final = (0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5)
"""The class of so many tokens that agree; the last one for all longer ones."""
_AT_FIRST: Final = (0.35, 0.5, 0.6, 0.7, 0.85, 0.95)
"""How often a guess of each class is right, before anything was learnt of a sequence: as often as in SmolLM2's answers."""


class Guess(NamedTuple):
    """A token that may come next, and how likely that is taken to be."""

    token: int
    chance: float


class Lookup:
    """Guesses for one sequence out of itself; `feed` mutates it.

    Args:
        known: the sequence's tokens; grows, and is never changed here.
    """

    def __init__(self, known: array[int]) -> None:
        self._known = known
        self._odds = list(_AT_FIRST)
        self._next = -1
        """The place of the token that is guessed to come next; -1 where there is no guess."""
        self._agreed = 0
        """How many tokens before that place are the last ones."""

    def feed(self) -> None:
        """A token was appended to the known ones."""
        if self._next >= 0:
            right = self._known[self._next] == self._known[-1]
            which = _class(self._agreed)
            self._odds[which] += RATE * (right - self._odds[which])
            if right:
                self._next += 1
                self._agreed += 1
                return
        self._search()

    def guess(self, draft: Many[int]) -> Guess | None:
        """The token behind the known ones and a draft of such guesses; None where there is none. Changes nothing."""
        if self._next < 0:
            return None
        place = (
            self._next + len(draft) - len(self._known)
        )  # a repeated text may be shorter than a draft of it
        token = self._known[place] if place < 0 else draft[place]
        return Guess(token, self._odds[_class(self._agreed + len(draft))])

    def _search(self) -> None:
        """Finds where most of the last tokens stood before, the latest place among equals."""
        self._next, self._agreed = -1, 0
        view = np.frombuffer(self._known, np.int32)[-_WINDOW:]
        if view.size <= _LEAST:
            return
        same = (view[1:-1] == view[-1]) & (view[:-2] == view[-2])
        for place in (same.nonzero()[0][: -_PLACES - 1 : -1] + _LEAST).tolist():
            if (agreed := _agreement(view, place)) > self._agreed:
                self._next, self._agreed = len(self._known) - view.size + place, agreed


def _agreement(view: npt.NDArray[np.int32], place: int) -> int:
    """How many tokens before `place` are the last ones, as far as that makes a difference."""
    size = min(place, len(_CLASSES))
    differs = view[place - size : place][::-1] != view[-size:][::-1]
    return int(differs.argmax()) if differs.any() else size


def _class(agreed: int) -> int:
    return _CLASSES[min(agreed, len(_CLASSES) - 1)]
