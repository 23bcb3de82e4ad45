"""What a server's processes cost, as Linux tells it: CPU seconds and memory of a process and all below it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NEIGHBOUR: Final = """
import os
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""
_SAMPLE: Final = 0.5


def tree(root: int) -> list[int]:
    """The process `root` and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parent = (entry / "stat").read_text().rpartition(") ")[2].split()[1]
                children.setdefault(int(parent), []).append(int(entry.name))
    found, new = [], [root]
    while new:
        found += new
        new = [child for pid in new for child in children.get(pid, [])]
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time of one process's living threads, to the nanosecond (threads of servers live as long as they)."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def memory_mb(pids: list[int]) -> float:
    """Proportional set size of processes in MB: pages that several of them map are counted once in all."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1000  # kB


def busy_share() -> float:
    """How much of the machine's CPU time others use just now, 0 to 1: to be asked while no server works."""
    before = _cpu_times()
    time.sleep(_SAMPLE)
    after = _cpu_times()
    spent = [late - early for early, late in zip(before, after, strict=True)]
    idle = spent[3] + spent[4]  # idle and waiting for I/O (proc_stat(5))
    return 1.0 - idle / max(sum(spent), 1)


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """A process that computes without end at normal priority, and dies with this one."""
    process = subprocess.Popen([sys.executable, "-c", _NEIGHBOUR])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def _cpu_times() -> list[int]:
    return [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
