"""The real backend against the reference: whatever a plan does, each row is what a fresh prefill would
say.
"""

from __future__ import annotations

from array import array
from pathlib import Path

import msgspec
import numpy as np
import pytest

from b3node.config import EngineOptions
from b3node.engine.backend import CellsFullError, DecodeError, Rows
from b3node.engine.plan import Chunk, Drop, Plan, Share
from b3node.llama.context import Context
from b3node.spans import ImageSpan
from tests.llama.loaded import TOLERANCE, chunk, ids, loaded
from tests.llama.walk import Walk
from tests.zoo import reference
from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.zoo import Zoo

ALL = pytest.mark.parametrize("arch", ARCHITECTURES)
SHARING = pytest.mark.parametrize(
    "arch", [arch for arch, has in ARCHITECTURES.items() if not (has.recurrent or has.window)]
)
KINDS = pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen35"])
"""One of each kind of memory: every position, a window beside it, a state beside it."""
SMALL = EngineOptions(ctx=256, cells=256, parallel=4, threads=1, flash_attention=False, kv_type="f32")
PROMPT = ids(1, 100)


def run(context: Context, *parts: Drop | Share | Chunk) -> Rows:
    """The rows of one plan, copied: the next one overwrites them."""
    moves = tuple(part for part in parts if not isinstance(part, Chunk))
    return context.run(Plan(moves, tuple(part for part in parts if isinstance(part, Chunk)))).copy()


def close(row: Rows, path: Path, tokens: list[int], tolerance: float = TOLERANCE) -> bool:
    """Whether `row` is what the reference says after `tokens`."""
    return bool(np.abs(row - reference.logits(path, tokens)).max() < tolerance)


@ALL
def test_a_prompt_may_be_cut_anywhere(zoo: Zoo, arch: Arch) -> None:
    """Chunks of any size give the logits of one prefill, and those of the reference."""
    path = zoo.random(arch)
    expected = reference.logits(path, PROMPT)
    with loaded(path) as model:
        for size in (1, 3, 16, 17, 64, 99, 100):
            for start in range(0, len(PROMPT), size):
                part = chunk(2, start, PROMPT[start : start + size], logits=start + size >= len(PROMPT))
                rows = run(model.backend, part)
            assert np.abs(rows[0] - expected).max() < TOLERANCE
            run(model.backend, Drop(2))


@ALL
@pytest.mark.parametrize("seed", [1, 4])
def test_whatever_happens_each_row_is_its_own(zoo: Zoo, arch: Arch, seed: int) -> None:
    """Slots that grow, are read, copied, put away, brought back and emptied: each row is that of its
    tokens.
    """
    path, family = zoo.random(arch), ARCHITECTURES[arch]
    with loaded(path) as model, reference.opened(path) as judge:
        walk = Walk(model.backend, seed, stateful=family.recurrent or family.window, slots=4)
        for row, tokens in (pair for _ in range(30) for pair in walk.step()):
            with judge.context(len(tokens)) as fresh:
                assert np.abs(row - fresh.decode(tokens)).max() < TOLERANCE
    assert {"Drop", "Checkpoint", "Save", "Load"} <= walk.done
    assert ("Trim" in walk.done) != walk.stateful


@SHARING
def test_a_shared_prefix_goes_on_like_a_fresh_one(zoo: Zoo, arch: Arch) -> None:
    """After a share of any length the target continues as if computed, and the source is undisturbed."""
    path, tail = zoo.random(arch), ids(2, 7)
    with loaded(path) as model:
        run(model.backend, chunk(0, 0, PROMPT, logits=False))
        for length in (1, 15, 16, 17, 50, 99, 100):
            rows = run(model.backend, Drop(1), Share(0, 1, length), chunk(1, length, tail))
            assert close(rows[0], path, PROMPT[:length] + tail)
        run(model.backend, Drop(1), Share(0, 1, 60), Drop(0))
        assert close(run(model.backend, chunk(1, 60, tail))[0], path, PROMPT[:60] + tail)


