"""Which attention a CPU is better off with: what is measured, of which shape, and what follows."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from b3node.config import EngineOptions
from b3node.llama import attention, library
from b3node.llama.attention import WORKLOADS, Heads, Workload, fused_slowness
from b3node.llama.library import lib
from tests.llama.loaded import loaded
from tests.zoo.zoo import Zoo

HEADS = Heads(6, 2, 64)


def computed(
    attend: Callable[[Any], int], heads: Heads, seen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float32]:
    """What a way to attend gives: tokens x heads x width."""
    library.begin()
    ggml = attention._Ggml(lib._lib)
    tokens = len(seen)
    with attention._pool(ggml) as pool:
        graph, out = ggml.graph(pool), attend(attention._Layer(ggml, pool, heads, seen))
        ggml.expand(graph, out)
        assert ggml.compute(pool, graph, 1) == 0
        count = tokens * heads.query * heads.width
        numbers = (ctypes.c_float * count).from_address(ggml.data(out))
        return np.array(numbers, np.float32).reshape(tokens, heads.query, heads.width)


@pytest.mark.parametrize("workload", [Workload(1, 300), Workload(5, 7), Workload(3, 4, 50)])
def test_both_ways_compute_the_same(workload: Workload) -> None:
    """Otherwise they would not be two ways of one thing: keys, values, masks and scales are laid out
    alike.
    """
    seen = workload.seen()
    fused, plain = (computed(way, HEADS, seen) for way in (attention._fused, attention._plain))
    assert np.abs(plain).max() > 0.1
    np.testing.assert_allclose(fused, plain, atol=0.02)


def test_what_no_token_sees_changes_nothing() -> None:
    """The mask is heeded: a token that sees its own cells alone is not moved by those of the others."""
    one, other = Workload(2, 10).seen(), Workload(2, 10).seen()
    other[1] = one[0]
    for way in (attention._fused, attention._plain):
        np.testing.assert_array_equal(computed(way, HEADS, one)[0], computed(way, HEADS, other)[0])
        assert not np.array_equal(computed(way, HEADS, one)[1], computed(way, HEADS, other)[1])


def test_a_situation_says_who_sees_what() -> None:
    """Common cells first, then each token's own; as many as llama.cpp looks at."""
    seen = Workload(2, 3, 4).seen()
    assert seen.shape == (2, 256)
    assert np.flatnonzero(seen[0]).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert np.flatnonzero(seen[1]).tolist() == [0, 1, 2, 3, 7, 8, 9]
    assert [workload.seen().shape for workload in WORKLOADS] == [(1, 1536), (16, 1280), (16, 1280)]


@pytest.mark.parametrize(
    ("heads", "fewer"),
    [
        (Heads(9, 3, 64), Heads(6, 2, 64)),
        (Heads(32, 8, 128), Heads(8, 2, 128)),
        (Heads(4, 4, 32), Heads(4, 4, 32)),
        (Heads(71, 1, 64), Heads(8, 1, 64)),
        (Heads(1, 0, 64), Heads(1, 1, 64)),
        (Heads(16, 16, 512), Heads(2, 2, 512)),
        (Heads(64, 8, 1024), Heads(8, 1, 1024)),
    ],
)
def test_a_part_of_a_layer_stands_for_it(heads: Heads, fewer: Heads) -> None:
    """As many query heads share keys and values, eight at most: a large model must not take a second to
    start.
    """
    assert heads.fewer() == fewer


@pytest.mark.parametrize(
    "heads",
    [
        HEADS,
        Heads(1, 1, 1),
        Heads(16, 16, 7),
        Heads(12, 12, 80),
        Heads(8, 8, 512),
        Heads(64, 64, 1024),
        Heads(8, 1, 1024),
    ],
)
def test_a_ratio_is_measured_of_every_shape(heads: Heads) -> None:
    """Whichever is faster here, neither takes a hundred times as long: both have computed, and in the memory
    there is.
    """
    library.begin()
    assert 0.01 < fused_slowness(heads) < 100


@pytest.mark.parametrize("stated", ["0", "4096", "99999999999"])
def test_nothing_is_measured_of_heads_that_no_model_has(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch, stated: str
) -> None:
    """A file may say anything of its heads, and ggml ends the process where memory does not suffice."""
    monkeypatch.setattr(
        attention, "metadata", lambda _, key: stated if key.endswith("key_length") else "llama"
    )
    monkeypatch.setattr(attention, "fused_slowness", lambda _: pytest.fail("it was measured"))
    with loaded(zoo.random("llama"), EngineOptions(ctx=256, threads=1)) as model:
        assert model.fit.flash_attention is None


def test_an_exact_cache_is_no_slow_kernel(zoo: Zoo) -> None:
    """It goes without the kernel for its own sake, and a node says of its CPU only what was measured."""
    with loaded(zoo.random("llama"), EngineOptions(ctx=256, threads=1, kv_type="f32")) as model:
        assert model.fit.flash_attention is False
        assert model.device == "CPU, 1 thread"


def test_the_slower_kernel_is_left_alone(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is loaded with what was found for the shape of its layers, and says so."""
    asked: list[Heads] = []
    found = attention.MAX_KERNEL_SLOWNESS + 0.1

    def slowness(heads: Heads) -> float:
        asked.append(heads)
        return found

    monkeypatch.setattr(attention, "fused_slowness", slowness)
    path = zoo.random("llama")
    with loaded(path, EngineOptions(ctx=256, threads=1)) as model:
        assert model.fit.flash_attention is False
        assert "without the fused kernel, which is slow here" in model.device
    found = attention.MAX_KERNEL_SLOWNESS - 0.1
    with loaded(path, EngineOptions(ctx=256, threads=1)) as model:
        assert model.fit.flash_attention is None
        assert model.device == "CPU, 1 thread"
    with loaded(path, EngineOptions(ctx=256, threads=1, flash_attention=False)) as model:
        assert model.device == "CPU, 1 thread"
    assert len(asked) == 2
    assert all(heads.width > 0 for heads in asked)


def test_a_build_that_hides_ggml_leaves_the_choice_to_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the functions there is nothing to measure, and that is no reason to fail."""
    monkeypatch.setattr(lib, "_lib", ctypes.CDLL(None))
    assert fused_slowness(HEADS) == 1.0
