"""When finished sequences leave the cache for host memory: what is kept there makes every step longer.

Beside running sequences no more cells of finished ones stay than are worth their cost (`EngineLimits.kept_cells`). But copying them out
takes time as well, 10 to 50 ms for a hundred tokens that were written beside other streams, whose cells lie between
theirs. So it is done where it costs nobody anything, or at once pays:

* While nothing runs, what would have to leave is copied, one sequence a step, and stays where it is. Whoever goes on from
  it finds it there; whoever does not gives its cells up for nothing.
* Cells are taken where they are free, so what came in beside others may lie far up, and on a CPU a step computes with
  all cells below; a prefix that each request shares with the one before would stay there for ever. So when nothing runs,
  and the cache was fuller than it is, all leave: who comes back is read into the lowest cells.
* A sequence that enters has its whole answer before it, so room is made for it, with one copy a step.
* What ends beside running sequences stays until then, or for `STAY_STEPS` steps: streams that began together mostly end so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.limits import EngineLimits

STAY_STEPS: Final = 32
"""Steps in which cells cost about what a copy of them does: beside one stream of SmolLM2-135M on two virtual cores 6
microseconds each a step, and 30 to 250 for their copy, more the further they lie apart."""
SPREAD_CELLS: Final = 256
"""Cells by which the cache may have been fuller: llama.cpp computes with a multiple of that."""


class EvictionPolicy:
    """Chooses among the kept slots of `cells`; what is to be copied it tells `cells` itself."""

    def __init__(self, limits: EngineLimits, cells: PrefixCache) -> None:
        self._limits = limits
        self._cells = cells
        self._leaving = False
        """Whether room is being made."""
        self._stayed = 0
        """Steps with more in the cache than is worth it."""
        self._peak = 0
        """The most cells that were in use since all left."""

    @property
    def untidy(self) -> bool:
        """Whether there is something to do while nothing runs; changes nothing."""
        return self._to_save() is not None or self._spread

    def _to_save(self) -> int | None:
        """The kept slot that is to be copied next while nothing runs; None when there is none. Changes nothing."""
        kept = self._cells.kept if self._excess > 0 else ()
        return next((slot for slot in kept if self._cells.can_save(slot)), None)

    def given_up(self, *, running: bool, entered: bool) -> Iterator[int]:
        """The kept slots to give up now, each of which must be given up before the next is asked for.

        While nothing `running` is they are copied first.
        """
        self._peak = max(self._peak, self._cells.used)
        if not running:
            if (slot := self._to_save()) is not None:
                self._cells.save(slot)
            elif self._spread:
                yield from self._cells.kept
                self._peak = 0
            return
        self._stayed = self._stayed + 1 if self._excess > 0 else 0
        self._leaving = self._leaving or entered or self._stayed > STAY_STEPS
        copied = False
        while self._leaving and self._excess > 0 and not copied:
            victim = self._cells.victim()
            if victim is None:
                break
            copied = self._cells.lacks_copy(victim)
            yield victim
        self._leaving = self._leaving and copied

    @property
    def _spread(self) -> bool:
        return self._excess > 0 and self._peak > self._cells.used + SPREAD_CELLS

    @property
    def _excess(self) -> int:
        return self._cells.used - self._cells.locked - self._limits.kept_cells
