"""Accounts for the KV cells: the slots that hold them, the prefixes that are kept, their copies in memory.

It decides which computed prefix a new prompt reads, which cells the end of a slot frees, and which slot is
evicted first. It must not know models, time or requests: a slot is a number, and changes of the real cache
are collected as moves, in order, for the plan to carry.

In a unified KV cache a cell belongs to every sequence that reads it (`llama_memory_seq_cp` adds a reader and
copies nothing), so the cells in use are the sum over resident runs, not over slots; see `prefix_tree`.

* A run is *locked* while a running slot reads it. Kept slots can be evicted at any time: the least recently
  used first, and from the namespace that keeps most when it keeps more than its fair share.
* Evicted runs go to host memory (`host_cache`) where there is room: each run once, however many slots read
  it. A prompt with that prefix loads it, and shares it from then on.
* Models with a state in addition to their cells (recurrent layers, sliding windows) can be entered only at a
  `checkpoint`: at the prompt's cache boundaries and at its end. Their other cells are shared like any.

Invariants (`check`): `used` is the sum of the resident runs and at most `total`, `locked` that of the locked
ones; readers are the slots at or below a run; a run that is not resident has a copy, and no resident run lies
below it; the host cache accounts for exactly the copies and states that the tree refers to, within its
budget.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import msgspec

from b3node.engine.cache.host_cache import HostCache
from b3node.engine.cache.prefix_tree import CellIds, Run, walk
from b3node.engine.plan import Checkpoint, Clear, Drop, Forget, Load, Move, Restore, Save, Share, Trim

MIN_KEPT_TOKENS: Final = 16
"""A finished slot with fewer tokens is freed: reading it would save too little."""


class Match(msgspec.Struct, frozen=True):
    """The prefix that a prompt can read: `length` positions of the path to `run`, `resident` in cells."""

    run: Run | None = None
    length: int = 0
    resident: int = 0


@dataclass(slots=True)
class Holding:
    """The prefix that one slot holds: `length` positions that end at `leaf`."""

    namespace: str
    leaf: Run
    length: int = 0
    running: bool = True
    last_used: int = 0


class PrefixCache:
    """Accounts for `total` cells. Every method mutates it unless it says otherwise.

    Args:
        total: cells of the cache.
        host_cache: accounts for host memory.
        stateful: whether a prefix can be entered only at copied states.
    """

    def __init__(self, total: int, host_cache: HostCache, *, stateful: bool) -> None:
        self.total = total
        self.used = 0
        self.locked = 0
        self.moves: list[Move] = []
        self._host = host_cache
        self._stateful = stateful
        self._roots: dict[str, Run] = {}
        self._held: dict[int, Holding] = {}
        self._clock = 0

    def __contains__(self, slot: int) -> bool:
        return slot in self._held

    @property
    def free(self) -> int:
        """Cells that no slot reads."""
        return self.total - self.used

    @property
    def kept(self) -> list[int]:
        """Slots in which no sequence runs, least recently used first."""
        idle = [(held.last_used, slot) for slot, held in self._held.items() if not held.running]
        return [slot for _, slot in sorted(idle)]

    def length(self, slot: int) -> int:
        """Returns the positions that `slot` holds; changes nothing."""
        return self._held[slot].length

    def take_moves(self) -> tuple[Move, ...]:
        """Returns the moves since the last call, in order."""
        moves, self.moves = tuple(self.moves), []
        return moves

    # -- entering a prefix -----------------------------------------------------------------------

    def match(self, namespace: str, known: CellIds) -> Match:
        """Returns the longest prefix of `known` that can be read; changes nothing.

        `known` are ids of cells; see `span_index`.
        """
        best = Match()
        root = self._roots.get(namespace)
        for run, agreed in walk(root, known) if root is not None else ():
            length = self._enterable(run, agreed)
            resident = length if run.readers else 0
            if (length, resident) > (best.length, best.resident):
                best = Match(run, length, resident)
        return best if best.run is None else self._with_resident(best)

    def enter(self, slot: int, namespace: str, match: Match) -> None:
        """Opens an empty running slot that reads a match; loads the part that is not resident."""
        root = self._roots.setdefault(namespace, Run(None))
        self._held[slot] = Holding(namespace, root)
        root.slots.add(slot)
        self._count(root, readers=1, locks=1)
        if match.run is None:
            return
        leaf = match.run if match.run.end == match.length else match.run.split(match.length)
        self._share(slot, leaf)
        self._held[slot].length = match.length
        self._load(slot, leaf)
        if self._stateful:
            self.moves.append(Restore(slot, leaf.checkpoints[match.length]))
        self._host.touch(leaf)
        self._touch(self._held[slot])

    def newly_locked(self, match: Match) -> int:
        """Returns the cells of a match that are in use but not locked yet; changes nothing."""
        runs = match.run.path() if match.run is not None else []
        return sum(min(run.end, match.length) - run.start for run in runs if run.readers and not run.locks)

    def to_load(self, match: Match) -> int:
        """Returns the free cells that loading the rest of a match needs at once; changes nothing."""
        runs = match.run.path() if match.run is not None else []
        return sum(run.copy.end - run.copy.start for run in runs if run.copy is not None and not run.readers)

    # -- a running slot --------------------------------------------------------------------

    def extend(self, slot: int, tokens: array[int]) -> None:
        """Adds newly computed positions to a running slot."""
        held = self._held[slot]
        leaf = held.leaf
        if leaf.parent is None or leaf.readers > 1 or leaf.children or leaf.copy is not None:
            leaf = Run(held.leaf, held.length)
            held.leaf.children.append(leaf)
            self._move_leaf(slot, leaf)
        leaf.tokens.extend(tokens)
        held.length += len(tokens)
        self.used += len(tokens)
        self.locked += len(tokens)

    def trim(self, slot: int) -> None:
        """Trims from the real cache the positions of a running slot that were computed but never added here.

        Dense models only.
        """
        self.moves.append(Trim(slot, self._held[slot].length))

    def checkpoint(self, slot: int) -> None:
        """Copies the recurrent state of a slot as it stands, so that its prefix can be entered here."""
        held = self._held[slot]
        if (
            held.length < MIN_KEPT_TOKENS
            or held.length in held.leaf.checkpoints
            or not self._host.takes_state
        ):
            return
        self.moves.append(Checkpoint(slot, self._host.put_state(held.leaf, held.length)))
        self._fit_host_cache()
        self._prune()

    # -- its end -------------------------------------------------------------------------------------

    def keep(self, slot: int) -> bool:
        """Ends a running slot but keeps it readable. Returns False if it was released, being too short."""
        held = self._held[slot]
        if held.length < MIN_KEPT_TOKENS:
            self.release(slot, save=False)
            return False
        held.running = False
        self._count(held.leaf, readers=0, locks=-1)
        self._touch(held)
        return True

    def release(self, slot: int, *, save: bool) -> None:
        """Frees the cells that `slot` alone reads; with `save`, copies them to host memory first."""
        held = self._held.pop(slot)
        alone = [run for run in held.leaf.path() if run.readers == 1]
        if save and held.length >= MIN_KEPT_TOKENS:
            self._save(slot, alone)
        self.moves.append(Drop(slot))
        held.leaf.slots.discard(slot)
        self._count(held.leaf, readers=-1, locks=-1 if held.running else 0)
        gone = next((run for run in alone if run.copy is None), None)
        if gone is not None:
            self._cut(gone)
        self._fit_host_cache()
        self._prune()

    def lacks_copy(self, slot: int) -> bool:
        """Returns whether a part of a kept slot has no copy in host memory; changes nothing."""
        held = self._held[slot]
        return held.length >= MIN_KEPT_TOKENS and any(run.copy is None for run in held.leaf.path())

    def can_save(self, slot: int) -> bool:
        """Returns whether `save` would copy a part of a kept slot; changes nothing.

        It would if at most copies of prefixes that are not resident have to be evicted for it.
        """
        return self.lacks_copy(slot) and next(self._without_copy(self._held[slot]), None) is not None

    def save(self, slot: int) -> None:
        """Copies the parts of a kept slot without a copy. Their cells stay, and can then be freed at once."""
        for run in self._without_copy(self._held[slot]):
            self._copy(slot, run)
            self._fit_host_cache()
        self._prune()

    def victim(self, *, spare: int | None = None) -> int | None:
        """Returns the kept slot to evict next, but not `spare`; None when there is none. Changes nothing."""
        kept = [slot for slot in self.kept if slot != spare]
        sums: dict[str, int] = {}
        for slot in kept:
            held = self._held[slot]
            sums[held.namespace] = sums.get(held.namespace, 0) + held.length
        if not sums:
            return None
        largest = max(sums, key=sums.__getitem__)
        unfair = len(sums) > 1 and sums[largest] * len(sums) > sum(sums.values())
        return next(slot for slot in kept if not unfair or self._held[slot].namespace == largest)

    def resident_slot(self, match: Match) -> int | None:
        """Returns a slot that holds the resident part of a match, None when it has none. Changes nothing."""
        runs = match.run.path() if match.run is not None else []
        resident = [run for run in runs if run.readers]
        return resident[-1].any_slot() if resident else None

    def clear(self) -> None:
        """Frees all cells, and all of host memory."""
        self.used = self.locked = 0
        self._roots.clear()
        self._held.clear()
        self._host.clear()
        self.moves = [Clear()]

    # -- the check -----------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises `ValueError` unless every invariant of this module holds; changes nothing."""
        runs = [run for root in self._roots.values() for run in root.below()]
        if sorted(slot for run in runs for slot in run.slots) != sorted(self._held):
            raise ValueError("a slot has no tip, or a tip has no slot")
        if self.used != sum(len(run.tokens) for run in runs if run.readers) or self.used > self.total:
            raise ValueError("the cells in use are not the sum of the resident runs")
        if self.locked != sum(len(run.tokens) for run in runs if run.locks):
            raise ValueError("the locked cells are not the sum of the locked runs")
        for run in runs:
            self._check_run(run)
        keys = {run.copy.key for run in runs if run.copy is not None}
        keys.update(key for run in runs for key in run.checkpoints.values())
        if keys != set(self._host.items) or self._host.overdrawn() is not None:
            raise ValueError("the host cache does not hold what the tree refers to")

    def _check_run(self, run: Run) -> None:
        below = [slot for under in run.below() for slot in under.slots]
        if run.readers != len(below) or run.locks != sum(self._held[slot].running for slot in below):
            raise ValueError("a run's readers are not the slots below it")
        if run.parent is None:
            return
        if not run.tokens or run.start != run.parent.end or (not run.readers and run.copy is None):
            raise ValueError("a run has no tokens, no place or no copy")
        if run.readers and run.parent.parent is not None and not run.parent.readers:
            raise ValueError("something resident hangs under what is not")
        if any(not run.start < place <= run.end for place in run.checkpoints):
            raise ValueError("a state lies outside its run")

    # -- the tree ------------------------------------------------------------------------------------

    def _enterable(self, run: Run, agreed: int) -> int:
        """Returns the position in `run` at which a path that agrees up to `agreed` can be entered."""
        if not self._stateful:
            return agreed
        return max((place for place in run.checkpoints if place <= agreed), default=0)

    def _with_resident(self, match: Match) -> Match:
        """Returns the match with the length of its resident part."""
        ends = [run.end for run in match.run.path() if run.readers] if match.run is not None else []
        return Match(match.run, match.length, min(match.length, max(ends, default=0)))

    def _share(self, slot: int, leaf: Run) -> None:
        """Lets a slot read the resident part of the path to `leaf`."""
        resident = [run for run in leaf.path() if run.readers]
        if resident:
            source = resident[-1].any_slot()
            self.moves.append(Share(source, slot, resident[-1].end))
            self._touch(self._held[source])
            self._move_leaf(slot, resident[-1])

    def _load(self, slot: int, leaf: Run) -> None:
        """Loads the rest of the path to `leaf` from host memory."""
        for run in leaf.path():
            if not run.readers and run.copy is not None:
                self.moves.append(Load(slot, run.start, run.end, run.copy.key))
                self._move_leaf(slot, run)

    def _save(self, slot: int, runs: list[Run]) -> None:
        """Copies the runs without a copy to host memory, from the root downwards while they fit."""
        for run in runs:
            if run.copy is None:
                if not self._host.takes(len(run.tokens)):
                    return
                self._copy(slot, run)

    def _without_copy(self, held: Holding) -> Iterator[Run]:
        """Yields the runs of a slot without a copy, from the root down while room can be made for them."""
        missing = (run for run in held.leaf.path() if run.copy is None)
        return takewhile(self._saveable, missing)

    def _saveable(self, run: Run) -> bool:
        """Returns whether the run's copy fits, or the piece that would be evicted for it is not resident."""
        size, least_recent = len(run.tokens), self._host.least_recent
        if self._host.has_room(size) or least_recent is None:
            return self._host.has_room(size)
        runs = least_recent.copy.runs if least_recent.copy is not None else [least_recent.run]
        return self._host.takes(size) and not any(each.readers for each in runs if each is not None)

    def _copy(self, slot: int, run: Run) -> None:
        copy = self._host.put_copy(run)
        self.moves.append(Save(slot, run.start, run.end, copy.key))

    def _move_leaf(self, slot: int, run: Run) -> None:
        """Moves the leaf of a running slot down to `run`."""
        held = self._held[slot]
        held.leaf.slots.discard(slot)
        run.slots.add(slot)
        self._count(run, readers=1, locks=1)
        self._count(held.leaf, readers=-1, locks=-1)
        held.leaf = run

    def _count(self, start: Run, *, readers: int, locks: int) -> None:
        """Adds to the readers and locks of a run and of all above it, and to `used` and `locked`."""
        run: Run | None = start
        while run is not None:
            resident, locked = bool(run.readers), bool(run.locks)
            run.readers += readers
            run.locks += locks
            self.used += (bool(run.readers) - resident) * len(run.tokens)
            self.locked += (bool(run.locks) - locked) * len(run.tokens)
            run = run.parent

    def _fit_host_cache(self) -> None:
        """Evicts the least recently used pieces of host memory until its budget is kept."""
        while (key := self._host.overdrawn()) is not None:
            item = self._host.items[key]
            if item.run is not None:
                run = item.run
                while item.position <= run.start and run.parent is not None:
                    run = run.parent  # it was split since
                del run.checkpoints[item.position]
            for run in item.copy.runs if item.copy is not None else ():
                run.copy = None
            self._remove(key)
            for run in item.copy.runs if item.copy is not None else ():
                if not run.readers and run.parent is not None and run in run.parent.children:
                    self._cut(run)

    def _cut(self, run: Run) -> None:
        """Cuts a run that is not resident out of the tree, with all below it and their copies."""
        if run.parent is not None:
            run.parent.children.remove(run)
        for part in run.below():
            for key in part.checkpoints.values():
                self._remove(key)
            part.checkpoints = {}
            if part.copy is not None:
                part.copy.runs.remove(part)
                if not part.copy.runs:
                    self._remove(part.copy.key)
                part.copy = None

    def _remove(self, key: int) -> None:
        self._host.remove(key)
        self.moves.append(Forget(key))

    def _prune(self) -> None:
        """Removes the namespaces without runs."""
        for namespace in [name for name, root in self._roots.items() if not (root.readers or root.children)]:
            del self._roots[namespace]

    def _touch(self, held: Holding) -> None:
        self._clock += 1
        held.last_used = self._clock
