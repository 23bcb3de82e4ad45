"""Sizes that a model is served with, from the operator's options and the properties of machine and model.

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

DEFAULT_CTX_CPU, DEFAULT_CTX_GPU = 8192, 32_768
"""Tokens of one sequence if not configured, and if the model was trained for as many."""
DEFAULT_PARALLEL: Final = 16
"""Sequences that run at once if not configured."""
DEFAULT_PARALLEL_RECURRENT: Final = 8
"""The same for models with recurrent state, which costs 20 to 75 MiB a sequence whether used or not."""
KEPT_SLOTS_RECURRENT: Final = 3
"""Further sequence ids of such models."""
DEFAULT_HOST_CACHE_BYTES: Final = 1 << 30
"""Host memory for prefixes that leave the cache if not configured; at most one part in `HOST_CACHE_SHARE` of
the machine's."""
HOST_CACHE_SHARE: Final = 8
"""Divisor of the machine's memory that bounds that default."""
KEPT_SLOTS: Final = 32
"""Further sequence ids that keep finished prefixes (attention-only models; each costs a logits row)."""
MAX_BATCH_TOKENS: Final = 512
"""Tokens of one step: bounds cancellation and fairness on a GPU, where a step cannot be cut."""
MAX_SCORE_BYTES: Final = 256 << 20
"""Memory of attention without its fused kernel: a float for each head, token of a step and cell."""
MIN_BATCH_TOKENS: Final = 64
"""Tokens of a step that this leaves in any case."""
_CTX_MULTIPLE: Final = 256
"""llama.cpp rounds the context up to a multiple of this."""
_MAX_SLOTS: Final = 256
"""llama.cpp refuses more sequence ids than this."""
_SYSTEM: Final = Path("/sys")
_PROC: Final = Path("/proc")
_QUOTA_FILES: Final = (
    ("fs/cgroup/cpu.max",),
    ("fs/cgroup/cpu/cpu.cfs_quota_us", "fs/cgroup/cpu/cpu.cfs_period_us"),
)
"""Files with a container's quota and period (cgroup v2, v1): microseconds; `max` or -1 is no quota."""

_MEMORY_FILES: Final = (
    ("fs/cgroup/memory.max", "fs/cgroup/memory.current"),
    ("fs/cgroup/memory/memory.limit_in_bytes", "fs/cgroup/memory/memory.usage_in_bytes"),
)
"""Files with the bytes that it may use and does use (cgroup v2, v1); `max` is no limit."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes that a model is loaded with. `n_ctx` <= `cells`; `parallel` <= `slots` <= 256."""

    n_ctx: int
    """Tokens of one sequence."""
    cells: int
    """Cells of the cache."""
    parallel: int
    """Sequences that run at once."""
    slots: int
    """Sequence ids: of running sequences and of kept prefixes."""
    batch: int
    """Tokens of one step, at most."""
    threads: int
    """Compute threads, at most."""
    host_cache_bytes: int
    """Bytes of host memory for prefixes that leave the cache."""
    flash_attention: bool | None = None
    """Whether attention uses its fused kernel; None leaves that to llama.cpp."""
    kv_type: KvType = "f16"
    """Number type of the cache."""


