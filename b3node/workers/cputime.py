"""What processes have computed, as the kernel counts it: a busy machine makes work take longer, not more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12
"""Where proc(5) has a process's clock ticks, counted behind its name, which may be anything."""


def cpu_seconds(pid: int, proc: Path = Path("/proc")) -> float | None:
    """CPU seconds that a process has used so far, all its threads together.

    None where the system does not tell (it does on Linux) or there is no such process; `proc` is where procfs is.
    """
    try:
        fields = (proc / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    except (OSError, LookupError, ValueError):
        return None
