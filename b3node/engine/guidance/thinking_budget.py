"""The bound of the thoughts of one answer: when they have gone on for long enough, and what ends them then."""

from __future__ import annotations

import sys
from array import array
from typing import Final

from b3node.dialects.outline import Thinking
from b3node.engine.guidance.repetition import Repetition
from b3node.engine.sampling.constraint import ConstraintError

_CONTINUATIONS: Final = 3
"""Bytes of a character behind its first one, at most."""


class ThinkingBudget:
    """Counts the tokens of an answer's thoughts; `feed` and `close` mutate it.

    `reached` says that the thought is to be closed now. A character that is being written is completed before.

    Raises:
        ConstraintError: there is nothing that closes a thought, or no such token.
    """

    def __init__(self, thinking: Thinking, n_vocab: int) -> None:
        self._left = thinking.budget
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
        self._last = b""
        self._useless = False

    @property
    def reached(self) -> bool:
        """Whether the thought has to be closed before its next token."""
        spent = self._left <= 0 or self._looping
        return spent and not self._useless and not _within_character(self._last)

    def feed(self, token: int, piece: bytes) -> None:
        """A token was written in a thought."""
        self._left -= 1
        self._looping = self._looping or self._repetition.feed(token)
        self._last = (self._last + piece)[-_CONTINUATIONS:]

    def close(self) -> array[int]:
        """The tokens that close the thought. Whatever was read as a loop is behind it then."""
        self._looping, self._repetition, self._last = False, Repetition(), b""
        return self._closing

    def give_up(self) -> None:
        """The thought was not closed by what closes it: it is not tried again."""
        self._useless = True


def _within_character(end: bytes) -> bool:
    """Whether a text ends in the middle of a character of UTF-8; `end` are its last bytes."""
    for behind, byte in enumerate(reversed(end)):
        if byte < 0x80:
            return False
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return behind + 1 < length
    return False