def fit(
    options: EngineOptions,
    *,
    n_ctx_train: int,
    n_head: int,
    recurrent: bool,
    offloaded: bool,
    slow_kernel: bool,
) -> Fit:
    """Returns the sizes for one model.

    Args:
        options: the operator's; None leaves a choice to this function.
        n_ctx_train: tokens that the model was trained for, or 0.
        n_head: heads of a layer that attend, 0 if none does.
        recurrent: whether the model is recurrent or hybrid.
        offloaded: whether layers are on a GPU.
        slow_kernel: whether this CPU computes attention faster without the fused kernel.
    """
    n_ctx = options.ctx or min(
        n_ctx_train or DEFAULT_CTX_CPU, DEFAULT_CTX_GPU if offloaded else DEFAULT_CTX_CPU
    )
    cells = _rounded(max(options.cells or 2 * n_ctx, n_ctx))
    parallel = min(
        options.parallel or (DEFAULT_PARALLEL_RECURRENT if recurrent else DEFAULT_PARALLEL), _MAX_SLOTS - 2
    )
    slots = min(parallel + (KEPT_SLOTS_RECURRENT if recurrent else KEPT_SLOTS), _MAX_SLOTS - 1)
    flash_attention = _flash_attention(options, slow_kernel=slow_kernel, offloaded=offloaded)
    return Fit(
        n_ctx=n_ctx,
        cells=cells,
        parallel=parallel,
        slots=slots,
        batch=min(MAX_BATCH_TOKENS, cells)
        if flash_attention is not False
        else _batch(parallel, cells, n_head),
        threads=options.threads or usable_cores(),
        host_cache_bytes=min(DEFAULT_HOST_CACHE_BYTES, memory() // HOST_CACHE_SHARE)
        if options.host_cache is None
        else options.host_cache,
        flash_attention=flash_attention,
        kv_type=options.kv_type,
    )


def undecided(options: EngineOptions, *, offloaded: bool) -> bool:
    """Returns whether only a measurement can choose the implementation of attention on this CPU."""
    return options.flash_attention is None and options.kv_type == "f16" and not offloaded


def _flash_attention(options: EngineOptions, *, slow_kernel: bool, offloaded: bool) -> bool | None:
    """Returns whether to use the kernel; None lets llama.cpp use it wherever the model allows it."""
    if undecided(options, offloaded=offloaded):
        return False if slow_kernel else None
    if options.flash_attention is None and options.kv_type == "f32" and not offloaded:
        return False
    return options.flash_attention


def _batch(parallel: int, cells: int, n_head: int) -> int:
    """Returns the tokens of a step: as many as `MAX_SCORE_BYTES` allows, and no fewer than run at once."""
    within = MAX_SCORE_BYTES // (4 * cells * max(n_head, 1))
    return min(max(within, MIN_BATCH_TOKENS, parallel), MAX_BATCH_TOKENS, cells)


def memory() -> int:
    """Returns the bytes of the machine's memory, 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def free_memory(proc: Path = _PROC, system: Path = _SYSTEM) -> int:
    """Returns the bytes that this process may still take (Linux): free memory within its container's limit.

    0 if unknown. `proc` and `system` are the mount points of procfs and sysfs.
    """
    left: list[int] = []
    with suppress(OSError, ValueError, StopIteration):
        lines = (proc / "meminfo").read_text("ascii").splitlines()
        left.append(1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")))
    for most, used in _MEMORY_FILES:
        with suppress(OSError, ValueError):
            most_bytes, used_bytes = ((system / name).read_text("ascii") for name in (most, used))
            left.append(max(int(most_bytes) - int(used_bytes), 0))
    return min(left, default=0)


def usable_cores(system: Path = _SYSTEM) -> int:
    """Returns the cores that this process may compute on, at least 1.

    Physical ones if known, since two threads of one core wait for each other, and no more than a container's
    quota pays for: further threads are stopped in the middle of a step, and all wait for them. `system` is
    the mount point of sysfs.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    physical = {_core_of(cpu, system) for cpu in allowed}
    return max(1, min(len(physical), _quota(system)))


def _core_of(cpu: int, system: Path) -> str:
    """Returns a name for the physical core of a logical CPU; where Linux tells none, the CPU's number."""
    try:
        siblings = system / f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        return siblings.read_text("ascii").strip()
    except OSError:
        return str(cpu)


def _quota(system: Path) -> int:
    """Returns the whole cores that the control group may use; `sys.maxsize` without a bound."""
    for names in _QUOTA_FILES:
        with suppress(OSError, ValueError):
            numbers = " ".join((system / name).read_text("ascii") for name in names)
            quota, period = map(int, numbers.split())
            if quota > 0 < period:
                return quota // period
    return sys.maxsize


def _rounded(count: int) -> int:
    return -(-count // _CTX_MULTIPLE) * _CTX_MULTIPLE
