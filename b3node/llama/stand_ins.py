"""Special tokens in a grammar's text: how they are written, and what llama.cpp gets to read in their place.

A grammar names a special token as `<[ID]>`, and means that token alone, never its text spelled out. llama.cpp has
the same notation (0.3.36), but cannot be asked with it: where text may stand too, it takes the token for its text,
and about a token that begins before such an element its `apply` and its `accept` disagree, which ends the process.
So llama.cpp never hears of a special token. Each stands in its grammar as a control character that no text of a
grammar has; the token is asked about, and gone on with, as that character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

STAND_INS: Final = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\r")
"""Characters that stand for special tokens. Classes and literals of a grammar must not have them; negated classes
and `.` are kept from them here."""

_ELEMENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|#[^\n]*|<\[([0-9]{1,9})\]>|<|\.', re.DOTALL
)
"""Literals, classes and comments, in which nothing is looked for; a token; what else a `<` begins; any character."""


def named(text: str) -> list[int]:
    """The ids of the tokens that a GBNF text names, each once. Raises `ValueError` if one is named otherwise."""
    if "<" not in text:
        return []
    found = [(match[0], match[1]) for match in _ELEMENT.finditer(text) if match[0][0] == "<"]
    if any(number is None for _, number in found):
        raise ValueError("a token is named, but not by its id")
    return list(dict.fromkeys(int(number) for _, number in found))


def without_tokens(text: str, standing: Mapping[int, bytes]) -> str:
    """A GBNF text with, in the place of each token that it names, the character that stands for it."""
    if not standing:
        return text
    escaped = {token: f"\\x{character[0]:02x}" for token, character in standing.items()}
    none = "[^" + "".join(escaped.values())

    def replaced(match: re.Match[str]) -> str:
        element = match[0]
        if match[1]:
            return f'"{escaped[int(match[1])]}"'
        if element == ".":
            return none + "]"
        return none + element[2:] if element.startswith("[^") else element

    return _ELEMENT.sub(replaced, text)
