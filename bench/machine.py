"""What a run ran on, so that its numbers can be compared with another one's."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from b3node import __version__
from bench import build
from bench.processes import cores


def describe(model: Path) -> dict[str, Any]:
    """CPU, cores, memory, kernel, versions and the model's file."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": sys.version.split()[0],
        "b3node": __version__,
        "llama_cpp_python": build.version(),
        "numpy": metadata.version("numpy"),
        "model": model.name,
    }


def one_line(machine: dict[str, Any]) -> str:
    """The same for people."""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, {machine['system']}, "
        f"Python {machine['python']}, llama-cpp-python {machine['llama_cpp_python']}, {machine['model']}"
    )


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
