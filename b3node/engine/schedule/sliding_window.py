"""Cells of sliding windows: every reader has its window for itself, whatever else it shares.

Layers with a window keep the cells of the last `window` tokens of each slot. Where a prefix is entered, its
window is copied, not shared, so many readers of one prefix can fill the window's cache while the books of `cells`
show it almost empty. The cache is as large as the other one; what is promised here must fit into it too, with a
cell left for each stream and a few for a prompt, because a step writes before it forgets.
"""

from __future__ import annotations

from collections.abc import Collection

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.limits import EngineLimits
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.token_budget import MIN_PROMPT_TOKENS


class SlidingWindows:
    """Knows what windows take; with a `limits.window` of 0, nothing. Changes nothing."""

    def __init__(self, limits: EngineLimits, cells: PrefixCache) -> None:
        self._limits = limits
        self._cells = cells

    def fit(self, running: Collection[Sequence], newcomer: Sequence) -> bool:
        """Whether one more running sequence fits when nothing is kept."""
        return self._taken(running, newcomer) <= self._room

    def crowded(self, running: Collection[Sequence], newcomer: Sequence) -> bool:
        """Whether kept slots stand in the way of one more running sequence."""
        return self._taken(running, newcomer) + self._kept > self._room

    def prompt_room(self, running: Collection[Sequence], streams: int) -> int:
        """Tokens of prompts that a step can hold beside `streams` single ones."""
        if not self._limits.window:
            return self._limits.batch
        return self._cells.total - sum(map(self._of, running)) - self._kept - streams

    @property
    def _room(self) -> int:
        return self._cells.total - self._limits.parallel - MIN_PROMPT_TOKENS

    @property
    def _kept(self) -> int:
        return sum(min(self._limits.window, self._cells.length(slot)) for slot in self._cells.kept)

    def _taken(self, running: Collection[Sequence], newcomer: Sequence) -> int:
        if not self._limits.window:
            return 0
        return sum(map(self._of, running)) + self._of(newcomer)

    def _of(self, sequence: Sequence) -> int:
        return min(self._limits.window, sequence.promised)
