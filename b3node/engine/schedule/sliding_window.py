"""Accounts for the cells of sliding windows, which readers of one prefix do not share.

Layers with a window keep the cells of the last `window` tokens of each slot, in a cache of their own. Where a
prefix is entered, its window is copied, so many readers of one prefix can fill that cache while the prefix
cache is almost empty. Both caches have the same size. Promises must fit into this one too, with a cell left
for each stream and a few for a prompt, because a step writes before it forgets.
"""

from __future__ import annotations

from collections.abc import Collection

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.limits import EngineLimits
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.token_budget import MIN_PROMPT_TOKENS


class SlidingWindows:
    """Counts the cells of windows, none where `limits.window` is 0; changes nothing."""

    def __init__(self, limits: EngineLimits, cache: PrefixCache) -> None:
        self._limits = limits
        self._cache = cache

    def fit(self, running: Collection[Sequence], newcomer: Sequence) -> bool:
        """Returns whether one more running sequence fits with all kept slots evicted."""
        return self._taken(running, newcomer) <= self._room

    def crowded(self, running: Collection[Sequence], newcomer: Sequence) -> bool:
        """Returns whether kept slots must be evicted for one more running sequence."""
        return self._taken(running, newcomer) + self._kept > self._room

    def prompt_room(self, running: Collection[Sequence], streams: int) -> int:
        """Returns the prompt tokens that a step can hold together with one of each of `streams`."""
        if not self._limits.window:
            return self._limits.batch
        return self._cache.total - sum(map(self._of, running)) - self._kept - streams

    @property
    def _room(self) -> int:
        return self._cache.total - self._limits.parallel - MIN_PROMPT_TOKENS

    @property
    def _kept(self) -> int:
        return sum(min(self._limits.window, self._cache.length(slot)) for slot in self._cache.kept)

    def _taken(self, running: Collection[Sequence], newcomer: Sequence) -> int:
        if not self._limits.window:
            return 0
        return sum(map(self._of, running)) + self._of(newcomer)

    def _of(self, sequence: Sequence) -> int:
        return min(self._limits.window, sequence.promised)
