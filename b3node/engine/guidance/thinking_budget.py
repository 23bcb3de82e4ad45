"""The budget of an answer's thinking: when it is used up, and the tokens that close the thinking then."""

from __future__ import annotations

import sys
from array import array
from typing import Final

from b3node.dialects.outline import Thinking
from b3node.engine.guidance.repetition import Repetition
from b3node.engine.sampling.constraint import ConstraintError

_MAX_CONTINUATION_BYTES: Final = 3
"""Bytes of a character of UTF-8 after its first one, at most."""


class ThinkingBudget:
    """Counts the tokens of an answer's thinking; `feed` and `close` mutate it.

    Raises:
        ConstraintError: no tokens close thinking, or not tokens of this vocabulary.
    """

    def __init__(self, thinking: Thinking, n_vocab: int) -> None:
        self._tokens_left = thinking.budget
        self._closing = array("i")
        try:
            self._closing.frombytes(thinking.closing)
        except ValueError as error:
            raise ConstraintError("what closes a thought is no sequence of tokens") from error
        if sys.byteorder == "big":
            self._closing.byteswap()
        if not self._closing or min(self._closing) < 0 or max(self._closing) >= n_vocab:
            raise ConstraintError("a thought is bounded, but not by tokens of this vocabulary")
        self._repetition = Repetition()
        self._looping = False
        self._tail = b""
        self._given_up = False

    @property
    def reached(self) -> bool:
        """Whether thinking must be closed before its next token.

        An unfinished character is completed first.
        """
        spent = self._tokens_left <= 0 or self._looping
        return spent and not self._given_up and not _within_character(self._tail)

    def feed(self, token: int, piece: bytes) -> None:
        """Takes in a token that was written while thinking."""
        self._tokens_left -= 1
        self._looping = self._looping or self._repetition.feed(token)
        self._tail = (self._tail + piece)[-_MAX_CONTINUATION_BYTES:]

    def close(self) -> array[int]:
        """Returns the tokens that close thinking, and starts anew to look for loops."""
        self._looping, self._repetition, self._tail = False, Repetition(), b""
        return self._closing

    def give_up(self) -> None:
        """Records that those tokens did not close thinking: they are not tried again."""
        self._given_up = True


def _within_character(end: bytes) -> bool:
    """Returns whether a text ends in the middle of a character of UTF-8; `end` are its last bytes."""
    for behind, byte in enumerate(reversed(end)):
        if byte < 0x80:
            return False
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return behind + 1 < length
    return False
