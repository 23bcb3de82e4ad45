"""Special tokens in a grammar's text: how they are written, and what llama.cpp gets to read in their place.

A grammar names a special token as `<[ID]>`, and means that token alone, never its text spelled out. llama.cpp has
the same notation (0.3.36), but cannot be asked with it: where text may stand too, it takes the token for its text,
and about a token that begins before such an element its `apply` and its `accept` disagree, which ends the process.
So llama.cpp never hears of a special token. Each stands in its grammar as a control character, which is taken out
of everything else that the grammar says; the token is asked about, and gone on with, as that character.

Only tab, line feed and carriage return are left of the control characters in a grammar that names tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

STAND_INS: Final = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\r")
"""Characters that stand for special tokens."""

_ELEMENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|#[^\n]*|<\[([0-9]{1,9})\]>|<|\.', re.DOTALL
)
"""Literals, classes and comments, in which nothing is looked for; a token; what else a `<` begins; any character."""
_CHARACTER: Final = r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\.|[^\\]"
_POINT: Final = re.compile(_CHARACTER, re.DOTALL)
_RANGE: Final = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_LOW: Final = re.compile(r"[\0-\x1f]|\\x[01]|\\u00[01]|\\U000000[01]")
"""Finds whatever may be a control character, or reach down to one."""
_SPACES: Final = {0x9: "\\t", 0xA: "\\n", 0xD: "\\r"}
_SHORT: Final = {"\\t": 0x9, "\\n": 0xA, "\\r": 0xD}
_NEVER: Final = "\\x00"
"""Matches nothing: no token that is asked about has a NUL."""
_CONTROLS: Final = "\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F"


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

    def replaced(match: re.Match[str]) -> str:
        element = match[0]
        if match[1]:
            return f'"\\x{standing[int(match[1])][0]:02x}"'
        if element == ".":
            return f"[^{_CONTROLS}]"
        if element.startswith("[^"):
            return f"[^{_CONTROLS}{element[2:]}"
        if element[0] == "#" or not _LOW.search(element):
            return element
        return _class(element) if element[0] == "[" else _POINT.sub(_kept, element)

    return _ELEMENT.sub(replaced, text)


def _kept(match: re.Match[str]) -> str:
    """A character of a literal; what is never matched instead of a control character."""
    point = _code(match[0])
    return match[0] if point >= 0x20 or point in _SPACES else _NEVER


def _class(element: str) -> str:
    """A class without the control characters in it."""
    parts = "".join(part for match in _RANGE.finditer(element[1:-1]) for part in _without_controls(match))
    return f"[{parts or _NEVER}]"


def _without_controls(match: re.Match[str]) -> Iterator[str]:
    """What is left of one range of a class."""
    low = _code(match[1])
    high = _code(match[2]) if match[2] else low
    if low >= 0x20:
        yield match[0]
        return
    yield from (written for point, written in _SPACES.items() if low <= point <= high)
    if high >= 0x20:
        yield f"\\x20-{match[2]}"


def _code(character: str) -> int:
    """The code point of a character as GBNF writes it."""
    if character[0] != "\\":
        return ord(character)
    digits = character[2:]
    if digits:
        return int(digits, 16)
    return _SHORT.get(character, ord(character[1]))
