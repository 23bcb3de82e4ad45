"""How much of everything a model is served with, from what was asked and what the machine and model offer.

Pure arithmetic with its reasons; `model` applies it. Sizes are tokens, cells and sequences.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from b3node.config import EngineOptions, KvType

CTX_CPU, CTX_GPU = 8192, 32_768
"""Tokens of one sequence when nothing is configured, if the model was trained for as many."""
PARALLEL: Final = 16
"""Sequences that run at once when nothing is configured."""
PARALLEL_RECURRENT: Final = 8
"""The same for models with recurrent state, which costs 20 to 75 MiB a sequence whether used or not."""
KEPT_RECURRENT: Final = 3
"""Further sequence ids of such models."""
SHELF: Final = 1 << 30
"""Bytes of host memory for prefixes that leave the cache when nothing is configured, if ..."""
SHELF_SHARE: Final = 8
"""... this part of the machine's memory is more than that."""
KEPT: Final = 32
"""Further sequence ids that keep finished prefixes (attention-only models; each costs a logits row)."""
BATCH: Final = 512
"""Tokens of one step at most: what bounds cancellation and fairness on a GPU, where a step cannot be cut."""
SCORES: Final = 256 << 20
"""Bytes that attention without its fused kernel may take: a float for each head, token of a step and cell."""
BATCH_LEAST: Final = 64
"""Tokens of a step that this leaves in any case."""
_ROUND: Final = 256
"""llama.cpp rounds the context up to this."""
_SLOTS_MAX: Final = 256
"""llama.cpp refuses more sequence ids than this."""
_SYSTEM: Final = Path("/sys")
_PROC: Final = Path("/proc")
_QUOTAS: Final = (
    ("fs/cgroup/cpu.max",),
    ("fs/cgroup/cpu/cpu.cfs_quota_us", "fs/cgroup/cpu/cpu.cfs_period_us"),
)
"""Where a container finds its quota and period (cgroup v2, v1): microseconds; `max` or -1 is no quota."""

_MEMORY: Final = (
    ("fs/cgroup/memory.max", "fs/cgroup/memory.current"),
    ("fs/cgroup/memory/memory.limit_in_bytes", "fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Where it finds how many bytes it may use and does use (cgroup v2, v1); `max` is no limit."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is loaded with. `n_ctx` <= `cells`; `parallel` <= `slots` <= 256."""

    n_ctx: int
    cells: int
    parallel: int
    slots: int
    batch: int
    threads: int
    shelf: int
    flash_attention: bool | None = None
    kv_type: KvType = "f16"


def fit(
    options: EngineOptions,
    *,
    n_ctx_train: int,
    n_head: int,
    recurrent: bool,
    offloaded: bool,
    slow_kernel: bool,
) -> Fit:
    """The numbers for one model.

    `n_head` are the heads of a layer that attend, 0 where none does; `recurrent` covers hybrid models; `offloaded`
    means layers on a GPU; `slow_kernel` that this CPU attends faster without the fused one.
    """
    n_ctx = options.ctx or min(n_ctx_train or CTX_CPU, CTX_GPU if offloaded else CTX_CPU)
    cells = _rounded(max(options.cells or 2 * n_ctx, n_ctx))
    parallel = min(options.parallel or (PARALLEL_RECURRENT if recurrent else PARALLEL), _SLOTS_MAX - 2)
    slots = min(parallel + (KEPT_RECURRENT if recurrent else KEPT), _SLOTS_MAX - 1)
    flash_attention = _flash_attention(options, slow_kernel=slow_kernel, offloaded=offloaded)
    return Fit(
        n_ctx=n_ctx,
        cells=cells,
        parallel=parallel,
        slots=slots,
        batch=min(BATCH, cells) if flash_attention is not False else _batch(parallel, cells, n_head),
        threads=options.threads or usable_cores(),
        shelf=min(SHELF, memory() // SHELF_SHARE) if options.host_cache is None else options.host_cache,
        flash_attention=flash_attention,
        kv_type=options.kv_type,
    )


def undecided(options: EngineOptions, *, offloaded: bool) -> bool:
    """Whether it takes a measurement to say how this CPU attends best."""
    return options.flash_attention is None and options.kv_type == "f16" and not offloaded


def _flash_attention(options: EngineOptions, *, slow_kernel: bool, offloaded: bool) -> bool | None:
    """None lets llama.cpp use the kernel, which it does wherever the model allows it."""
    if undecided(options, offloaded=offloaded):
        return False if slow_kernel else None
    if options.flash_attention is None and options.kv_type == "f32" and not offloaded:
        return False
    return options.flash_attention


def _batch(parallel: int, cells: int, n_head: int) -> int:
    """Tokens of a step whose scores stay within `SCORES`, and no fewer than run at once."""
    within = SCORES // (4 * cells * max(n_head, 1))
    return min(max(within, BATCH_LEAST, parallel), BATCH, cells)


def memory() -> int:
    """Bytes of the machine's memory, 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def free_memory(proc: Path = _PROC, system: Path = _SYSTEM) -> int:
    """Bytes that this process may still take (Linux): what the machine has left and its container may use.

    0 where the system does not tell. `proc` and `system` are where procfs and sysfs are mounted.
    """
    left: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = (proc / "meminfo").read_text("ascii").splitlines()
        left.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    for most, used in _MEMORY:
        with suppress(OSError, ValueError):
            most_bytes, used_bytes = ((system / name).read_text("ascii") for name in (most, used))
            left.append(max(int(most_bytes) - int(used_bytes), 0))
    return min(left, default=0)


def usable_cores(system: Path = _SYSTEM) -> int:
    """Cores that this process may compute on, at least 1.

    Physical ones where the system tells, since two threads of one core wait for each other, and no more than
    a container's quota pays for: threads beyond it are stopped in the middle of a step, and all wait for them.
    `system` is where sysfs is mounted.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    physical = {_core_of(cpu, system) for cpu in allowed}
    return max(1, min(len(physical), _quota(system)))


def _core_of(cpu: int, system: Path) -> str:
    """A name for the physical core that a logical CPU belongs to (Linux; else the CPU's own number)."""
    try:
        siblings = system / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        return siblings.read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _quota(system: Path) -> int:
    """Whole cores that the control group at hand may use; as good as endless where nothing bounds them."""
    for names in _QUOTAS:
        with suppress(OSError, ValueError):
            numbers = " ".join((system / name).read_text("ascii") for name in names)
            quota, period = map(int, numbers.split())
            if quota > 0 < period:
                return quota // period
    return sys.maxsize


def _rounded(count: int) -> int:
    return -(-count // _ROUND) * _ROUND
