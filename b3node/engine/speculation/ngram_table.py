"""N-grams of one organization's answers: the tokens that followed the last two or three, in fixed tables.

Requests to one service are alike, and so are their answers: "The capital of", the keys of a record, the
phrases that a model likes. A sequence's own text (`prompt_lookup`) contains them only once it has repeated
them. The table belongs to a namespace, as a prefix in the cache does: how fast an answer comes may depend on
other answers, so these are never those of another organization.

An entry holds the token that lately followed more often than all others together: each token that follows
adds a vote for it or takes one away, and at none it is replaced (R. S. Boyer and J S. Moore, "MJRTY: A Fast
Majority Vote Algorithm", 1981). Two contexts with one entry compete for it in the same way. How often entries
are right is learnt by their votes.
"""

from __future__ import annotations

from array import array
from collections import abc
from typing import Final

from b3node.engine.speculation.prompt_lookup import LEARNING_RATE, DraftToken

CONTEXT_TOKENS: Final = 3
"""Tokens of the longest context."""
_TABLE_ENTRIES: Final = 1 << 15
"""Entries of each of the two tables: 13 bytes each, under 1 MiB for the greedy answers of a namespace, and
for its drawn ones; 10,000 tokens fill a third at most."""
_TOKEN_BITS: Final = 20
"""Bits of a token id in a context's key: no vocabulary has a million tokens, and keys of a larger one may
coincide."""
_KEY_MASK: Final = (1 << 3 * _TOKEN_BITS) - 1
_HASH_FACTOR: Final = 0x9E3779B97F4A7C15
"""Factor of Fibonacci hashing (D. Knuth, The Art of Computer Programming 3, 6.4): the upper bits of the
product spread the keys."""
_MAX_VOTES: Final = 6
"""Votes of an entry, at most: a new token must not wait for ever."""
_INITIAL_ODDS: Final = ((0.25, 0.35, 0.4, 0.4, 0.4, 0.6), (0.45, 0.65, 0.7, 0.75, 0.75, 0.85))
"""How often guesses after two tokens and after three are right, by their votes, before any was checked:
measured on SmolLM2's stories."""


class NgramTable:
    """The tables of one namespace; `learn` mutates them."""

    def __init__(self) -> None:
        self._tables = (_ContextTable(CONTEXT_TOKENS - 1), _ContextTable(CONTEXT_TOKENS))

    def learn(self, known: abc.Sequence[int], *, judge: bool) -> None:
        """Takes in that the last of the tokens followed the others.

        With `judge`, the table with the longest context that knows it learns how often its guesses are right.
        That is for tokens that nothing else could guess: where a text repeats itself all guesses are right,
        and odds learnt there promise 0.9 for the others, of which 0.78 are.
        """
        before, token = known[-CONTEXT_TOKENS - 1 : -1], known[-1]
        for table in reversed(self._tables):
            if table.learn(before, token, judge=judge):
                judge = False

    def guess(self, before: abc.Sequence[int]) -> DraftToken | None:
        """Returns a token that may follow `before`, of which the last three count.

        None if the context is unknown.
        """
        for table in reversed(self._tables):
            if (guess := table.guess(before)) is not None:
                return guess
        return None


class _ContextTable:
    """Followers of `size` tokens."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._keys = array("q", [-1]) * _TABLE_ENTRIES
        self._tokens = array("i", [0]) * _TABLE_ENTRIES
        self._votes = array("b", [0]) * _TABLE_ENTRIES
        self._odds = [0.0, *_INITIAL_ODDS[size - 2]]

    def learn(self, before: abc.Sequence[int], token: int, *, judge: bool) -> bool:
        """Takes in a token that followed; returns whether its context was known.

        With `judge`, also learns how often guesses are right.
        """
        if len(before) < self._size:
            return False
        key = self._key(before)
        entry = _entry(key)
        votes, known = self._votes[entry], self._keys[entry] == key
        right = known and self._tokens[entry] == token
        if known and judge:
            self._odds[votes] += LEARNING_RATE * (right - self._odds[votes])
        if right:
            self._votes[entry] = min(votes + 1, _MAX_VOTES)
        elif votes > 1:
            self._votes[entry] = votes - 1
        else:
            self._keys[entry], self._tokens[entry], self._votes[entry] = key, token, 1
        return known

    def guess(self, before: abc.Sequence[int]) -> DraftToken | None:
        if len(before) < self._size:
            return None
        key = self._key(before)
        entry = _entry(key)
        if self._keys[entry] != key:
            return None
        return DraftToken(self._tokens[entry], self._odds[self._votes[entry]])

    def _key(self, before: abc.Sequence[int]) -> int:
        key = 0
        for token in before[-self._size :]:
            key = (key << _TOKEN_BITS ^ token) & _KEY_MASK
        return key


def _entry(key: int) -> int:
    return (key * _HASH_FACTOR >> 40) % _TABLE_ENTRIES
