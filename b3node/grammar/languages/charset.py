"""Sets of code points: sorted, disjoint, non-adjacent closed intervals.

The universe is U+0000 to U+10FFFF without the surrogates, because a lone surrogate has no UTF-8, which JSON
text needs. A complement is therefore always a positive set. The engine that runs the grammar matches positive
sets correctly; its negated classes have two faults.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

Charset = tuple[tuple[int, int], ...]
"""Pairs of (first, last) code point."""

LAST: Final = 0x10FFFF
ANY: Final[Charset] = ((0, 0xD7FF), (0xE000, LAST))
DIGIT: Final[Charset] = ((0x30, 0x39),)
WORD: Final[Charset] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACE: Final[Charset] = (
    (0x9, 0xD),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)
"""ECMA-262 WhiteSpace and LineTerminator: the characters of `\\s`."""
LINE_END: Final[Charset] = ((0xA, 0xA), (0xD, 0xD), (0x2028, 0x2029))


def union(*sets: Iterable[tuple[int, int]]) -> Charset:
    """Returns the code points that are in any of `sets`, which need not be sorted."""
    out: list[tuple[int, int]] = []
    for lo, hi in sorted(pair for one in sets for pair in one):
        if out and lo <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(hi, out[-1][1]))
        else:
            out.append((lo, hi))
    return tuple(out)


def intersection(a: Charset, b: Charset) -> Charset:
    """Returns the code points that are in both sets."""
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        lo, hi = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if lo <= hi:
            out.append((lo, hi))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def complement(a: Charset) -> Charset:
    """Returns the code points of the universe that are not in `a`."""
    out, start = [], 0
    for lo, hi in a:
        if start < lo:
            out.append((start, lo - 1))
        start = hi + 1
    if start <= LAST:
        out.append((start, LAST))
    return intersection(tuple(out), ANY)


def single(char: str) -> Charset:
    """Returns the set of one character."""
    return ((ord(char), ord(char)),)


_CATEGORY_NAMES: Final = {
    "Letter": "L",
    "Cased_Letter": "LC",
    "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll",
    "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Mark": "M",
    "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Symbol": "S",
    "Math_Symbol": "Sm",
    "Currency_Symbol": "Sc",
    "Separator": "Z",
    "Space_Separator": "Zs",
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
}


@lru_cache(maxsize=1)
def _categories() -> dict[str, list[tuple[int, int]]]:
    """Returns the intervals of each general category, by its two letters; built once, at first use."""
    table: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for point in range(1, LAST + 2):
        name = unicodedata.category(chr(point)) if point <= LAST else ""
        if name != current:
            table.setdefault(current, []).append((start, point - 1))
            start, current = point, name
    return table


@lru_cache(maxsize=64)
def unicode_property(name: str) -> Charset | None:
    r"""Returns the set of `\p{name}` for general categories, `ASCII` and `Any`; None for other names."""
    if name in {"ASCII", "Any"}:
        return ((0, 0x7F),) if name == "ASCII" else ANY
    for prefix in ("General_Category=", "gc="):
        name = name.removeprefix(prefix)
    short = _CATEGORY_NAMES.get(name, name)
    wanted = {"LC": ("Lu", "Ll", "Lt")}.get(short, (short,))
    found = [pairs for key, pairs in _categories().items() if key.startswith(wanted)]
    if not found or len(short) > 2 or not short[0].isupper():  # a category is one or two letters
        return None
    return intersection(union(*found), ANY)
