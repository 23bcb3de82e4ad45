"""CPU time of processes, as the kernel counts it: a busy machine makes work take longer, not more of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_USER_FIELD, _SYSTEM_FIELD = 11, 12
"""Fields of proc(5)'s `stat` with a process's clock ticks, counted from the end of its name, which may be
anything."""


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float | None:
    """Returns the CPU seconds that a process has used so far, all its threads together.

    None without procfs (it is there on Linux) or without such a process; `proc` is where procfs is mounted.
    """
    try:
        fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return (int(fields[_USER_FIELD]) + int(fields[_SYSTEM_FIELD])) / _TICKS_PER_SECOND
    except (OSError, LookupError, ValueError):
        return None
