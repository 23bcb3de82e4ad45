"""The vocabulary of every model in the zoo: 281 tokens that behave like a real byte-level BPE.

Ids 0 to 255 are the bytes in byte order, so any text can be written; then 18 merges, two line feeds among
them; then the seven special tokens that turns, reasoning and tool calls of the Qwen family are written with.
A script (see `script`) appends tokens of its own, never changes these.

What must hold, and is checked by `test_vocabulary`:
- A token's bytes are known here without a model (`Token.piece`), and llama.cpp agrees.
- Two tokens never store the same text: llama.cpp aborts the process at load.
- Special tokens come in two variants. Real converters mark only the `<|..|>` ones CONTROL and leave
  `<think>`, `<tool_call>` and their ends USER_DEFINED, so llama.cpp parses those out of a user's text even
  with parse_special=False. `base(strict=True)` marks all seven CONTROL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import Final


class TokenType(IntEnum):
    """`tokenizer.ggml.token_type` of GGUF."""

    NORMAL = 1
    CONTROL = 3
    USER_DEFINED = 4
    BYTE = 6


def _byte_alphabet() -> tuple[str, ...]:
    """GPT-2's character for each byte: printable Latin-1 stands for itself, the rest from U+0100 on."""
    itself = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (chr(code) for code in range(0x100, 0x200))
    return tuple(chr(byte) if byte in itself else next(others) for byte in range(256))


ALPHABET: Final = _byte_alphabet()
_BYTE_OF: Final = {char: byte for byte, char in enumerate(ALPHABET)}

MERGES: Final = (
    *("Ċ Ċ", "t h", "th e", "Ġ the", "i n", "e r", "o n", "a n", "an d"),
    *("r e", "u s", "us er", "a s", "Ġ a", "Ġ Ġ", '" :', '{ "', "i s"),
)
"""Pairs in the byte alphabet, best rank first; each makes one token (Ġ is a space, Ċ a line feed)."""

SPECIALS: Final = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<think>", "</think>", "<tool_call>", "</tool_call>"),
)
N_BASE: Final = 256 + len(MERGES) + len(SPECIALS)
ENDOFTEXT, IM_START, IM_END, THINK, END_THINK, TOOL_CALL, END_TOOL_CALL = range(N_BASE - 7, N_BASE)
EOS: Final = IM_END
EOG: Final = frozenset({ENDOFTEXT, IM_END})
"""The end-of-generation ids: llama.cpp finds both by their text, whatever eos is set to."""


@dataclass(frozen=True, slots=True)
class Token:
    """A vocabulary entry: `text` as the file stores it, `piece` the bytes that it stands for."""

    text: bytes
    type: TokenType
    piece: bytes


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id. The first `N_BASE` are always the same; what follows belongs to one script."""

    tokens: tuple[Token, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def extended(self, more: Sequence[Token]) -> Vocabulary:
        """This vocabulary with `more` appended. Raises ValueError if a stored text would occur twice."""
        longer = Vocabulary((*self.tokens, *more))
        if len({token.text for token in longer.tokens}) != len(longer):
            raise ValueError("two tokens with the same stored text: llama.cpp would abort at load")
        return longer

    @cached_property
    def _base_ids(self) -> dict[bytes, int]:
        return {token.piece: number for number, token in enumerate(self.tokens[:N_BASE])}

    def id(self, text: str) -> int:
        """The base token that reads `text` (a special, a merge or one byte). Raises KeyError if none does."""
        return self._base_ids[text.encode()]

    def join(self, ids: Sequence[int]) -> bytes:
        """The bytes of `ids`, special tokens as their text."""
        return b"".join(self.tokens[token].piece for token in ids)


def stored(piece: bytes) -> bytes:
    """The canonical stored text of a NORMAL token that reads `piece`: the byte alphabet in UTF-8."""
    return "".join(ALPHABET[byte] for byte in piece).encode()


def _plain(text: str) -> Token:
    return Token(text.encode(), TokenType.NORMAL, bytes(_BYTE_OF[char] for char in text))


def _special(text: str, *, strict: bool) -> Token:
    control = strict or text.startswith("<|")
    return Token(text.encode(), TokenType.CONTROL if control else TokenType.USER_DEFINED, text.encode())


@cache
def base(*, strict: bool = False) -> Vocabulary:
    """The 281 tokens; `strict` makes all seven specials CONTROL (see the module's essay)."""
    plain = [_plain(text) for text in (*ALPHABET, *(merge.replace(" ", "") for merge in MERGES))]
    return Vocabulary(()).extended([*plain, *(_special(text, strict=strict) for text in SPECIALS)])
