"""The queue of sequences that wait for a slot, and the choice of the next one.

First come first served with a fair share: of the waiting sequences, the one whose namespace runs least;
within a namespace, in order of arrival. Two kinds go first, both of which ran before: *paused* sequences,
whose cells were needed, and *suspects*, which were in a step that broke. A suspect runs alone until it has
drawn a token, so that the sequence that breaks steps is found, and no other is taken for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from b3node.engine.schedule.sequence import Sequence


class Queue:
    """At most `limit` sequences that were never admitted, and any number that were.

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
        """Whether no new sequence may be appended."""
        return sum(not sequence.paused for sequence in self._waiting) >= self._limit

    def append(self, sequence: Sequence) -> None:
        """Adds a new sequence."""
        self._waiting.append(sequence)

    def put_back(self, sequence: Sequence) -> None:
        """Adds a sequence that ran before; it goes on before all others."""
        self._waiting.appendleft(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Takes a sequence out."""
        self._waiting.remove(sequence)

    def expired(self, now: float) -> list[Sequence]:
        """Returns the sequences that have waited as long as they may; those that ran before have no bound."""
        return [s for s in self._waiting if s.deadline <= now and not s.paused]

    def candidates(self, running: Collection[Sequence]) -> list[Sequence]:
        """Returns the sequences that may be admitted while `running` run, the one to admit next first."""
        if not self._waiting or any(sequence.suspect for sequence in running):
            return []
        suspects = (sequence for sequence in self._waiting if sequence.suspect)
        if (suspect := next(suspects, None)) is not None:
            return [] if running else [suspect]
        load: dict[str, int] = {}
        for sequence in running:
            load[sequence.namespace] = load.get(sequence.namespace, 0) + 1
        return sorted(self._waiting, key=lambda s: (not s.paused, load.get(s.namespace, 0), s.arrived))
