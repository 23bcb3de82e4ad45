"""The interface of a dialect's parser, and the parser of the plain dialect."""

from __future__ import annotations

from typing import Protocol

from b3node.parse.deltas import Delta, TextDelta
from b3node.parse.utf8 import Utf8Decoder


class Parser(Protocol):
    """Turns a model's output into deltas; any chunking of the bytes gives the same result.

    Deltas keep the order that `events.states` asks for, and a call with a `CallEnd` has complete arguments.
    Neither method ever raises because of a model's output.
    """

    @property
    def thinking(self) -> bool:
        """Whether the next bytes belong to thinking, as far as known."""

    def feed(self, piece: bytes) -> list[Delta]:
        """Returns the deltas that are certain with `piece`; a possible marker is held back."""

    def finish(self) -> list[Delta]:
        """Returns the deltas that were held back. Must be the last call; an open call stays open."""


class TextParser:
    """The parser of the plain dialect, which has no markers: all output is the answer."""

    thinking = False
    """The plain dialect has no thinking."""

    def __init__(self) -> None:
        self._utf8 = Utf8Decoder()

    def feed(self, piece: bytes) -> list[Delta]:
        """Returns the text that `piece` completes, if any."""
        return _text(self._utf8.feed(piece))

    def finish(self) -> list[Delta]:
        """Returns the replacement of an unfinished character, if any."""
        return _text(self._utf8.finish())


def _text(text: str) -> list[Delta]:
    return [TextDelta(text)] if text else []
