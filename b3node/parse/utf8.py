"""Decodes UTF-8 in pieces: a token may end in the middle of a character."""

from __future__ import annotations

import codecs


class Utf8Decoder:
    """An incremental UTF-8 decoder; its joined output is the same for any chunking of the bytes.

    Bytes that are no UTF-8 become U+FFFD, one for each maximal ill-formed part, as in
    `bytes.decode(errors="replace")` (Unicode 17, section 3.9). It holds back at most three bytes.
    """

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> str:
        """Returns the characters that `piece` completes; may be empty."""
        data = self._held + piece
        text, used = codecs.utf_8_decode(data, "replace", False)
        self._held = data[used:]
        return text

    def finish(self) -> str:
        """Returns U+FFFD for a character that was never completed, or nothing. Must be the last call."""
        return self._held.decode(errors="replace")
