"""Slots: llama.cpp sequence ids. Each is free, runs a sequence, or keeps the prefix of one that has ended."""

from __future__ import annotations

from b3node.engine.cache.prefix_cache import PrefixCache
from b3node.engine.schedule.sequence import Sequence


class Slots:
    """The slots of an engine. Every method mutates it and its prefix cache unless it says otherwise.

    Args:
        count: slots in all.
        cache: the prefix cache; it knows which slots are kept.
    """

    def __init__(self, count: int, cache: PrefixCache) -> None:
        self.running: dict[int, Sequence] = {}
        """The running sequences by slot, in the order in which they were admitted."""
        self._count = count
        self._cache = cache
        self._free: list[int] = []
        self._free_all()

    def take(self, *, spare: int | None) -> int:
        """Returns a free slot. When there is none, evicts the kept slot that goes first, but not `spare`."""
        if not self._free and not self.evict_next(spare=spare):
            raise RuntimeError("fewer slots than running sequences and one")
        return self._free.pop()

    def evict_next(self, *, spare: int | None = None) -> bool:
        """Evicts the kept slot that goes first, but not `spare`. Returns False when there is none."""
        victim = self._cache.victim(spare=spare)
        if victim is not None:
            self.release(victim, save=True)
        return victim is not None

    def release(self, slot: int, *, save: bool) -> None:
        """Frees a slot and the cells that it alone reads; `save` copies those to host memory first."""
        self._cache.release(slot, save=save)
        self._free.append(slot)

    def keep(self, slot: int) -> None:
        """Keeps the prefix of a slot in which nothing runs any more, or frees it when it is too short."""
        if not self._cache.keep(slot):
            self._free.append(slot)

    def clear(self) -> None:
        """Frees all slots, and all that the cache and host memory hold."""
        self.running.clear()
        self._cache.clear()
        self._free_all()

    def check(self) -> None:
        """Raises `ValueError` unless every slot is free, running or kept, and only one of these.

        Changes nothing.
        """
        if sorted((*self._free, *self.running, *self._cache.kept)) != list(range(self._count)):
            raise ValueError("a slot is lost or owned twice")
        for slot, sequence in self.running.items():
            if sequence.slot != slot or self._cache.length(slot) != sequence.computed or not sequence.pending:
                raise ValueError("a running sequence does not hold what it computed")

    def _free_all(self) -> None:
        self._free = list(range(self._count - 1, -1, -1))
