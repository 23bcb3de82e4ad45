"""Moves sequences out of their slots: to their end, or back into the queue to be computed again.

A sequence waits, runs in a slot, and ends. It may go back to the queue any number of times: alone, paused for
its cells, or with all that run, after a step that broke the cache. It keeps its tokens then, and loses its
cells.
"""

from __future__ import annotations

from typing import Final

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.limits import EngineLimits
from b3node.engine.messages import FinishReason
from b3node.engine.schedule.queue import Queue
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.slots import Slots
from b3node.engine.schedule.step_report import StepReport

RESUME_RESERVE_TOKENS: Final = 256
"""Tokens that a paused sequence is promised on top of those it has, when it comes back."""


class Lifecycle:
    """The ways out of a slot; every method mutates the sequences and their places.

    Args:
        limits: bounds, fixed for its life.
        cache: the prefix cache.
        slots: the slots that sequences leave.
        waiting: the queue that they leave, or return to.
        report: is given the sequences that end.
    """

    def __init__(
        self, limits: EngineLimits, cache: PrefixCache, slots: Slots, waiting: Queue, report: StepReport
    ) -> None:
        self._limits = limits
        self._cache = cache
        self._slots = slots
        self._waiting = waiting
        self._report = report

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """Ends a waiting or running sequence; keeps the prefix it computed unless it failed."""
        self._report.finished(sequence, reason)
        slot = sequence.slot
        if slot is None:
            self._waiting.remove(sequence)
            return
        del self._slots.running[slot]
        if reason == "failed":
            self._slots.release(slot, save=False)
            return
        if self._limits.stateful:
            self._cache.checkpoint(slot)
        self._slots.keep(slot)

    def pause(self, slot: int) -> None:
        """Pauses a running sequence: its tokens stay, its cells go, and it is the next to be admitted."""
        sequence = self._slots.running.pop(slot)
        if self._limits.stateful:
            self._cache.checkpoint(slot)
        self._slots.release(slot, save=True)
        self._put_back(sequence)

    def recompute(self, broken: list[Sequence], *, alone: bool) -> None:
        """Wipes the cache and computes all running sequences again, after an overflow or a failed step.

        Which sequence of the step caused it is not known. Numbers that overflowed stay in cells, freed ones
        too, and reach every sequence that computes over them. So all cells are wiped, and each broken
        sequence runs alone until it has drawn a token; one that breaks alone has failed.

        Args:
            broken: the sequences of the step whose numbers broke, or all of a failed step.
            alone: whether only one sequence ran in the step.
        """
        running = self._slots.running
        if alone and broken:
            self._report.finished(broken[0], "failed")
            running.clear()
        for sequence in reversed(running.values()):
            sequence.suspect = sequence in broken
            self._put_back(sequence)
        self._slots.clear()

    def _put_back(self, sequence: Sequence) -> None:
        """Queues a sequence that ran before, to be computed again.

        Its promise grows, so that it comes back only to room in which it can go on for a while.
        """
        sequence.slot, sequence.computed, sequence.paused = None, 0, True
        sequence.reserve = min(len(sequence.known) + RESUME_RESERVE_TOKENS, sequence.limit)
        self._waiting.put_back(sequence)
