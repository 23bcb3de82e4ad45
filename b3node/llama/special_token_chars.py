"""Special tokens in a grammar's text: their notation, and the characters that llama.cpp reads in their place.

A grammar names a special token as `<[ID]>`, and means that token alone, never its text spelled out. llama.cpp
has the same notation (0.3.36), but cannot be asked with it: where text may stand too, it takes the token for
its text, and its `apply` and `accept` disagree about a token that begins before such an element, which ends
the process. So llama.cpp sees no special token. Each is replaced in its grammar by a control character, which
is removed from everything else that the grammar allows; the token is asked about, and accepted, as that
character.

A grammar that names tokens keeps only tab, line feed and carriage return of the control characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

STAND_INS: Final = bytes(byte for byte in range(1, 32) if byte not in b"\t\n\r")
"""Characters that stand in for special tokens."""

_ELEMENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|#[^\n]*|<\[([0-9]{1,9})\]>|<|\.', re.DOTALL
)
"""Literals, classes and comments, which are not searched; a token; any other beginning with `<`; any
character."""
_CHARACTER: Final = r"\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\.|[^\\]"
_POINT: Final = re.compile(_CHARACTER, re.DOTALL)
_RANGE: Final = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_MAY_BE_CONTROL: Final = re.compile(r"[\0-\x1f]|\\x[01]|\\u00[01]|\\U000000[01]")
"""Finds every notation of a control character, and of a range that may contain one."""
_SPACES: Final = {0x9: "\\t", 0xA: "\\n", 0xD: "\\r"}
_SHORT: Final = {"\\t": 0x9, "\\n": 0xA, "\\r": 0xD}
_NEVER: Final = "\\x00"
"""Matches nothing: no token that is asked about has a NUL."""
_CONTROLS: Final = "\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F"


def named_tokens(text: str) -> list[int]:
    """Returns the ids of the tokens that a GBNF text names, each once.

    Raises:
        ValueError: a token is named by other means than its id.
    """
    if "<" not in text:
        return []
    found = [(match[0], match[1]) for match in _ELEMENT.finditer(text) if match[0][0] == "<"]
    if any(number is None for _, number in found):
        raise ValueError("a token is named, but not by its id")
    return list(dict.fromkeys(int(number) for _, number in found))


def without_tokens(text: str, stand_in_bytes: Mapping[int, bytes]) -> str:
    """Returns a GBNF text with each token that it names replaced by the character that stands in for it."""
    if not stand_in_bytes:
        return text

    def replaced(match: re.Match[str]) -> str:
        element = match[0]
        if match[1]:
            return f'"\\x{stand_in_bytes[int(match[1])][0]:02x}"'
        if element == ".":
            return f"[^{_CONTROLS}]"
        if element.startswith("[^"):
            return f"[^{_CONTROLS}{element[2:]}"
        if element[0] == "#" or not _MAY_BE_CONTROL.search(element):
            return element
        return _class(element) if element[0] == "[" else _POINT.sub(_without_control, element)

    return _ELEMENT.sub(replaced, text)


def _without_control(match: re.Match[str]) -> str:
    """Returns a character of a literal; for a control character, one that never matches."""
    point = _code(match[0])
    return match[0] if point >= 0x20 or point in _SPACES else _NEVER


def _class(element: str) -> str:
    """Returns a class without the control characters in it."""
    parts = "".join(
        part for match in _RANGE.finditer(element[1:-1]) for part in _range_without_controls(match)
    )
    return f"[{parts or _NEVER}]"


def _range_without_controls(match: re.Match[str]) -> Iterator[str]:
    """Yields the remaining parts of one range of a class."""
    low = _code(match[1])
    high = _code(match[2]) if match[2] else low
    if low >= 0x20:
        yield match[0]
        return
    yield from (written for point, written in _SPACES.items() if low <= point <= high)
    if high >= 0x20:
        yield f"\\x20-{match[2]}"


def _code(character: str) -> int:
    """Returns the code point of a character as GBNF writes it."""
    if character[0] != "\\":
        return ord(character)
    digits = character[2:]
    if digits:
        return int(digits, 16)
    return _SHORT.get(character, ord(character[1]))