@ALL
def test_the_products_own_settings_mean_the_same(zoo: Zoo, arch: Arch) -> None:
    """With an F16 cache, as served, logits are those of the reference up to rounding."""
    path = zoo.random(arch)
    with loaded(path, EngineOptions(ctx=512, parallel=2, threads=1)) as model:
        rows = run(model.backend, chunk(0, 0, PROMPT), chunk(1, 0, ids(3, 60)))
    assert close(rows[0], path, PROMPT, 0.05)
    assert close(rows[1], path, ids(3, 60), 0.05)


def test_flash_attention_and_the_caches_type_are_chosen(zoo: Zoo) -> None:
    """Each choice computes a little differently: an exact cache is nearer to the reference than a half
    one.
    """
    path, off = zoo.random("llama"), {}
    for kv_type in ("f32", "f16"):
        with loaded(path, EngineOptions(ctx=256, threads=1, flash_attention=False, kv_type=kv_type)) as model:
            off[kv_type] = run(model.backend, chunk(0, 0, PROMPT))
    with loaded(path, EngineOptions(ctx=256, threads=1, flash_attention=True)) as model:
        on = run(model.backend, chunk(0, 0, PROMPT))
    assert not np.array_equal(off["f32"], off["f16"])
    assert not np.array_equal(on, off["f16"])
    assert close(off["f32"][0], path, PROMPT, 1e-5)


@KINDS
def test_a_full_cache_is_told_and_changes_nothing(zoo: Zoo, arch: Arch) -> None:
    """A step that does not fit raises `CellsFullError`; all slots go on from where they were, new ones
    too.
    """
    path = zoo.random(arch)
    with loaded(path, SMALL) as model:
        context = model.backend
        run(context, chunk(0, 0, PROMPT), chunk(1, 0, ids(2, 100)))
        for _ in range(3):
            with pytest.raises(CellsFullError):
                run(context, chunk(0, 100, [7]), chunk(2, 0, ids(3, 90)))
        rows = run(context, chunk(0, 100, [7]), chunk(2, 0, ids(3, 40)), chunk(1, 100, [8]))
    assert close(rows[0], path, [*PROMPT, 7])
    assert close(rows[1], path, ids(3, 40))
    assert close(rows[2], path, [*ids(2, 100), 8])


@KINDS
def test_what_is_dropped_is_free(zoo: Zoo, arch: Arch) -> None:
    """A cache that holds one prompt takes hundreds, one after the other, and remembers none of them."""
    path = zoo.random(arch)
    with loaded(path, SMALL) as model:
        for seed in range(12):
            rows = run(model.backend, Drop((seed + 3) % 4), chunk(seed % 4, 0, ids(seed, 250)))
            run(model.backend, Drop(seed % 4))
    assert close(rows[0], path, ids(11, 250))


@SHARING
def test_cells_are_shared_not_copied(zoo: Zoo, arch: Arch) -> None:
    """Four readers of 200 cells fit into 256, and keep them when the one that computed them has gone."""
    path, common = zoo.random(arch), ids(4, 200)
    with loaded(path, SMALL) as model:
        context = model.backend
        run(context, chunk(0, 0, common, logits=False))
        run(context, *(Share(0, slot, 200) for slot in (1, 2, 3)), Drop(0))
        rows = run(context, *(chunk(slot, 200, ids(slot, 18)) for slot in (1, 2, 3)))
        with pytest.raises(CellsFullError):
            run(context, chunk(0, 0, [1, 2, 3]))
    for slot in (1, 2, 3):
        assert close(rows[slot - 1], path, common + ids(slot, 18))


