"""Who holds which KV cells: a tree of computed runs, one namespace an organization.

What it decides: which computed prefix a new prompt can read, what a slot's end gives back, what is given
up first. What it must not know: models, time, requests; a slot is a number, a clock is a counter.

In a unified KV cache a cell belongs to every sequence that reads it (`llama_memory_seq_cp` adds a reader,
it copies nothing). So the cells in use are not the sum of the sequences' lengths but the sum over *runs*:
a run is a piece of computed positions that the same readers share, and the runs form a tree, because
sequences that share anything share it from position 0. A slot is a path from the root to its tip:

    root -- [system prompt] -+- [question A][answer A]   <- slot 3, running
                             +- [question B]             <- slot 5, kept for whoever asks again

Two slots may compute equal tokens independently; those are two runs with cells of their own, so siblings
may begin alike, and `match` takes the longest. A run is split where a new reader leaves it; the lower part
keeps its identity, so tips stay valid.

A run is *locked* while a running slot reads it. Kept slots can be given up at any time: least recently
used first, and from the namespace that keeps most when it keeps more than its fair share.

Invariants (`check`): `used` is the sum of all runs, `locked` of the locked ones; a run's readers are the
slots whose tip is at or below it; nobody reads an empty run except the root; used <= total.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
SMALLEST_KEPT: Final = 16
"""Tokens below which a finished slot is not worth keeping."""


@dataclass(slots=True, eq=False)
class Run:
    """Cells that the same slots read; `readers` counts them all, `locks` the running ones among them."""

    parent: Run | None
    tokens: array[int] = field(default_factory=lambda: array("i"))
    children: list[Run] = field(default_factory=list)
    tips: set[int] = field(default_factory=set)
    """Slots that end here."""
    readers: int = 0
    locks: int = 0


@dataclass(slots=True)
class Holding:
    """What one slot holds: `length` positions that end at `tip`."""

    namespace: str
    tip: Run
    length: int = 0
    running: bool = True
    touched: int = 0


class Cells:
    """Accounts for `total` cells; every method mutates it unless it says otherwise."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self.locked = 0
        self._roots: dict[str, Run] = {}
        self._held: dict[int, Holding] = {}
        self._clock = 0

    @property
    def free(self) -> int:
        """Cells that nobody reads."""
        return self.total - self.used

    @property
    def kept(self) -> list[int]:
        """Slots that no sequence runs in, least recently used first."""
        idle = [(held.touched, slot) for slot, held in self._held.items() if not held.running]
        return [slot for _, slot in sorted(idle)]

    def __contains__(self, slot: int) -> bool:
        return slot in self._held

    def length(self, slot: int) -> int:
        """Positions that `slot` holds; changes nothing."""
        return self._held[slot].length

    def open(self, slot: int, namespace: str) -> None:
        """Begins an empty running slot."""
        root = self._roots.setdefault(namespace, Run(None))
        self._held[slot] = Holding(namespace, root)
        root.tips.add(slot)
        self._count(root, readers=1, locks=1)

    def match(self, namespace: str, known: Ids) -> tuple[int, int]:
        """The slot that shares most with `known` and how many positions; (-1, 0) when none; changes nothing."""
        root = self._roots.get(namespace)
        if root is None:
            return -1, 0
        run, length = self._deepest(root, known)
        return (_any_tip(run), length) if length else (-1, 0)

    def share(self, source: int, target: int, length: int) -> None:
        """Lets the open, empty slot `target` read the first `length` positions of `source`."""
        run = self._cut(source, length)
        held = self._held[target]
        self._move(target, run)
        held.length = length
        self._touch(source)

    def extend(self, slot: int, tokens: array[int]) -> None:
        """Adds newly computed positions to a running slot."""
        held = self._held[slot]
        tip = held.tip
        if tip.parent is None or tip.readers > 1 or tip.children:
            tip = Run(held.tip)
            held.tip.children.append(tip)
            self._move(slot, tip)
        tip.tokens.extend(tokens)
        held.length += len(tokens)
        self.used += len(tokens)
        self.locked += len(tokens)

    def keep(self, slot: int) -> bool:
        """Ends a running slot and keeps what it holds, when that is worth it; False when it was released."""
        held = self._held[slot]
        if held.length < SMALLEST_KEPT:
            self.release(slot)
            return False
        held.running = False
        self._count(held.tip, readers=0, locks=-1)
        self._touch(slot)
        return True

    def release(self, slot: int) -> None:
        """Gives up everything that `slot` alone reads."""
        held = self._held.pop(slot)
        held.tip.tips.discard(slot)
        self._count(held.tip, readers=-1, locks=-1 if held.running else 0)
        self._prune(held.tip)
        if not self._roots[held.namespace].readers:
            del self._roots[held.namespace]

    def victim(self) -> int | None:
        """The kept slot to give up next; changes nothing."""
        kept = self.kept
        if not kept:
            return None
        sums: dict[str, int] = {}
        for slot in kept:
            held = self._held[slot]
            sums[held.namespace] = sums.get(held.namespace, 0) + held.length
        greedy = max(sums, key=sums.__getitem__)
        unfair = len(sums) > 1 and sums[greedy] * len(sums) > sum(sums.values())
        return next(slot for slot in kept if not unfair or self._held[slot].namespace == greedy)

    def unlocked_part(self, slot: int, length: int) -> int:
        """Of the first `length` positions of `slot`, those that no running slot reads; changes nothing."""
        run: Run | None = self._held[slot].tip
        end = self._held[slot].length
        count = 0
        while run is not None:
            start = end - len(run.tokens)
            if run.locks == 0:
                count += max(min(end, length) - start, 0)
            run, end = run.parent, start
        return count

    def check(self) -> None:
        """Raises `ValueError` unless every invariant of this module holds; changes nothing."""
        runs = [run for root in self._roots.values() for run in _below(root)]
        tips = sorted(slot for run in runs for slot in run.tips)
        if tips != sorted(self._held):
            raise ValueError("a slot has no tip, or a tip has no slot")
        if self.used != sum(len(run.tokens) for run in runs) or self.used > self.total:
            raise ValueError("the cells in use are not the sum of the runs")
        if self.locked != sum(len(run.tokens) for run in runs if run.locks):
            raise ValueError("the locked cells are not the sum of the locked runs")
        for run in runs:
            self._check_run(run)

    def _check_run(self, run: Run) -> None:
        below = [slot for under in _below(run) for slot in under.tips]
        if run.readers != len(below) or run.locks != sum(self._held[slot].running for slot in below):
            raise ValueError("a run's readers are not the slots below it")
        if run.parent is not None and (not run.readers or not run.tokens):
            raise ValueError("a run without readers or without cells was not pruned")

    def _deepest(self, root: Run, known: Ids) -> tuple[Run, int]:
        """The run in which the longest match ends, and the length of the match."""
        best, length = root, 0
        stack = [(child, 0) for child in root.children]
        while stack:
            run, start = stack.pop()
            common = common_prefix(np.frombuffer(run.tokens, np.int32), known[start:])
            if start + common > length:
                best, length = run, start + common
            if common == len(run.tokens):
                stack.extend((child, start + common) for child in run.children)
        return best, length

    def _cut(self, slot: int, length: int) -> Run:
        """The run on `slot`'s path that ends exactly at `length`, split there if need be."""
        run = self._held[slot].tip
        end = self._held[slot].length
        while run.parent is not None and end - len(run.tokens) >= length:
            end -= len(run.tokens)
            run = run.parent
        return run if end == length else _split(run, len(run.tokens) - (end - length))

    def _move(self, slot: int, run: Run) -> None:
        """Moves a running slot's tip to `run`, which lies below its present tip."""
        held = self._held[slot]
        held.tip.tips.discard(slot)
        self._count(held.tip, readers=-1, locks=-1)
        held.tip = run
        run.tips.add(slot)
        self._count(run, readers=1, locks=1)

    def _count(self, run: Run | None, *, readers: int, locks: int) -> None:
        """Adds to the readers and locks of a run and of all above it."""
        while run is not None:
            before = bool(run.locks)
            run.readers += readers
            run.locks += locks
            self.locked += (bool(run.locks) - before) * len(run.tokens)
            run = run.parent

    def _prune(self, run: Run) -> None:
        """Frees the runs from `run` upwards that nobody reads any more."""
        while run.parent is not None and not run.readers:
            run.parent.children.remove(run)
            self.used -= len(run.tokens)
            run = run.parent

    def _touch(self, slot: int) -> None:
        self._clock += 1
        self._held[slot].touched = self._clock


def common_prefix(left: Ids, right: Ids) -> int:
    """How many positions two id arrays share from their start.

    >>> common_prefix(np.array([1, 2, 3], np.int32), np.array([1, 2, 9, 9], np.int32))
    2
    """
    size = min(len(left), len(right))
    differs = left[:size] != right[:size]
    return int(differs.argmax()) if differs.any() else size


def _split(run: Run, at: int) -> Run:
    """Puts a new run with the first `at` tokens above `run`; `run` keeps the rest and its identity."""
    upper = Run(run.parent, run.tokens[:at], [run], set(), run.readers, run.locks)
    if run.parent is not None:
        run.parent.children[run.parent.children.index(run)] = upper
    run.parent = upper
    run.tokens = run.tokens[at:]
    return upper


def _any_tip(run: Run) -> int:
    """Some slot that ends at `run` or below it."""
    while not run.tips:
        run = run.children[0]
    return next(iter(run.tips))


def _below(run: Run) -> Iterator[Run]:
    """`run` and every run under it."""
    yield run
    for child in run.children:
        yield from _below(child)
