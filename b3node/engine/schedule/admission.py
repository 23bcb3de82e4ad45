"""Admission: moves waiting sequences into slots while their promised cells exist, the fairest first.

A sequence is promised the cells of its prompt and of its reserve of output. It enters only if the promises to
the running sequences and to itself can be kept with every kept slot evicted. Room that it needs at once
is then made here: a slot, cells for its window, and cells to load its prefix from host memory.

Must not know: steps, chunks, models.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from b3node.engine.cache.prefix_cache import Match, PrefixCache
from b3node.engine.cache.prefix_tree import CellIds, common_prefix
from b3node.engine.limits import EngineLimits
from b3node.engine.schedule.queue import Queue
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.sliding_window import SlidingWindows
from b3node.engine.schedule.slots import Slots
from b3node.engine.schedule.step_report import StepReport
from b3node.spans import ImageSpan, PromptSpan, TextSpan

FOLLOWER_GRACE_SECONDS: Final = 1.0
"""Seconds that a follower may still wait for a slot once its leader has computed the shared prefix."""
MIN_SHARED_TOKENS: Final = 4
"""Shared tokens for which a prompt waits until another one has computed them. A wait costs a step or two;
without it the tokens are computed once more for every prompt that begins with them."""


class Admission:
    """Admits sequences from `waiting` into `slots`.

    Args:
        limits: bounds, fixed for its life.
        cache: the prefix cache.
        slots: the slots that sequences enter.
        waiting: the queue that they leave.
        windows: the cells of sliding windows.
        report: is given the sequences that start.
        n_vocab: ids of the vocabulary.
    """

    def __init__(
        self,
        limits: EngineLimits,
        cache: PrefixCache,
        slots: Slots,
        waiting: Queue,
        windows: SlidingWindows,
        report: StepReport,
        *,
        n_vocab: int,
    ) -> None:
        self._limits = limits
        self._cache = cache
        self._slots = slots
        self._running = slots.running
        self._waiting = waiting
        self._windows = windows
        self._report = report
        self._n_vocab = n_vocab

    def is_computable(self, prompt: tuple[PromptSpan, ...], cells: int) -> bool:
        """Returns whether a prompt of `cells` fits, ends with text, and has no unknown token or image."""
        fits = 0 < cells < self._limits.n_ctx and isinstance(prompt[-1], TextSpan)
        return fits and all(map(self._is_known, prompt))

    def _is_known(self, span: PromptSpan) -> bool:
        if isinstance(span, ImageSpan):
            return 0 < span.cells <= self._limits.image_cells
        tokens = np.frombuffer(span.tokens, np.int32)
        return bool(tokens.size and tokens.min() >= 0 and tokens.max() < self._n_vocab)

    def admit(self, now: float) -> int:
        """Admits sequences while there is room. Returns how many.

        A sequence whose prefix a running prompt is about to compute is passed over, and may wait longer for
        it.
        """
        admitted = 0
        passed_over: set[int] = set()
        while len(self._running) < self._limits.parallel and self._admit_next(passed_over, now):
            admitted += 1
        return admitted

    def _admit_next(self, passed_over: set[int], now: float) -> bool:
        """Admits the next sequence; adds the ids of those before it that are passed over in this step.

        Returns False if there is none, or no room for it.
        """
        for sequence in self._waiting.candidates(self._running.values()):
            if sequence.id in passed_over:
                continue
            known = np.frombuffer(sequence.known, np.int32)[:-1].copy()
            match = self._cache.match(sequence.namespace, known)
            if not self._is_shared_ahead(sequence, known, match.length):
                if fits := self._fits(sequence, match):
                    self._enter(sequence, known, match, now)
                return fits
            passed_over.add(sequence.id)
            sequence.deadline = max(sequence.deadline, now + FOLLOWER_GRACE_SECONDS)
        return False

    def _is_shared_ahead(self, follower: Sequence, known: CellIds, matched: int) -> bool:
        """Returns whether a running prompt, the leader, is about to compute more of the prefix of `follower`.

        Args:
            follower: a waiting sequence; only leaders of its namespace count.
            known: the ids of its cells.
            matched: how many of them can be read already.
        """
        for leader in self._running.values():
            if leader.namespace != follower.namespace or leader.pending <= 1:
                continue
            ahead = common_prefix(np.frombuffer(leader.known, np.int32), known)
            if self._limits.stateful:  # which can be entered only at the leader's cache boundaries
                ahead = max((cell for cell in leader.cache_boundaries if cell <= ahead), default=0)
            if ahead > max(matched, leader.computed) and ahead - matched >= MIN_SHARED_TOKENS:
                return True
        return False

    def _fits(self, sequence: Sequence, match: Match) -> bool:
        """Returns whether the cells promised to the running ones and to `sequence` exist. Changes nothing."""
        future = sum(max(s.promised - s.computed, 0) for s in self._running.values())
        wanted = sequence.promised - match.resident + self._cache.newly_locked(match)
        if not self._windows.fit(self._running.values(), sequence):
            return False
        return self._cache.locked + future + wanted <= self._cache.total

    def _enter(self, sequence: Sequence, known: CellIds, match: Match, now: float) -> None:
        """Puts a waiting sequence into a slot that reads its match."""
        slot = self._slots.take(spare=self._cache.resident_slot(match))
        self._make_room_for_windows(sequence)
        match = self._match_with_room(sequence, known)
        self._cache.enter(slot, sequence.namespace, match)
        self._waiting.remove(sequence)
        self._running[slot] = sequence
        sequence.slot, sequence.computed = slot, match.length
        if not sequence.paused:
            sequence.cached = match.length
            self._report.started(sequence, now)
        sequence.paused = False

    def _make_room_for_windows(self, sequence: Sequence) -> None:
        """Evicts kept slots until the windows of all readers fit together with that of `sequence`."""
        while self._windows.crowded(self._running.values(), sequence) and self._slots.evict_next():
            pass

    def _match_with_room(self, sequence: Sequence, known: CellIds) -> Match:
        """Returns the match of `known` once there is room to load it; an empty one if none can be made.

        Making room may forget part of the match, so it is looked up again each time.
        """
        while True:
            match = self._cache.match(sequence.namespace, known)
            if self._cache.to_load(match) <= self._cache.free:
                return match
            if not self._slots.evict_next(spare=self._cache.resident_slot(match)):
                return Match()
