"""The numbers that a model is served with."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from b3node.config import EngineOptions
from b3node.llama import settings as module
from b3node.llama.settings import Fit, fit, free_memory, undecided, usable_cores

COUNTS = st.none() | st.integers(1, 1 << 20)
asked = st.builds(
    EngineOptions,
    ctx=COUNTS,
    cells=COUNTS,
    parallel=COUNTS,
    threads=COUNTS,
    host_cache=st.none() | st.just(0),
)


def fitted(
    *,
    n_ctx_train: int = 4096,
    n_head: int = 9,
    recurrent: bool = False,
    offloaded: bool = False,
    slow_kernel: bool = False,
    **options: Any,
) -> Fit:
    return fit(
        EngineOptions(**options),
        n_ctx_train=n_ctx_train,
        n_head=n_head,
        recurrent=recurrent,
        offloaded=offloaded,
        slow_kernel=slow_kernel,
    )


@given(asked, st.integers(0, 1 << 20), st.integers(0, 256), st.booleans(), st.booleans(), st.booleans())
def test_whatever_is_asked_for_fits_together(
    settings: EngineOptions,
    n_ctx_train: int,
    n_head: int,
    recurrent: bool,
    offloaded: bool,
    slow_kernel: bool,
) -> None:
    """One sequence fits into the cells, those that run into a step, all ids into what llama.cpp takes."""
    fits = fit(
        settings,
        n_ctx_train=n_ctx_train,
        n_head=n_head,
        recurrent=recurrent,
        offloaded=offloaded,
        slow_kernel=slow_kernel,
    )
    assert 1 <= fits.n_ctx <= fits.cells
    assert fits.cells % 256 == 0
    assert 1 <= fits.parallel < fits.slots < 256
    assert fits.parallel <= fits.batch <= min(512, fits.cells)
    assert fits.threads >= 1


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ({"n_ctx": 4096, "cells": 8192, "parallel": 16}, {}),
        ({"n_ctx": 8192, "cells": 16_384}, {"n_ctx_train": 131_072}),
        ({"n_ctx": 32_768, "cells": 65_536}, {"n_ctx_train": 131_072, "offloaded": True}),
        ({"n_ctx": 8192}, {"n_ctx_train": 0}),
        ({"n_ctx": 100, "cells": 256, "batch": 256}, {"n_ctx_train": 100}),
        ({"n_ctx": 9000, "cells": 18_176}, {"ctx": 9000}),
        ({"n_ctx": 1000, "cells": 1024}, {"ctx": 1000, "cells": 300}),
        ({"n_ctx": 1000, "cells": 5120}, {"ctx": 1000, "cells": 5000}),
        ({"n_ctx": 4096, "cells": 4096}, {"cells": 1}),
        ({"parallel": 8}, {"recurrent": True}),
        ({"parallel": 1}, {"parallel": 1}),
        ({"parallel": 1}, {"parallel": 1, "recurrent": True}),
        ({"parallel": 254, "slots": 255}, {"parallel": 1000}),
        ({"threads": 3}, {"threads": 3}),
        ({"host_cache_bytes": 0}, {"host_cache": 0}),
        ({"host_cache_bytes": 77}, {"host_cache": 77}),
    ],
)
def test_what_is_asked_for_and_what_is_not(expected: dict[str, int], options: dict[str, Any]) -> None:
    """An operator's number is kept, beyond what a model was trained for too; the others follow from it."""
    fits = fitted(**options)
    assert {name: getattr(fits, name) for name in expected} == expected


def test_how_the_cache_is_kept_is_passed_on() -> None:
    """Flash attention and the cache's type go through as asked."""
    fits = fitted(flash_attention=True, kv_type="f32")
    assert (fits.flash_attention, fits.kv_type) == (True, "f32")
    assert fitted(flash_attention=False, offloaded=True).flash_attention is False
    assert fitted().kv_type == "f16"


def test_a_cpu_attends_without_the_fused_kernel_where_that_is_slow() -> None:
    """Else llama.cpp decides, as it does on a GPU, and where the cache is in blocks that only that kernel
    reads.
    """
    assert fitted().flash_attention is None
    assert fitted(slow_kernel=True).flash_attention is False
    assert fitted(slow_kernel=True, flash_attention=True).flash_attention is True
    assert fitted(slow_kernel=True, kv_type="q8_0").flash_attention is None
    assert fitted(slow_kernel=True, offloaded=True).flash_attention is None


def test_a_cpu_attends_to_single_floats_without_the_fused_kernel() -> None:
    """It would turn the whole cache into halves with each step."""
    assert fitted(kv_type="f32").flash_attention is False
    assert fitted(kv_type="f32", offloaded=True).flash_attention is None


def test_a_measurement_is_made_only_where_it_decides() -> None:
    """Not for an operator's choice, a GPU, or a cache that leaves none."""
    assert undecided(EngineOptions(), offloaded=False)
    assert not undecided(EngineOptions(), offloaded=True)
    assert not undecided(EngineOptions(flash_attention=False), offloaded=False)
    assert not undecided(EngineOptions(kv_type="f32"), offloaded=False)
    assert not undecided(EngineOptions(kv_type="q8_0"), offloaded=False)


