"""Markers as bytes, and a search for the longest of many that reads no byte twice.

A marker matches where its special tokens arrive as tokens (`MARK` before each) and the rest of it stands
literally. A run of white space in it matches any white space, even none, and so does the edge of a special
token: models are free with white space where templates are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, Generic, TypeVar

from b3node.dialects.outline import MARK

MAX_MARKER_BYTES: Final = 1024
"""Bytes of a marker with the white space in it; the longest ones of families have about 60."""
SPACES: Final = b" \t\n\r\x0b\x0c"
SPACE: Final = -1
"""Element that matches a run of white space, even none."""
GAP: Final = -2
"""Element that matches one byte of white space."""

T = TypeVar("T")
MarkerElements = tuple[int, ...]
"""A marker's bytes, with `SPACE` and `GAP` among them."""
_Positions = frozenset[tuple[int, int]]
"""Places of a search: which marker, and the index of its element that comes next."""


def marked(literal: str, specials: Sequence[str]) -> bytes:
    """Returns `literal` as a model writes it: `MARK` before each special token, the longest first."""
    return _any(tuple(specials)).sub(lambda found: MARK + found[0], literal.encode())


def unmarked(written: bytes, specials: Sequence[str]) -> bytes:
    """Returns `written` without the `MARK`s before special tokens; any other one stays."""
    return _behind(tuple(specials)).sub(b"", written)


def spelled(literal: str, specials: Sequence[str], *, word: bool = False) -> MarkerElements:
    """Returns the elements of a marker, without the white space at its edges.

    With `word`, a marker without special tokens that ends in a word and white space matches only with white
    space after that word: `all` is not in `allot`.
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


class MarkerState(dict[int, "MarkerState | None"]):
    """A state of the search: each next byte to the following state, None where no marker continues.

    One position in the markers is one state, on whatever way it is reached. So white space in a model's
    output adds no states: else each sequence of it would leave its own behind, for as long as the node runs.

    Attributes:
        found: the index of the marker that is complete here, if any.
        final: whether no marker continues.
    """

    __slots__ = ("_at", "_markers", "_states", "final", "found")

    def __init__(
        self,
        markers: Sequence[tuple[MarkerElements, object]],
        at: _Positions,
        states: dict[_Positions, MarkerState],
    ) -> None:
        super().__init__()
        self._markers, self._at, self._states = markers, at, states
        states[at] = self
        whole = [which for which, index in at if index == len(markers[which][0])]
        self.found: int | None = min(whole, default=None)
        self.final = len(whole) == len(at)

    def __missing__(self, byte: int) -> MarkerState | None:
        at = frozenset(step for which, index in self._at for step in self._steps(which, index, byte))
        following = self._states.get(at) if at else None
        if at and following is None:
            following = MarkerState(self._markers, at, self._states)
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


class MarkerSet(Generic[T]):
    """A set of markers, each with its meaning; of equal ones the first counts.

    The automaton is built lazily and shared by all readers of a dialect; nothing else changes.
    """

    def __init__(self, markers: Iterable[tuple[MarkerElements, T]]) -> None:
        self._markers = tuple((elements, meaning) for elements, meaning in markers if elements)
        first = frozenset((which, 0) for which in range(len(self._markers)))
        self.start = MarkerState(self._markers, first, {})
        firsts = {re.escape(bytes([elements[0]])) for elements, _ in self._markers}
        self.search = re.compile(b"[" + b"".join(sorted(firsts)) + b"]" if firsts else b"(?!)").search
        """Finds the next place where a marker may begin."""

    def __bool__(self) -> bool:
        return bool(self._markers)

    def meaning(self, found: int) -> T:
        """Returns the meaning of the marker `found`, as in `MarkerState.found`."""
        return self._markers[found][1]
