"""The plain dialect: all that the model writes is its answer."""

from __future__ import annotations

from b3node.parse.deltas import Delta, TextDelta
from b3node.parse.utf8 import Utf8Decoder


class TextParser:
    """A `Parser` that knows no markers."""

    thinking = False
    """The plain dialect has no thoughts."""

    def __init__(self) -> None:
        self._utf8 = Utf8Decoder()

    def feed(self, piece: bytes) -> list[Delta]:
        """The text that `piece` completes, if any."""
        return _text(self._utf8.feed(piece))

    def finish(self) -> list[Delta]:
        """What an unfinished character leaves, if any."""
        return _text(self._utf8.finish())


def _text(text: str) -> list[Delta]:
    return [TextDelta(text)] if text else []
