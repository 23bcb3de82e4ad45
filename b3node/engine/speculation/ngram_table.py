"""What one organization's answers say often: which token followed the last two or three, in a table of fixed size.

Requests to one service are alike, and so are their answers: "The capital of", the keys of a record, the phrases that a
model likes. A sequence's own text (`lookup`) knows of them only what it has said itself. The table is a namespace's
own, as a prefix in the cache is: how fast an answer comes may depend on what others have said, so others are never
those of another organization.

An entry holds the token that followed lately more often than all others together: what follows adds a vote for it or
takes one away, and at none it is replaced (R. S. Boyer and J S. Moore, "MJRTY: A Fast Majority Vote Algorithm", 1981). Two
contexts with one place fight over it in the same way. How often entries are right is learnt by their votes.
"""

from __future__ import annotations

from array import array
from collections import abc
from typing import Final

from b3node.engine.speculation.prompt_lookup import RATE, DraftToken

CONTEXT: Final = 3
"""Tokens that count for what follows them."""
_PLACES: Final = 1 << 15
"""Entries of each of the two tables: 13 bytes each, under 1 MiB a namespace; 10,000 tokens fill a third at most."""
_BITS: Final = 20
"""Bits of a token id in a context's key: no vocabulary has a million tokens, and of a larger one keys may coincide."""
_KEY: Final = (1 << 3 * _BITS) - 1
_MIX: Final = 0x9E3779B97F4A7C15
"""Fibonacci hashing (D. Knuth, The Art of Computer Programming 3, 6.4): its product's upper bits tell keys apart."""
_VOTES: Final = 6
"""Votes that an entry can have, at most: what is new must not wait for ever."""
_AT_FIRST: Final = ((0.25, 0.35, 0.4, 0.4, 0.4, 0.6), (0.45, 0.65, 0.7, 0.75, 0.75, 0.85))
"""How often guesses behind two tokens and behind three are right, by their votes, before anything was learnt: as often as
in SmolLM2's stories."""


class NgramTable:
    """The tables of one namespace; `learn` mutates them."""

    def __init__(self) -> None:
        self._tables = (_ContextTable(CONTEXT - 1), _ContextTable(CONTEXT))

    def learn(self, known: abc.Sequence[int]) -> None:
        """The last of the tokens followed the others. The table with the longest context that knows it is judged."""
        before, token = known[-CONTEXT - 1 : -1], known[-1]
        judged = False
        for table in reversed(self._tables):
            judged = table.learn(before, token, judge=not judged) or judged

    def guess(self, before: abc.Sequence[int]) -> DraftToken | None:
        """What follows such tokens, of which the last three count; None where nothing is known. Changes nothing."""
        for table in reversed(self._tables):
            if (guess := table.guess(before)) is not None:
                return guess
        return None


class _ContextTable:
    """What follows `size` tokens."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys = array("q", [-1]) * _PLACES
        self._tokens = array("i", [0]) * _PLACES
        self._votes = array("b", [0]) * _PLACES
        self._odds = [0.0, *_AT_FIRST[size - 2]]

    def learn(self, before: abc.Sequence[int], token: int, *, judge: bool) -> bool:
        """Takes in what followed; whether that context was known. With `judge`, learns how often guesses are right."""
        if len(before) < self._size:
            return False
        key = self._key(before)
        place = _place(key)
        votes, known = self._votes[place], self._keys[place] == key
        right = known and self._tokens[place] == token
        if known and judge:
            self._odds[votes] += RATE * (right - self._odds[votes])
        if right:
            self._votes[place] = min(votes + 1, _VOTES)
        elif votes > 1:
            self._votes[place] = votes - 1
        else:
            self._keys[place], self._tokens[place], self._votes[place] = key, token, 1
        return known

    def guess(self, before: abc.Sequence[int]) -> DraftToken | None:
        if len(before) < self._size:
            return None
        key = self._key(before)
        place = _place(key)
        if self._keys[place] != key:
            return None
        return DraftToken(self._tokens[place], self._odds[self._votes[place]])

    def _key(self, before: abc.Sequence[int]) -> int:
        key = 0
        for token in before[-self._size :]:
            key = (key << _BITS ^ token) & _KEY
        return key


def _place(key: int) -> int:
    return (key * _MIX >> 40) % _PLACES
