"""Number of compute threads while other processes want the same cores.

A step is hundreds of barriers, and at each the fastest thread waits for the slowest. While one other process
is busy on two cores, two threads give 9 to 36 tokens a second and one gives 58; on a quiet machine two give
140 and one half of that (SmolLM2-135M). A short spin before a waiting thread sleeps makes the collapse milder
but does not end it. So as many threads compute as there are cores that others leave alone, measured a few
times a second. The load of others while this process rests does not show how much they leave it, so only the
time between is measured.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

LOOK_EVERY_SECONDS: Final = 0.25
"""Time between two measurements."""
_YIELD_ROUNDING, _RETURN_ROUNDING = 0.4, 0.65
"""Added to the cores that others take, before rounding down: a thread goes when they take 0.6 of a core, and
comes back when they take less than 0.35 of it."""
_STAT: Final = Path("/proc/stat")
_BUSY_FIELDS: Final = (1, 2, 3, 6, 7)
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

        One measurement may show a moment's work: the number changes when two agree.
        """
        taken = max(others - self._spare, 0.0)
        least, most = self._cores - int(taken + _YIELD_ROUNDING), self._cores - int(taken + _RETURN_ROUNDING)
        wanted = max(1, least if self.count > least else max(most, self.count))
        if wanted == self._wanted:
            self.count = wanted
        self._wanted = wanted
        return self.count


class _CpuTimes(NamedTuple):
    """Seconds of the clock, of busy CPUs, and of CPUs kept busy by this process.

    Only differences have a meaning.
    """

    clock: float
    busy: float
    own: float

    def minus(self, other: _CpuTimes) -> _CpuTimes:
        return _CpuTimes(self.clock - other.clock, self.busy - other.busy, self.own - other.own)


class CpuMonitor:
    """Measures the load of other processes on the CPUs that this one may use, while it computes (Linux)."""

    def __init__(self) -> None:
        self._cpus = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        self._tick = os.sysconf("SC_CLK_TCK")
        self._since: _CpuTimes | None = self._reading()
        """Beginning of the time that counts, moved by the length of each rest; None during a rest."""
        self._carried = _CpuTimes(0.0, 0.0, 0.0)
        """Counted since the last measurement, before the rest."""

    @property
    def logical(self) -> int:
        """CPUs that this process may use."""
        return len(self._cpus)

    def rest(self) -> None:
        """Stops counting until `look` is called."""
        if self._since is not None:
            self._carried, self._since = self._reading().minus(self._since), None

    def look(self) -> float | None:
        """Returns the CPUs that others kept busy since the last result.

        None if less than `LOOK_EVERY_SECONDS` of that time counts.
        """
        if self._since is None:
            self._since = self._reading().minus(self._carried)
            return None
        if time.monotonic() - self._since.clock < LOOK_EVERY_SECONDS:
            return None
        now = self._reading()
        seen, self._since = now.minus(self._since), now
        return max((seen.busy - seen.own) / seen.clock, 0.0)

    def _reading(self) -> _CpuTimes:
        fields = (line.split() for line in _STAT.read_text("ascii").splitlines())
        ticks = sum(int(line[i]) for line in fields if line and line[0] in self._cpus for i in _BUSY_FIELDS)
        return _CpuTimes(time.monotonic(), ticks / self._tick, time.process_time())
