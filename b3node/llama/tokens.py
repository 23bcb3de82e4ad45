"""Properties of a vocabulary's tokens that grammars need, and buffers to ask llama.cpp about them."""

from __future__ import annotations

import codecs
import ctypes
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from b3node.llama.library import lib
from b3node.llama.special_token_chars import STAND_INS
from b3node.llama.vocab import Vocabulary

MAX_BATCH_TOKENS: Final = 4096
"""Tokens that are asked about at once."""
_BANNED: Final = re.compile(b"[\0" + re.escape(STAND_INS) + b"]")
_COMMON_BYTES: Final = b'", ]01ABab'
"""Bytes of which mostly two are allowed if more than one byte is."""
_CANDIDATE: Final = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""llama_token_data (llama.h)."""


class GrammarTokens:
    """Tables of a vocabulary's tokens, and buffers that its grammars share.

    Attributes:
        special: tokens that are no plain text.
        possible: mask of the tokens that a grammar may allow: plain text and the ends of generation.
        whole: mask of the tokens whose bytes are complete UTF-8.
        by_first_byte: the plain tokens by their first byte.
        bytes, one_byte: bytes that are a token of their own, ascending, and those tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.special: Final = {each.id for each in vocabulary.specials} | vocabulary.eog
        self.pieces: Final = vocabulary.pieces
        self.eog: Final = np.array(sorted(vocabulary.eog), np.int32)
        self.is_eog: Final = np.zeros(vocabulary.n_vocab, bool)
        self.is_eog[self.eog] = True
        plain = [
            bool(piece) and token not in self.special and not _BANNED.search(piece)
            for token, piece in enumerate(self.pieces)
        ]
        self.possible: Final = np.array(plain, bool) | self.is_eog
        self.whole: Final = np.array([_is_utf8(piece) for piece in self.pieces], bool)
        first = np.array([piece[0] if piece else 256 for piece in self.pieces])
        first[~self.possible | self.is_eog] = 256
        order = np.argsort(first, kind="stable").astype(np.int32)
        ends = np.searchsorted(first[order], np.arange(1, 257))
        self.by_first_byte: Final = tuple(np.split(order, ends)[:256])
        alone = {
            piece[0]: token
            for token, piece in enumerate(self.pieces)
            if len(piece) == 1 and first[token] < 256
        }
        self.bytes: Final = np.array(sorted(alone), np.intp)
        self.one_byte: Final = np.array([alone[byte] for byte in sorted(alone)], np.int32)
        self.stand_ins: Final = tuple(
            token
            for token, piece in enumerate(self.pieces)
            if len(piece) == 1 and piece in STAND_INS and token not in self.special
        )
        """The tokens of one character of `STAND_INS`."""
        self.room: Final = np.zeros(MAX_BATCH_TOKENS, _CANDIDATE)
        """Buffer in which llama.cpp marks the tokens that it refuses."""
        self.candidates: Final = lib.llama_token_data_array(
            self.room.ctypes.data_as(ctypes.POINTER(lib.llama_token_data)), 0, -1, False
        )
        self.one: Final = lib.llama_token_data()
        """The same for one token: numpy would take longer to write it than llama.cpp to answer."""
        self.candidate: Final = ctypes.byref(
            lib.llama_token_data_array(ctypes.pointer(self.one), 1, -1, False)
        )
        self._alone: Final = alone
        said = b"".join(piece for piece, fit in zip(self.pieces, self.possible, strict=True) if fit)
        self.any_byte: Final = alone.keys() >= set(said)
        """Whether every byte of the possible tokens has a token of its own."""
        self.common: Final = TokenQuery([alone[byte] for byte in _COMMON_BYTES if byte in alone])

    def plain_token(self, text: bytes) -> int | None:
        """Returns a plain token that `text` begins with, or None."""
        if (token := self._alone.get(text[0])) is not None:
            return token
        fitting = (token for token in self.by_first_byte[text[0]] if text.startswith(self.pieces[token]))
        longest = max(fitting, key=lambda token: len(self.pieces[token]), default=None)
        return None if longest is None else int(longest)


class TokenQuery:
    """Question about the same few tokens, to be asked repeatedly."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._room = np.zeros(len(tokens), _CANDIDATE)
        self._room["id"] = tokens
        self._unasked, self._address = self._room.tobytes(), self._room.ctypes.data
        self._logits = self._room["logit"]
        data = self._room.ctypes.data_as(ctypes.POINTER(lib.llama_token_data))
        self._candidates = ctypes.byref(lib.llama_token_data_array(data, len(tokens), -1, False))

    def allowed(self, sampler: Any) -> int:
        """Returns how many of them llama.cpp does not refuse."""
        ctypes.memmove(self._address, self._unasked, len(self._unasked))
        lib.llama_sampler_apply(sampler, self._candidates)
        return int(self._logits.size - np.count_nonzero(self._logits))


def unfinished(text: bytes) -> bytes:
    """Returns the bytes at the end of `text` that begin a character.

    Raises `UnicodeDecodeError` if it is no UTF-8.
    """
    _, read = codecs.utf_8_decode(text, "strict", False)
    return text[read:]


def _is_utf8(piece: bytes) -> bool:
    try:
        return not unfinished(piece)
    except UnicodeDecodeError:
        return False
