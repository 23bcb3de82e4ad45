"""Markers as bytes, and finding the longest of many without reading anything twice.

A marker is found where the special tokens that it is made of arrive as tokens (`MARK` before each) and the rest of
it stands as it is; a run of white space in it stands for any white space, even none, and so does the edge of a special
token in it, because models are free with white space where templates are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Generic, TypeVar

from b3node.dialects.outline import MARK

SPACES: Final = b" \t\n\r\x0b\x0c"
SPACE: Final = -1
"""Stands in a marker's elements for a run of white space, even none."""
GAP: Final = -2
"""Stands in a marker's elements for one byte of white space."""

T = TypeVar("T")
Spelled = tuple[int, ...]
"""A marker's bytes, with `SPACE` and `GAP` among them."""


def marked(literal: str, specials: Sequence[str]) -> bytes:
    """`literal` as a model writes it: `MARK` before each text that is a special token, the longest first."""
    return _any(tuple(specials)).sub(lambda found: MARK + found[0], literal.encode())


def unmarked(written: bytes, specials: Sequence[str]) -> bytes:
    """`written` without the `MARK`s that stand before special tokens; any other one stays."""
    return _behind(tuple(specials)).sub(b"", written)


def spelled(literal: str, specials: Sequence[str], *, word: bool = False) -> Spelled:
    """The elements of a marker, without the white space at its edges.

    With `word`, one without special tokens that ends in a word and white space ends only behind that word: `all` is not
    in `allot`.
    """
    elements: list[int] = []
    spaced = _any(tuple(specials)).sub(lambda found: b" " + MARK + found[0] + b" ", literal.encode())
    for index, part in enumerate(spaced.split()):
        elements += [SPACE, *part] if index else part
    if word and MARK[0] not in elements and literal[-1:].isspace() and literal.rstrip()[-1:].isalnum():
        elements.append(GAP)
    return tuple(elements)


@lru_cache(64)
def _any(specials: tuple[str, ...]) -> re.Pattern[bytes]:
    longest = sorted((special.encode() for special in specials if special), key=len, reverse=True)
    return re.compile(b"|".join(map(re.escape, longest)) or b"(?!)")


@lru_cache(64)
def _behind(specials: tuple[str, ...]) -> re.Pattern[bytes]:
    return re.compile(MARK + b"(?=" + _any(specials).pattern + b")")


class State(dict[int, "State | None"]):
    """Where a search stands, and where each next byte leads it: None where no marker goes on so.

    `found` is the marker that is complete here, if any; `final` says that none goes on.
    """

    __slots__ = ("_at", "_markers", "final", "found")

    def __init__(self, markers: Sequence[tuple[Spelled, object]], at: frozenset[tuple[int, int]]) -> None:
        super().__init__()
        self._markers, self._at = markers, at
        whole = [which for which, index in at if index == len(markers[which][0])]
        self.found: int | None = min(whole, default=None)
        self.final = len(whole) == len(at)

    def __missing__(self, byte: int) -> State | None:
        at = frozenset(step for which, index in self._at for step in self._steps(which, index, byte))
        following = State(self._markers, at) if at else None
        self[byte] = following
        return following

    def _steps(self, which: int, index: int, byte: int) -> Iterable[tuple[int, int]]:
        elements = self._markers[which][0]
        if index < len(elements) and elements[index] == SPACE:
            if byte in SPACES:
                yield which, index
            index += 1
        if index < len(elements) and (elements[index] == byte or (elements[index] == GAP and byte in SPACES)):
            yield which, index + 1


class Markers(Generic[T]):
    """Some markers, each with what it means; of equal ones the first counts.

    The automaton is built as it is used, and shared by all that read the same dialect; that is all that changes.
    """

    def __init__(self, markers: Iterable[tuple[Spelled, T]]) -> None:
        self._markers = tuple((elements, meaning) for elements, meaning in markers if elements)
        self.start = State(self._markers, frozenset((which, 0) for which in range(len(self._markers))))
        firsts = {re.escape(bytes([elements[0]])) for elements, _ in self._markers}
        self.hunt = re.compile(b"[" + b"".join(sorted(firsts)) + b"]" if firsts else b"(?!)").search
        """Finds where a marker may begin."""

    def __bool__(self) -> bool:
        return bool(self._markers)

    def meaning(self, found: int) -> T:
        """What the marker means that a state has `found`."""
        return self._markers[found][1]
