r"""Cuts literals of a template into the parts that belong to one call.

    </call>\n<call>      stands between two calls: where does the end of the first end?

The text before the first call ends like this middle, the text after the last begins like it. Equal characters
alone cut too late or too early (`</call>` and `</calls>` begin alike), so a cut that falls into a marker
moves to its edge, and white space belongs to neither side.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

import msgspec

_MARKER: Final = re.compile(r"<[^<>]*>|\[[^\[\]\s]*\]")


class SplitLiteral(msgspec.Struct, frozen=True):
    """The text between two calls, split."""

    close: str
    """The end of the first."""
    between: str
    """The separator."""
    open: str
    """The beginning of the second."""


def split_literal(before: str, middle: str, after: str) -> SplitLiteral:
    """Splits `middle`, the text between two calls, by the text `before` the first and `after` the last."""
    shared = _shared(before[::-1], middle[::-1])
    begin = _forward(before, len(before) - shared) - len(before) + len(middle)
    begin = max(begin, _forward(middle, len(middle) - shared))
    begin += _space_before(middle[begin:])
    end = _shared(middle[:begin], after)
    end = min(_back(middle, end), _back(after, end))
    end = len(middle[:end].rstrip())
    return SplitLiteral(middle[:end], middle[end:begin], middle[begin:])


def common_head(*texts: str) -> str:
    """Returns the beginning that texts share, up to a marker's edge."""
    shared = _shared(*texts)
    return texts[0][: min(_back(text, shared) for text in texts)]


def markers(text: str) -> list[str]:
    """Returns the parts of a literal that look like a special token or a tag."""
    return _MARKER.findall(text)


def _shared(*texts: str) -> int:
    """Returns the length of the beginning that all texts share."""
    alike = takewhile(lambda characters: len(set(characters)) == 1, zip(*texts, strict=False))
    return sum(1 for _ in alike)


def _forward(text: str, cut: int) -> int:
    """Returns the end of the marker that `cut` falls into, or `cut`."""
    return next((found.end() for found in _MARKER.finditer(text) if found.start() < cut < found.end()), cut)


def _back(text: str, cut: int) -> int:
    """Returns the beginning of the marker that `cut` falls into, even if it is not closed here, or `cut`."""
    inside = (found.start() for found in _MARKER.finditer(text) if found.start() < cut < found.end())
    opened = text.rfind("<", 0, cut)
    return next(inside, opened if opened >= 0 and ">" not in text[opened:cut] else cut)


def _space_before(text: str) -> int:
    return len(text) - len(text.lstrip())