@pytest.mark.parametrize(
    ("n_head", "options", "batch"),
    [
        (9, {"slow_kernel": True}, 512),
        (9, {"cells": 16_384, "slow_kernel": True}, 455),
        (32, {"cells": 16_384, "slow_kernel": True}, 128),
        (64, {"cells": 65_536, "slow_kernel": True}, 64),
        (64, {"cells": 65_536, "slow_kernel": True, "parallel": 100}, 100),
        (64, {"cells": 65_536, "flash_attention": False}, 64),
        (64, {"cells": 65_536, "kv_type": "f32"}, 64),
        (64, {"cells": 65_536}, 512),
        (64, {"cells": 65_536, "slow_kernel": True, "kv_type": "q8_0"}, 512),
        (64, {"cells": 65_536, "slow_kernel": True, "offloaded": True}, 512),
        (0, {"cells": 65_536, "slow_kernel": True}, 512),
    ],
)
def test_a_step_is_as_large_as_its_scores_may_be(n_head: int, options: dict[str, Any], batch: int) -> None:
    """Without the fused kernel, a step's scores stay within 256 MiB, and every running sequence still has a
    token.
    """
    assert fitted(n_head=n_head, **options).batch == batch


def test_host_memory_is_bounded_by_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing is configured, an eighth of the machine's memory and at most 1 GiB; none where it is
    unknown.
    """
    for memory, expected in ((1 << 40, 1 << 30), (8 << 20, 1 << 20), (0, 0)):
        monkeypatch.setattr(module, "memory", lambda memory=memory: memory)
        assert fitted().host_cache_bytes == expected


@pytest.mark.parametrize(
    ("meminfo", "limits", "free"),
    [
        ("MemTotal: 900 kB\nMemAvailable: 500 kB\n", {}, 512_000),
        ("MemAvailable: 500 kB\n", {"memory.max": "max", "memory.current": "7"}, 512_000),
        ("MemAvailable: 500 kB\n", {"memory.max": "1007\n", "memory.current": "7\n"}, 1000),
        ("MemAvailable: 500 kB\n", {"memory.max": "5", "memory.current": "7"}, 0),
        (
            "MemAvailable: 500 kB\n",
            {"memory/memory.limit_in_bytes": "1007", "memory/memory.usage_in_bytes": "7"},
            1000,
        ),
        ("MemTotal: 900 kB\n", {}, 0),
        ("", {}, 0),
    ],
)
def test_free_memory_is_what_the_machine_and_the_container_have_left(
    tmp_path: Path, meminfo: str, limits: dict[str, str], free: int
) -> None:
    """The smaller of both; nothing where the system does not tell."""
    (tmp_path / "meminfo").write_text(meminfo)
    for name, content in limits.items():
        path = tmp_path / "fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert free_memory(tmp_path, tmp_path) == free
    assert free_memory(tmp_path / "nowhere", tmp_path / "nowhere") == 0


def _system(root: Path, siblings: dict[int, str], **files: str) -> Path:
    """A sysfs under `root` that tells of these CPUs and quotas (a `__` stands for a dot)."""
    for cpu, cores in siblings.items():
        topology = root / f"devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cores}\n")
    for name, content in files.items():
        path = root / "fs/cgroup" / ("" if name == "cpu__max" else "cpu") / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


FOUR = {0: "0,4", 1: "1,5", 2: "2,6", 3: "3,7", 4: "0,4", 5: "1,5", 6: "2,6", 7: "3,7"}


@pytest.mark.parametrize(
    ("allowed", "siblings", "quotas", "cores"),
    [
        (range(8), FOUR, {}, 4),
        ((0, 4), FOUR, {}, 1),
        ((1, 4, 6), FOUR, {}, 3),
        (range(8), {}, {}, 8),
        (range(8), FOUR, {"cpu__max": "max 100000\n"}, 4),
        (range(8), FOUR, {"cpu__max": "250000 100000\n"}, 2),
        (range(8), FOUR, {"cpu__max": "50000 100000\n"}, 1),
        (range(8), FOUR, {"cpu__max": "1600000 100000\n"}, 4),
        (range(8), FOUR, {"cpu__cfs_quota_us": "300000\n", "cpu__cfs_period_us": "100000\n"}, 3),
        (range(8), FOUR, {"cpu__cfs_quota_us": "-1\n", "cpu__cfs_period_us": "100000\n"}, 4),
        (range(8), FOUR, {"cpu__cfs_quota_us": "300000\n"}, 4),
        (range(8), FOUR, {"cpu__max": ""}, 4),
    ],
)
def test_cores_are_physical_allowed_and_paid_for(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    allowed: Iterable[int],
    siblings: dict[int, str],
    quotas: dict[str, str],
    cores: int,
) -> None:
    """Sibling threads count once, only those that the process may use, and no more than its quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))
    assert usable_cores(_system(tmp_path, siblings, **quotas)) == cores


def test_this_machine_has_cores() -> None:
    """What the real system says is between one and all logical CPUs."""
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert fitted().threads == usable_cores()
