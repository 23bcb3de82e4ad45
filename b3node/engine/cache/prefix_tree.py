"""Prefix tree of computed positions, with the slots that read them and their copies in host memory.

A *run* is a piece of computed positions that the same slots read. Sequences that share any position share all
before it, so the runs of a namespace form a tree, and a slot is a path from the root to its leaf:

    root -- [system prompt] -+- [question A][answer A]   <- slot 3, running
                             +- [question B]             <- slot 5, kept for later prompts
                             +- (question C)(answer C)   <- no slot; a copy lies in host memory

Two slots may compute equal tokens independently; those are two runs with cells of their own, so siblings may
have equal beginnings, and a search looks at all of them. A run is split where a new reader leaves it; the
lower part keeps its identity, so leaves stay valid, and both parts keep referring to the copy of the whole.

Pure structure: `prefix_cache` counts cells, `host_cache` bytes. Positions are compared by the ids of their
cells (`span_index`), so images are part of a prefix like text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

CellIds = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class HostCopy:
    """A copy in host memory of the positions `start` .. `end`, and the runs that can be loaded from it."""

    key: int
    start: int
    end: int
    runs: list[Run] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Run:
    """Positions `start` .. `end` of a path. It is *resident* (has cells) while a slot reads it."""

    parent: Run | None
    start: int = 0
    tokens: array[int] = field(default_factory=lambda: array("i"))
    children: list[Run] = field(default_factory=list)
    slots: set[int] = field(default_factory=set)
    """Slots that end here."""
    readers: int = 0
    """Slots that end here or below."""
    locks: int = 0
    """The running ones among them."""
    copy: HostCopy | None = None
    checkpoints: dict[int, int] = field(default_factory=dict)
    """Position (in `start` + 1 .. `end`) to the key of the recurrent state there."""

    @property
    def end(self) -> int:
        """The position after its last one."""
        return self.start + len(self.tokens)

    def path(self) -> list[Run]:
        """Returns the runs from below the root down to this one."""
        runs: list[Run] = []
        run = self
        while run.parent is not None:
            runs.append(run)
            run = run.parent
        return runs[::-1]

    def below(self) -> Iterator[Run]:
        """Yields this run and every one under it, parents first."""
        stack = [self]
        while stack:
            run = stack.pop()
            yield run
            stack.extend(run.children)

    def any_slot(self) -> int:
        """Returns a slot that ends at this run or below it; the run must be resident."""
        run = self
        while not run.slots:
            run = next(child for child in run.children if child.readers)
        return next(iter(run.slots))

    def split(self, position: int) -> Run:
        """Splits this run at a position inside it. Returns the upper part, which is a new run."""
        at = position - self.start
        upper = Run(
            self.parent, self.start, self.tokens[:at], [self], set(), self.readers, self.locks, self.copy
        )
        upper.checkpoints = {place: key for place, key in self.checkpoints.items() if place <= position}
        self.checkpoints = {place: key for place, key in self.checkpoints.items() if place > position}
        if self.parent is not None:
            self.parent.children[self.parent.children.index(self)] = upper
        if self.copy is not None:
            self.copy.runs.append(upper)
        self.parent, self.start, self.tokens = upper, position, self.tokens[at:]
        return upper


def common_prefix(left: CellIds, right: CellIds) -> int:
    """Returns how many ids two arrays share from their start.

    >>> common_prefix(np.array([1, 2, 3], np.int32), np.array([1, 2, 9, 9], np.int32))
    2
    """
    size = min(len(left), len(right))
    differs = left[:size] != right[:size]
    return int(differs.argmax()) if differs.any() else size


def walk(root: Run, known: CellIds) -> Iterator[tuple[Run, int]]:
    """Yields every run whose path agrees with `known` into it, with the position up to which it agrees."""
    stack = list(root.children)
    while stack:
        run = stack.pop()
        agreed = run.start + common_prefix(np.frombuffer(run.tokens, np.int32), known[run.start :])
        if agreed > run.start:
            yield run, agreed
        if agreed == run.end:
            stack.extend(run.children)
