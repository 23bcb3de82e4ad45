"""What a server's processes cost, as Linux tells it: CPU seconds and memory of a process and all below it."""

from __future__ import annotations

import os
import re
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
    """Returns the CPU time of a process's living threads, in seconds, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def memory_mb(pids: list[int]) -> float:
    """Memory of processes in MB: pages of their own, and each mapped file's once, whoever else maps it too.

    A file's part counts as in that of the processes that has most of it in memory: what a second server
    shares with the first (the model's file, libraries) makes neither of them smaller.
    """
    own = 0
    files: dict[str, int] = {}
    for pid in pids:
        with suppress(OSError):
            own += sum(_sizes(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Pss_Anon"))
            for part, size in _mapped(Path(f"/proc/{pid}/smaps").read_text()):
                files[part] = max(files.get(part, 0), size)
    return (own + sum(files.values())) / 1000  # kB


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


def _mapped(smaps: str) -> Iterator[tuple[str, int]]:
    """Returns mapped parts of files (path, offset) with the kB of them in memory (proc_pid_smaps(5))."""
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.MULTILINE)[1:]:
        _, _, offset, _, inode, *path = mapping.partition("\n")[0].split(None, 5)
        if inode != "0":
            (size,), (copied,) = _sizes(mapping, "Rss"), _sizes(mapping, "Anonymous")
            yield f"{path} {inode} {offset}", size - copied


def _sizes(smaps: str, field: str) -> list[int]:
    """All values of a field of `smaps`, in kB."""
    return [int(size) for size in re.findall(rf"^{field}: +(\d+) kB$", smaps, flags=re.MULTILINE)]
