"""Who waits for a slot, and who goes next.

First come first served with a fair share: among those waiting, the one whose namespace runs least; within a
namespace, in order of arrival. Two kinds go before them, both already admitted once: *paused* sequences, whose
cells were needed, and *suspects*, which were in a step that broke. A suspect runs alone until it has drawn a
token, so that the one that breaks steps is found and the others are not taken for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from b3node.engine.schedule.sequence import Sequence


class Queue:
    """At most `limit` sequences that were never admitted, and any that were.

    `append`, `put_back` and `remove` mutate it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Sequence] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._waiting)

    @property
    def full(self) -> bool:
        """Whether nobody else may come."""
        return sum(not sequence.paused for sequence in self._waiting) >= self._limit

    def append(self, sequence: Sequence) -> None:
        """Lets a new sequence wait."""
        self._waiting.append(sequence)

    def put_back(self, sequence: Sequence) -> None:
        """Lets a sequence wait that ran before; it goes on before all others."""
        self._waiting.appendleft(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Takes a sequence out."""
        self._waiting.remove(sequence)

    def expired(self, now: float) -> list[Sequence]:
        """Those that have waited for as long as they may; who ran before waits for ever."""
        return [s for s in self._waiting if s.deadline <= now and not s.paused]

    def next(self, running: Collection[Sequence], held_back: Collection[int]) -> Sequence | None:
        """Who is to be admitted next beside those `running`, but none of the ids `held_back`."""
        if not self._waiting or any(sequence.suspect for sequence in running):
            return None
        suspects = (sequence for sequence in self._waiting if sequence.suspect)
        if (suspect := next(suspects, None)) is not None:
            return None if running else suspect
        load: dict[str, int] = {}
        for sequence in running:
            load[sequence.namespace] = load.get(sequence.namespace, 0) + 1
        candidates = (s for s in self._waiting if s.id not in held_back)
        return min(
            candidates, key=lambda s: (not s.paused, load.get(s.namespace, 0), s.arrived), default=None
        )