def invalid(slots: int) -> dict[str, Plan]:
    """Plans that no context of `slots` slots, 256 cells and 281 tokens may carry out."""
    return {
        "no such slot": Plan(chunks=(chunk(slots, 0, [1]),)),
        "a slot below 0": Plan(chunks=(chunk(-1, 0, [1]),)),
        "drop of no such slot": Plan(moves=(Drop(256),)),
        "share from no such slot": Plan(moves=(Share(-1, 2, 1),)),
        "share to no such slot": Plan(moves=(Share(0, slots, 1),)),
        "more than a batch": Plan(chunks=(chunk(2, 0, [1] * 200), chunk(3, 0, [1] * 57))),
        "a chunk without tokens": Plan(chunks=(chunk(1, 9, [1]), chunk(2, 0, []))),
        "more rows than slots": Plan(chunks=tuple(chunk(2, at, [1]) for at in range(slots + 1))),
        "a position below 0": Plan(chunks=(chunk(2, -1, [1]),)),
        "a position past all cells": Plan(chunks=(chunk(2, 255, [1, 1]),)),
        "a position past an int32": Plan(chunks=(chunk(2, 1 << 31, [1]),)),
        "a token below 0": Plan(chunks=(chunk(2, 0, [5, -1, 5]),)),
        "a token past the vocabulary": Plan(chunks=(chunk(2, 0, [5, 281]),)),
        "an image": Plan(
            chunks=(Chunk(2, 0, array("i", [5, 5]), logits=False, image=ImageSpan(b"cat", 1, 2)),)
        ),
        "a valid drop before a bad chunk": Plan((Drop(0),), (chunk(2, 0, [281]),)),
    }


@KINDS
@pytest.mark.parametrize("what", invalid(0))
def test_an_invalid_plan_is_refused_before_anything_is_done(zoo: Zoo, arch: Arch, what: str) -> None:
    """What would abort the process, or be computed into nonsense, raises `ValueError` and changes nothing."""
    path = zoo.random(arch)
    with loaded(path, SMALL) as model:
        run(model.backend, chunk(0, 0, PROMPT), chunk(1, 0, PROMPT[:9]))
        with pytest.raises(ValueError, match="a plan"):
            model.backend.run(invalid(model.fit.slots)[what])
        rows = run(model.backend, chunk(1, 9, [3]), chunk(0, 100, [4]))
    assert close(rows[0], path, [*PROMPT[:9], 3])
    assert close(rows[1], path, [*PROMPT, 4])


@pytest.mark.parametrize("start", [0, 50, 99, 101])
def test_a_chunk_that_does_not_continue_its_slot_is_an_error(zoo: Zoo, start: int) -> None:
    """A gap or a repetition raises `DecodeError`, and neither its slot nor the other of the step is
    touched.
    """
    path = zoo.random("llama")
    with loaded(path, SMALL) as model:
        run(model.backend, chunk(0, 0, PROMPT))
        with pytest.raises(DecodeError, match="-1"):
            run(model.backend, chunk(1, 0, PROMPT[:20]), chunk(0, start, [1]))
        rows = run(model.backend, chunk(0, 100, [4]), chunk(1, 0, PROMPT[:20]))
    assert close(rows[0], path, [*PROMPT, 4])
    assert close(rows[1], path, PROMPT[:20])


def test_a_plan_without_rows_gives_none(zoo: Zoo) -> None:
    """No chunks, moves alone, or chunks that ask for nothing: an empty array of the vocabulary's width."""
    with loaded(zoo.random("llama"), SMALL) as model:
        for parts in ((), (Drop(3),), (chunk(0, 0, PROMPT, logits=False),)):
            assert run(model.backend, *parts).shape == (0, 281)


def test_a_context_that_cannot_be_made_is_a_memory_error(zoo: Zoo) -> None:
    """A cache that llama.cpp refuses, here one whose blocks are wider than the heads, says why."""
    with loaded(zoo.random("llama")) as model:
        fit = msgspec.structs.replace(model.fit, kv_type="q8_0", flash_attention=True)
        with pytest.raises(MemoryError, match="q8_0"):
            Context(model._model, model.vocabulary.n_vocab, fit)
