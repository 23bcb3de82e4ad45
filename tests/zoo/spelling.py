"""New tokens for bytes that other tokens read already.

A script needs every one of its pieces to be a token of its own, but llama.cpp refuses two tokens with the
same stored text, and text to bytes is one to one. Two doors are open:

- llama.cpp decodes a NORMAL token's stored text with a lax UTF-8 decoder, so each character may be written
  in overlong UTF-8 (`a` as c1 a1, e0 81 a1 or f0 80 81 a1): 3 to 4 spellings a character.
- A BYTE token's value is read from characters 3 and 4 of its text, in hex; the others are free.

Such a token never comes out of tokenizing a prompt: NORMAL and BYTE tokens are reached through merges only,
and these have none. Never give one another type: CONTROL and USER_DEFINED texts are searched for in prompts.

Both doors are habits of this llama.cpp, not promises. Were they shut, pieces would read `[UNK_BYTE_..]`, and
`test_scripted` would say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.zoo.vocabulary import ALPHABET, Token, TokenType, Vocabulary

_BYTE_SPELLINGS = 4096  # three free hex digits


class Spelling:
    """Hands out tokens, no two with the same stored text, none with a text of `vocabulary`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._used = {token.text for token in vocabulary.tokens}
        self._open: dict[bytes, Iterator[Token]] = {}

    def token(self, piece: bytes) -> Token:
        """A new token that reads `piece`. Raises ValueError if `piece` is empty or no spelling is left."""
        if not piece:
            raise ValueError("a piece is at least one byte: llama.cpp renames empty tokens")
        for token in self._open.setdefault(piece, _spellings(piece)):
            if token.text not in self._used:
                self._used.add(token.text)
                return token
        raise ValueError(f"no spelling is left for {piece!r}")


def _spellings(piece: bytes) -> Iterator[Token]:
    for characters in product(*(_overlong(ord(ALPHABET[byte])) for byte in piece)):
        yield Token(b"".join(characters), TokenType.NORMAL, piece)
    if len(piece) == 1:
        for number in range(_BYTE_SPELLINGS):
            yield Token(f"{number:03x}{piece[0]:02x}#".encode(), TokenType.BYTE, piece)


def _overlong(code: int) -> list[bytes]:
    """All UTF-8 spellings of `code` (below U+0800), the proper one first."""
    spellings = [chr(code).encode()]
    if code < 0x80:
        spellings.append(bytes([0xC0 | code >> 6, 0x80 | code & 0x3F]))
    spellings.append(bytes([0xE0, 0x80 | code >> 6, 0x80 | code & 0x3F]))
    spellings.append(bytes([0xF0, 0x80, 0x80 | code >> 6, 0x80 | code & 0x3F]))
    return spellings
