"""Tells when a text goes round in circles, by its tokens.

A model that loops in its thought never comes to an answer. What counts as a loop: the same stretch of at most
`PERIOD` tokens, at least `TIMES` times in a row without a change, over at least `TOKENS` tokens.

The numbers: in 582,000 tokens of source code, documentation and templates nothing counts as one. Half of `TOKENS`
took a matrix of 64 zeros and a song's four equal verses for one.
"""

from __future__ import annotations

from array import array
from typing import Final

PERIOD: Final = 128
"""Tokens of the longest stretch that is looked for."""
TIMES: Final = 4
TOKENS: Final = 192
EVERY: Final = 16
"""Tokens between two looks: one costs some microseconds, and a loop does not run away."""

_WIDTH: Final = 4
"""Bytes of a token."""
_KEPT: Final = TIMES * PERIOD * _WIDTH


class Repetition:
    """Watches a sequence of tokens; `feed` mutates it. Memory is bounded."""

    def __init__(self) -> None:
        self._tail = b""
        self._new = array("i")

    def feed(self, token: int) -> bool:
        """Whether the text is found to loop now; it is looked at every `EVERY` tokens."""
        self._new.append(token)
        if len(self._new) < EVERY:
            return False
        self._tail = (self._tail + self._new.tobytes())[-_KEPT:]
        del self._new[:]
        return loops(self._tail)


def loops(tail: bytes) -> bool:
    """Whether a text ends with a loop; `tail` are its last tokens, as int32.

    A stretch that is repeated over `TOKENS` tokens is found wherever the last `TOKENS / TIMES` have been before.
    """
    probe = tail[-TOKENS // TIMES * _WIDTH :]
    last = len(tail) - len(probe)
    at = last
    while (at := tail.rfind(probe, max(last - PERIOD * _WIDTH, 0), at + len(probe) - 1)) >= 0:
        period = last - at
        span = max(TIMES * period, TOKENS * _WIDTH)
        if period % _WIDTH == 0 and len(tail) >= span and tail[-span:-period] == tail[period - span :]:
            return True
    return False
