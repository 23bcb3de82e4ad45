"""Detects that a text repeats itself without end, by its tokens.

A model that loops while it thinks never comes to an answer. A loop is the same stretch of at most
`MAX_PERIOD_TOKENS` tokens, at least `MIN_REPEATS` times in a row without a change, over at least
`MIN_LOOP_TOKENS` tokens.

The numbers: in 582,000 tokens of source code, documentation and templates nothing counts as a loop. Half of
`MIN_LOOP_TOKENS` took a matrix of 64 zeros and a song's four equal verses for one.
"""

from __future__ import annotations

from array import array
from typing import Final

MAX_PERIOD_TOKENS: Final = 128
"""Length of the longest repeated stretch that is found."""
MIN_REPEATS: Final = 4
"""Times that the stretch must come in a row."""
MIN_LOOP_TOKENS: Final = 192
"""Length of all repeats together."""
CHECK_EVERY_TOKENS: Final = 16
"""Tokens between two checks: one costs some microseconds, and a loop does not run away."""

_TOKEN_BYTES: Final = 4
"""Bytes of a token."""
_TAIL_BYTES: Final = MIN_REPEATS * MAX_PERIOD_TOKENS * _TOKEN_BYTES
"""Bytes of the last tokens, kept for the next check."""


class Repetition:
    """Watches a sequence of tokens; `feed` mutates it. Memory is bounded."""

    def __init__(self) -> None:
        self._tail = b""
        self._new = array("i")

    def feed(self, token: int) -> bool:
        """Takes in a token.

        Returns whether the text loops now, which is checked every `CHECK_EVERY_TOKENS` tokens.
        """
        self._new.append(token)
        if len(self._new) < CHECK_EVERY_TOKENS:
            return False
        self._tail = (self._tail + self._new.tobytes())[-_TAIL_BYTES:]
        del self._new[:]
        return loops(self._tail)


def loops(tail: bytes) -> bool:
    """Returns whether a text ends with a loop; `tail` are its last tokens, as int32.

    A stretch that is repeated over `MIN_LOOP_TOKENS` tokens is found wherever the last `MIN_LOOP_TOKENS /
    MIN_REPEATS` tokens stand before.
    """
    probe = tail[-MIN_LOOP_TOKENS // MIN_REPEATS * _TOKEN_BYTES :]
    last = len(tail) - len(probe)
    at = last
    while (
        at := tail.rfind(probe, max(last - MAX_PERIOD_TOKENS * _TOKEN_BYTES, 0), at + len(probe) - 1)
    ) >= 0:
        period = last - at
        span = max(MIN_REPEATS * period, MIN_LOOP_TOKENS * _TOKEN_BYTES)
        if period % _TOKEN_BYTES == 0 and len(tail) >= span and tail[-span:-period] == tail[period - span :]:
            return True
    return False
