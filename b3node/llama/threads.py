"""How many threads compute while other processes want the same cores.

A step is hundreds of barriers, and at each the fastest thread waits for the slowest. Beside one busy process on
two cores, two threads give 9 to 36 tokens a second where one gives 58; on a quiet machine two give 140 and one
half of that (SmolLM2-135M). A short spin before a waiting thread sleeps makes the collapse milder but does not end
it. So the threads give way: as many compute as there are cores that others leave alone, looked at a few times a second.
What others do while this process rests says nothing of what they leave it, so only the time between is looked at.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

LOOK_EVERY: Final = 0.25
"""Seconds between two looks at the machine."""
_YIELD, _RETURN = 0.4, 0.65
"""A thread goes when others take 0.6 of a core, and comes back when they take less than 0.35 of it."""
_STAT: Final = Path("/proc/stat")
_BUSY: Final = (1, 2, 3, 6, 7)
"""Fields of a CPU's line in /proc/stat: user, nice, system, irq, softirq (proc(5))."""


class ThreadCount:
    """The number of threads for the next step.

    Args:
        cores: physical cores that may be used; the most threads there are.
        logical: CPUs that may be used; more than `cores` with simultaneous multithreading.
    """

    def __init__(self, *, cores: int, logical: int) -> None:
        self._cores = cores
        self._spare = max(logical - cores, 0)
        self._wanted = cores
        self.count = cores

    def observe(self, *, others: float) -> int:
        """Takes in how many CPUs other processes kept busy lately; returns the number of threads.

        What is seen once may be a moment's work: the number changes when two looks agree.
        """
        taken = max(others - self._spare, 0.0)
        least, most = self._cores - int(taken + _YIELD), self._cores - int(taken + _RETURN)
        wanted = max(1, least if self.count > least else max(most, self.count))
        if wanted == self._wanted:
            self.count = wanted
        self._wanted = wanted
        return self.count


class _CpuTimes(NamedTuple):
    """Seconds: of the clock, that the CPUs were busy, that this process kept them busy. Differences have a meaning."""

    clock: float
    busy: float
    own: float

    def minus(self, other: _CpuTimes) -> _CpuTimes:
        return _CpuTimes(self.clock - other.clock, self.busy - other.busy, self.own - other.own)


class CpuMonitor:
    """Looks at what other processes do on the CPUs that this one may use, while it computes itself (Linux)."""

    def __init__(self) -> None:
        self._cpus = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        self._tick = os.sysconf("SC_CLK_TCK")
        self._from: _CpuTimes | None = self._reading()
        """What counts from here on; None while this process rests. Moved behind each rest by its length."""
        self._before = _CpuTimes(0.0, 0.0, 0.0)
        """What was counted since the last look, before the rest."""

    @property
    def logical(self) -> int:
        """CPUs that this process may use."""
        return len(self._cpus)

    def rest(self) -> None:
        """Counts nothing until the next look is asked for."""
        if self._from is not None:
            self._before, self._from = self._reading().minus(self._from), None

    def look(self) -> float | None:
        """CPUs that others kept busy since the last look; None when less than `LOOK_EVERY` of it was no rest."""
        if self._from is None:
            self._from = self._reading().minus(self._before)
            return None
        if time.monotonic() - self._from.clock < LOOK_EVERY:
            return None
        now = self._reading()
        seen, self._from = now.minus(self._from), now
        return max((seen.busy - seen.own) / seen.clock, 0.0)

    def _reading(self) -> _CpuTimes:
        fields = (line.split() for line in _STAT.read_text("ascii").splitlines())
        ticks = sum(int(line[i]) for line in fields if line and line[0] in self._cpus for i in _BUSY)
        return _CpuTimes(time.monotonic(), ticks / self._tick, time.process_time())
