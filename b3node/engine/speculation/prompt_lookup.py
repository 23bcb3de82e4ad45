"""Prompt lookup: drafts the continuation of a sequence from an earlier place with the same tokens.

Agents quote files, answers repeat questions, code repeats itself, JSON its keys: if the last tokens of a
sequence stand in it already, the tokens that followed there often follow here. How often is learnt from the
sequence alone: each new token is compared with the guess that was, or would have been, made for it, in
classes by how many tokens agreed before it.

Proposed by A. Saxena, "Prompt Lookup Decoding" (2023).
"""

from __future__ import annotations

from array import array
from collections import abc
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

LEARNING_RATE: Final = 0.05
"""Weight of the newest guess in the odds of its class: a short streak of luck must not raise them far."""
_MIN_AGREED: Final = 2
"""Tokens that have to agree before any is guessed."""
_WINDOW_TOKENS: Final = 16_384
"""Last tokens of a prompt that are searched."""
_TOKEN_BITS: Final = 32
"""Bits of a token id in a pair's key."""
_MAX_PLACES: Final = 4
"""Places of the last tokens that are compared, latest first."""
_CLASS_OF_AGREED: Final = (0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 5)
"""Class by how many tokens agree; the last one for all larger numbers."""
_INITIAL_ODDS: Final = (0.35, 0.5, 0.6, 0.7, 0.85, 0.95)
"""How often a guess of each class is right, before any was checked: measured on SmolLM2's answers."""


class DraftToken(NamedTuple):
    """A token that may come next, and its estimated chance."""

    token: int
    chance: float


class PromptLookup:
    """Guesses for one sequence out of its own tokens; `feed` mutates it.

    Args:
        known: the sequence's tokens; grows, and is never changed here.
    """

    def __init__(self, known: array[int]) -> None:
        self._known = known
        self._pairs = _Pairs(known)
        self._odds = list(_INITIAL_ODDS)
        self._guessed: int | None = None
        """The place of the token that is guessed to come next; None if there is no guess."""
        self._agreed = 0
        """How many tokens before that place agree with the last ones."""

    def feed(self, place: int) -> None:
        """Takes in the token at `place`, which is the one after those taken in before."""
        known = self._known
        self._pairs.add(place)
        if self._guessed is not None:
            right = known[self._guessed] == known[place]
            which = _class(self._agreed)
            self._odds[which] += LEARNING_RATE * (right - self._odds[which])
            if right:
                self._guessed += 1
                self._agreed += 1
                return
        self._search(place)

    @property
    def has_guess(self) -> bool:
        """Whether there is a guess for the token after the known ones."""
        return self._guessed is not None

    def guess(self, draft: abc.Sequence[int]) -> DraftToken | None:
        """Returns the token after the known ones and a draft of such guesses, or None; changes nothing."""
        if self._guessed is None:
            return None
        # Counted from the end of the known tokens: a repeated text may be shorter than a draft of it.
        place = self._guessed + len(draft) - len(self._known)
        token = self._known[place] if place < 0 else draft[place]
        return DraftToken(token, self._odds[_class(self._agreed + len(draft))])

    def _search(self, last: int) -> None:
        """Finds the place before which most tokens agree with those up to `last`; the latest among equals."""
        self._guessed, self._agreed = None, 0
        for place in self._pairs.places_after(last):
            if (agreed := _agreement(self._known, place, last)) > self._agreed:
                self._guessed, self._agreed = place, agreed


class _Pairs:
    """Index of the places of each two consecutive tokens: the last ones of a prompt, and all later ones.

    Searching the tokens themselves costs a step of one small stream 0.03 ms. The index takes some 150 bytes a
    token.
    """

    def __init__(self, known: array[int]) -> None:
        self._known = known
        self._begin = max(len(known) - _WINDOW_TOKENS, 0)
        """The first token that is indexed."""
        view = np.frombuffer(known, np.int32)[self._begin :].astype(np.int64)
        pairs = (view[:-2] << _TOKEN_BITS) + view[1:-1]
        self._latest = dict(zip(pairs.tolist(), range(_MIN_AGREED, view.size), strict=True))
        """By pair, the place after its latest occurrence, counted from the first indexed token."""
        self._previous = array("i", _previous(pairs).tobytes())
        """For each place after a pair, from the third one on, the place after the previous occurrence of that
        pair; or -1."""

    def add(self, place: int) -> None:
        """Takes in that the token at `place` follows a pair."""
        place -= self._begin
        if place < _MIN_AGREED:
            return
        pair = self._pair(place - 1)
        self._previous.append(self._latest.get(pair, -1))
        self._latest[pair] = place

    def places_after(self, last: int) -> Iterator[int]:
        """Yields the latest places after the pair that ends at `last`, latest first."""
        last -= self._begin
        place = self._latest.get(self._pair(last), -1) if last > 0 else -1
        for _ in range(_MAX_PLACES):
            if place < 0:
                return
            yield self._begin + place
            place = self._previous[place - _MIN_AGREED]

    def _pair(self, last: int) -> int:
        known, at = self._known, self._begin + last
        return (known[at - 1] << _TOKEN_BITS) + known[at]


def _previous(pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Returns for each pair the place after its previous occurrence, two more than its own, or -1."""
    previous = np.full(pairs.size, -1, np.int32)
    order = pairs.argsort(kind="stable")
    again = pairs[order[1:]] == pairs[order[:-1]]
    previous[order[1:][again]] = order[:-1][again] + _MIN_AGREED
    return previous


def _agreement(known: array[int], place: int, last: int) -> int:
    """Returns how many tokens before `place` are those up to `last`: two or more, no further than counts."""
    most = min(place, len(_CLASS_OF_AGREED))
    agreed = _MIN_AGREED
    while agreed < most and known[place - 1 - agreed] == known[last - agreed]:
        agreed += 1
    return agreed


def _class(agreed: int) -> int:
    return _CLASS_OF_AGREED[min(agreed, len(_CLASS_OF_AGREED) - 1)]
