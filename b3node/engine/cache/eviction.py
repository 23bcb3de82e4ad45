"""Decides when the prefixes of finished sequences leave the cache for host memory.

Every kept cell makes the steps of running sequences longer, so no more of them stay than their reuse pays for
(`EngineLimits.kept_cells`). But a copy takes time as well: 10 to 50 ms for a hundred tokens that were written
while other streams ran, whose cells lie between theirs. So copies are made where they delay no request, or
pay at once:

* While nothing runs, the prefixes that would have to leave are copied, one a step, and their cells stay. A
  sequence that continues one finds it in its cells; otherwise its cells are freed without a copy.
* A new sequence takes the lowest free cells, so its cells may lie far up, and on a CPU a step computes over
  all cells below. A prefix that each request shares with the one before would stay there for ever. So when
  nothing runs, and the cache was fuller than it is, all kept slots are evicted; a prefix that returns is
  loaded into the lowest cells.
* A sequence that enters has its whole answer before it, so room is made for it, with one copy a step.
* A sequence that ends while others run stays until then, or for `STAY_STEPS`: streams that began together
  mostly end together.
"""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.limits import EngineLimits

STAY_STEPS: Final = 32
"""Steps in which cells cost about as much as their copy. Next to one stream of SmolLM2-135M on two virtual
cores a cell costs 6 microseconds a step, and its copy 30 to 250, more the further the cells lie apart."""
SPREAD_CELLS: Final = 256
"""Cells by which the cache may have been fuller: llama.cpp computes over a multiple of that."""


class BackgroundWork(msgspec.Struct, frozen=True):
    """The work of one step while nothing runs."""

    save: int | None = None
    """A kept slot to copy to host memory; its cells stay."""
    evict: tuple[int, ...] = ()
    """Kept slots to evict, in this order."""


class EvictionPolicy:
    """Chooses among the kept slots of a prefix cache; changes nothing but its own counts."""

    def __init__(self, limits: EngineLimits, cache: PrefixCache) -> None:
        self._limits = limits
        self._cache = cache
        self._making_room = False
        """Whether kept slots are evicted until no more than `kept_cells` stay."""
        self._copied = False
        """Whether an eviction of this step needs a copy."""
        self._crowded_steps = 0
        """Steps since more than `kept_cells` stay."""
        self._peak = 0
        """The most cells that were in use since all kept slots were evicted."""

    @property
    def has_background_work(self) -> bool:
        """Whether there is work to do while nothing runs."""
        return self._to_save() is not None or self._spread

    def background_work(self) -> BackgroundWork:
        """Returns the work of a step in which nothing runs: a copy, all kept slots to evict, or nothing."""
        self._peak = max(self._peak, self._cache.used)
        if (slot := self._to_save()) is not None:
            return BackgroundWork(save=slot)
        if not self._spread:
            return BackgroundWork()
        self._peak = 0
        return BackgroundWork(evict=tuple(self._cache.kept))

    def begin_step(self, *, admitted: bool) -> None:
        """Begins a step in which sequences run; `admitted` says whether one of them has just entered."""
        self._peak = max(self._peak, self._cache.used)
        self._crowded_steps = self._crowded_steps + 1 if self._excess > 0 else 0
        self._making_room = self._making_room or admitted or self._crowded_steps > STAY_STEPS
        self._copied = False

    def next_eviction(self) -> int | None:
        """Returns the kept slot to evict next in this step; None once there is room, or a copy was made."""
        if self._copied:
            return None
        victim = self._cache.victim() if self._making_room and self._excess > 0 else None
        self._making_room = victim is not None
        self._copied = victim is not None and self._cache.lacks_copy(victim)
        return victim

    def _to_save(self) -> int | None:
        """Returns the kept slot to copy next while nothing runs; None when there is none."""
        kept = self._cache.kept if self._excess > 0 else ()
        return next((slot for slot in kept if self._cache.can_save(slot)), None)

    @property
    def _spread(self) -> bool:
        return self._excess > 0 and self._peak > self._cache.used + SPREAD_CELLS

    @property
    def _excess(self) -> int:
        return self._cache.used - self._cache.locked - self._limits.kept_cells
