"""Bytes to text, piece by piece: a token may end in the middle of a character."""

from __future__ import annotations

import codecs

_decoder = codecs.getincrementaldecoder("utf-8")


class Utf8Decoder:
    """An incremental UTF-8 decoder; the parts it returns, joined, are the same for any cutting of the bytes.

    Bytes that are no UTF-8 become U+FFFD, one for each maximal ill-formed part, as in
    `bytes.decode(errors="replace")` (Unicode 17, section 3.9). It holds back at most three bytes.
    """

    def __init__(self) -> None:
        self._decoder = _decoder("replace")

    def feed(self, piece: bytes) -> str:
        """The characters that `piece` completes; may be empty."""
        return self._decoder.decode(piece)

    def finish(self) -> str:
        """What a character that was never completed leaves: U+FFFD, or nothing. The last call of all."""
        return self._decoder.decode(b"", final=True)
