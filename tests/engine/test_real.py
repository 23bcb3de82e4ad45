"""Scheduler, loop and the real context together: whatever runs beside it, each request hears its own
model.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from b3node.config import EngineOptions
from b3node.engine.messages import Cancel, Sampling, Submit
from b3node.engine.plan import Drop, Plan
from tests.engine.real import Engine, judge, random_prompts, submit
from tests.llama.damaged import POISON, poisoned
from tests.llama.loaded import EXACT, chunk, ids, loaded
from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.script import Piece, compile_script
from tests.zoo.zoo import Zoo

ALL = pytest.mark.parametrize("arch", ARCHITECTURES)
KINDS = pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen35"])
UNPOISONED = 2
"""A seed whose prompts are answered without the token at which the broken models overflow."""
SMALL = msgspec.structs.replace(EXACT, ctx=256, cells=256)


@ALL
def test_many_at_once_each_hear_their_own(zoo: Zoo, arch: Arch) -> None:
    """More requests than slots, of all lengths, chunked and batched as it comes, are each answered
    exactly.
    """
    path, prompts = zoo.random(arch), random_prompts(1, [3, 200, 1, 40, 17, 90, 400, 2, 64, 5])
    with loaded(path) as model:
        engine = Engine(model, tick=0.03)
        engine.serve(*(submit(number, prompt, max_tokens=20) for number, prompt in prompts.items()))
        judge(engine, path, prompts)
        assert {end.reason for end in engine.finished.values()} <= {"stop", "length"}


@ALL
def test_the_products_own_settings_say_the_same(zoo: Zoo, arch: Arch) -> None:
    """As served, with a half-precision cache, scripts are followed to the letter."""
    pieces: list[Piece] = [b"It ", b"was ", b"the ", b"best", b" of", b" times\xc3", b"\xa9", b"."]
    script, prompts = compile_script(pieces), random_prompts(2, [1, 300, 70, 7, 33, 130])
    with loaded(zoo.scripted(pieces, arch=arch), EngineOptions(ctx=512, parallel=3, threads=1)) as model:
        engine = Engine(model, tick=0.05)
        engine.serve(*(submit(number, prompt, max_tokens=20) for number, prompt in prompts.items()))
        assert all(engine.said[number] == script.follow(prompt, 20) for number, prompt in prompts.items())
        assert all(pieces == script.pieces for pieces in engine.pieces.values())
        assert {end.reason for end in engine.finished.values()} == {"stop"}


@KINDS
def test_a_device_that_computes_beside_us_is_told_of_later(zoo: Zoo, arch: Arch) -> None:
    """Where steps overlap with telling, the front hears the same, a step later, and all of it in the end."""
    path, prompts = zoo.random(arch), random_prompts(5, [30, 150, 8])
    with loaded(path) as model:
        model.backend.overlaps = True
        engine = Engine(model)
        engine.serve(*(submit(number, prompt) for number, prompt in prompts.items()))
        judge(engine, path, prompts)


@ALL
def test_a_paused_sequence_goes_on_as_if_nothing_had_been(zoo: Zoo, arch: Arch) -> None:
    """When cells run out, sequences are given up and computed or brought back: no word of them changes."""
    path, prompts = zoo.random(arch), random_prompts(2, [50, 55, 60, 65, 50, 55, 60, 65])
    with loaded(path, SMALL) as model:
        engine = Engine(model)
        paused: set[int] = set()
        for number, prompt in prompts.items():
            engine.step(submit(number, prompt, max_tokens=70, reserve=4))
        while not engine.scheduler.idle:
            engine.step()
            paused.update(sequence.id for sequence in engine.scheduler.waiting if sequence.paused)
        judge(engine, path, prompts)
        assert paused


@ALL
def test_a_slot_forgets_who_was_in_it(zoo: Zoo, arch: Arch) -> None:
    """One after the other in one slot, and cancelled in the middle of a prompt: no trace in the next
    answer.
    """
    path, prompts = zoo.random(arch), random_prompts(3, [300, 20, 300, 7, 150])
    with loaded(path, msgspec.structs.replace(EXACT, parallel=1)) as model:
        engine = Engine(model, tick=0.3)
        engine.step(submit(100, prompts[0]))
        assert 0 < engine.computed < 300
        engine.step(Cancel(100), submit(101, prompts[2], namespace="other"))
        engine.step(Cancel(101))
        for number, prompt in prompts.items():
            engine.serve(submit(number, prompt))
        judge(engine, path, prompts)
        for request in (100, 101):
            assert engine.finished[request].reason == "cancelled"


@ALL
def test_who_leaves_in_the_middle_disturbs_nobody(zoo: Zoo, arch: Arch) -> None:
    """Streams beside prompts that are cancelled while they are computed, and while they answer."""
    path, prompts = zoo.random(arch), random_prompts(4, [30, 260, 45, 260, 260])
    with loaded(path) as model:
        engine = Engine(model, tick=0.02)
        engine.step(*(submit(number, prompts[number], max_tokens=40) for number in (0, 1, 2)))
        engine.step(Cancel(1), submit(3, prompts[3]))
        engine.step(Cancel(3), submit(4, prompts[4]), submit(5, prompts[1]))
        for _ in range(20):
            engine.step()
        engine.serve(Cancel(0))
        judge(engine, path, {**prompts, 5: prompts[1]})
        assert [engine.finished[number].reason for number in (1, 3)] == ["cancelled"] * 2
        assert engine.finished[0].reason in {"cancelled", "stop"}


@ALL
def test_a_common_beginning_is_computed_once(zoo: Zoo, arch: Arch) -> None:
    """Together or later, prompts that begin alike read one computation, and say what they say without it."""
    path, common = zoo.random(arch), ids(5, 120)
    prompts = {number: [*common, *ids(10 + number, 9)] for number in range(6)}
    marks = (120,)
    with loaded(path) as model:
        engine = Engine(model)
        engine.serve(*(submit(number, prompts[number], marks=marks) for number in (0, 1, 2, 3)))
        engine.serve(
            submit(4, prompts[4], marks=marks), submit(5, prompts[5], marks=marks, namespace="other")
        )
        judge(engine, path, prompts)
        assert sorted(engine.cached.values()) == [0, 0, 120, 120, 120, 120]
        assert engine.cached[4] == 120
        assert engine.cached[5] == 0


@ALL
def test_a_conversation_is_never_computed_twice(zoo: Zoo, arch: Arch) -> None:
    """Turn by turn, all that was computed before is read; the answers are those of a fresh start."""
    path, prompts = zoo.random(arch), {0: ids(6, 60)}
    with loaded(path) as model:
        engine, known = Engine(model), 0
        for turn in range(5):
            engine.serve(submit(turn, prompts[turn], max_tokens=8, marks=(len(prompts[turn]),)))
            assert engine.cached[turn] == known
            prompts[turn + 1] = [*prompts[turn], *engine.said[turn], *ids(20 + turn, 11)]
            known = len(prompts[turn]) + len(engine.said[turn]) - 1
        del prompts[5]
        judge(engine, path, prompts)


@ALL
@pytest.mark.parametrize("seed", [1, 2])
def test_no_workload_changes_a_word(zoo: Zoo, arch: Arch, seed: int) -> None:
    """Arrivals, cancels, shared beginnings, two organizations, few cells and little host memory: all
    exact.
    """
    path, rng = zoo.random(arch), np.random.default_rng(seed)
    stems = [[], ids(7, 40), [*ids(7, 40), *ids(8, 30)], ids(9, 70)]
    prompts: dict[int, list[int]] = {}
    settings = msgspec.structs.replace(SMALL, host_cache=int(rng.choice([0, 60_000, 1 << 20])))
    with loaded(path, settings) as model:
        engine = Engine(model, tick=0.02)
        for _ in range(45):
            messages: list[Submit | Cancel] = []
            if rng.random() < 0.45:
                stem, own = stems[rng.integers(4)], ids(int(rng.integers(1000)), int(rng.integers(1, 60)))
                prompts[len(prompts)] = [*stem, *own]
                messages.append(
                    submit(
                        len(prompts) - 1,
                        prompts[len(prompts) - 1],
                        max_tokens=int(rng.integers(1, 40)),
                        reserve=int(rng.integers(1, 10)),
                        namespace="ab"[rng.integers(2)],
                        marks=(40,) if len(stem) == 40 else (),
                    )
                )
            if prompts and rng.random() < 0.1:
                messages.append(Cancel(int(rng.integers(len(prompts)))))
            engine.step(*messages)
        engine.serve()
        judge(engine, path, prompts)


def branches(number: int) -> Piece:
    """A choice of three, in words of its own."""
    words = [f"{word}{number}".encode() for word in ("yes", "no", "maybe")]
    return [([words[0]], 0.5), ([words[1], b"!%d" % number], 0.3), ([words[2], b" so%d" % number], 0.2)]


def test_branches_are_drawn_as_often_as_the_model_says(zoo: Zoo) -> None:
    """At temperature 1, through batches and slots, alternatives of .5, .3 and .2 come that often."""
    with loaded(zoo.scripted([branches(0)])) as model:
        engine = Engine(model)
        for first in range(0, 600, 60):
            sent = range(first, first + 60)
            engine.serve(*(submit(n, [5, n % 256], sampling=Sampling(1.0, 1.0, n)) for n in sent))
        texts = [b"".join(engine.pieces[number]) for number in range(600)]
        counts = np.array([texts.count(text) for text in (b"yes0", b"no0!0", b"maybe0 so0")])
        assert counts.sum() == 600
        expected = np.array([300, 180, 120])
        assert ((counts - expected) ** 2 / expected).sum() < 13.8  # 2 degrees of freedom, p = 0.001


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (2.0, 1e-6)])
def test_greedy_takes_the_likeliest_whatever_the_seed(zoo: Zoo, temperature: float, top_p: float) -> None:
    """Temperature 0 and top_p 0 are greedy, however large the other is; a tiny top_p comes to the same."""
    path, prompt = zoo.random("llama"), ids(1, 20)
    with loaded(path) as model:
        engine = Engine(model)
        seeds = range(6)
        engine.serve(*(submit(n, prompt, sampling=Sampling(temperature, top_p, n)) for n in seeds))
        judge(engine, path, dict.fromkeys(seeds, prompt))


@pytest.mark.parametrize("chance", [Sampling(0.0, 1.0, 1), Sampling(0.4, 1.0, 1), Sampling(0.7, 0.9, 2)])
def test_what_is_guessed_changes_no_word(zoo: Zoo, chance: Sampling) -> None:
    """Greedily and by chance, who quotes an earlier answer says with drafts what it says without, in fewer
    steps.
    """
    path, prompt = zoo.scripted([branches(number) for number in range(30)]), ids(1, 20)
    said, steps = {}, {}
    for drafts in (True, False):
        with loaded(path) as model:
            engine = Engine(model, drafts=drafts)
            engine.serve(submit(0, prompt, max_tokens=60, sampling=chance))
            quoted = [*prompt, *engine.said[0], *prompt]
            again = (
                submit(n, quoted, max_tokens=60, sampling=msgspec.structs.replace(chance, seed=n))
                for n in (1, 2, 3)
            )
            engine.serve(*again)
            said[drafts], steps[drafts] = engine.said, engine.steps
    assert said[True] == said[False]
    assert steps[True] < steps[False]


@pytest.mark.parametrize("arch", ["llama", "qwen35"])
def test_a_seed_repeats_a_response_whatever_runs_beside_it(zoo: Zoo, arch: Arch) -> None:
    """Alone, in a crowd, cached, and paused for want of cells: the same seed says the same, another
    another.
    """
    path = zoo.scripted([branches(number) for number in range(30)], arch=arch)
    first, chance = ids(1, 40), Sampling(0.9, 0.95, 7)
    with loaded(path, SMALL) as model:
        engine = Engine(model)
        engine.serve(submit(0, first, max_tokens=50, sampling=chance))
        crowd = [submit(10 + n, ids(n, 50), max_tokens=50, sampling=Sampling(1.0, 1.0, n)) for n in range(5)]
        engine.serve(*crowd, submit(1, first, max_tokens=50, reserve=3, sampling=chance))
        engine.serve(submit(2, first, max_tokens=50, sampling=chance))
        engine.serve(submit(3, first, max_tokens=50, sampling=Sampling(0.9, 0.95, 8)))
        assert engine.said[0] == engine.said[1] == engine.said[2]
        assert engine.said[0] != engine.said[3]
        assert len(engine.said[0]) > 30


@KINDS
def test_cells_that_are_not_there_cost_no_words(zoo: Zoo, arch: Arch) -> None:
    """Where the cache holds less than was thought, sequences wait or end as `capacity`; what is said is
    right.
    """
    path, prompts = zoo.random(arch), random_prompts(8, [60, 70, 80, 30])
    with loaded(path, SMALL) as model:
        engine = Engine(model)
        taken = engine.scheduler.limits.slots - 1  # the last slot to be used
        model.backend.run(Plan(chunks=(chunk(taken, 0, ids(9, 120), logits=False),)))
        engine.serve(*(submit(n, prompt, max_tokens=30) for n, prompt in prompts.items()), bound=400)
        judge(engine, path, {n: p for n, p in prompts.items() if engine.finished[n].reason != "capacity"})
        model.backend.run(Plan(moves=(Drop(taken),)))
        again = {10 + number: prompt for number, prompt in prompts.items()}
        engine.serve(*(submit(number, prompt, max_tokens=30) for number, prompt in again.items()))
        judge(engine, path, again)
        assert {engine.finished[number].reason for number in again} <= {"stop", "length"}


@KINDS
@pytest.mark.parametrize("tokens", [[], [-1], [281], [3, 1 << 30, 4], [5] * 512])
def test_a_prompt_that_no_model_can_read_fails_alone(zoo: Zoo, arch: Arch, tokens: list[int]) -> None:
    """No tokens, tokens that do not exist, or as many as the context: `failed`, and others are answered."""
    path, prompts = zoo.random(arch), random_prompts(1, [30])
    with loaded(path) as model:
        engine = Engine(model)
        engine.serve(submit(0, prompts[0]), submit(1, tokens))
        judge(engine, path, prompts)
        assert engine.finished[1].reason == "failed"
        assert engine.finished[1].output_tokens == 0


@pytest.mark.parametrize("flash_attention", [True, False])
@pytest.mark.parametrize("arch", ["llama", "gemma3", "qwen35"])
def test_a_sequence_that_overflows_fails_and_its_successors_do_not(
    tmp_path: Path, arch: Arch, flash_attention: bool
) -> None:
    """A prompt whose numbers overflow ends as `failed`; whoever gets its cells afterwards is answered."""
    path, prompts = tmp_path / "x.gguf", random_prompts(UNPOISONED, [30, 300, 60, 5])
    clean = {number: [token % POISON for token in prompt] for number, prompt in prompts.items()}
    poisoned(path, arch)
    with loaded(path, msgspec.structs.replace(EXACT, parallel=2, flash_attention=flash_attention)) as model:
        engine = Engine(model)
        engine.serve(submit(9, [*ids(1, 20), POISON, *ids(2, 50)]))
        assert engine.finished[9].reason == "failed"
        assert 9 not in engine.pieces
        engine.serve(*(submit(number, prompt) for number, prompt in clean.items()))
        judge(engine, path, clean)


@KINDS
def test_a_sequence_that_overflows_costs_no_other(tmp_path: Path, arch: Arch) -> None:
    """Streams that run beside a prompt whose numbers overflow go on, and say what they would have said."""
    path, prompts = tmp_path / "x.gguf", random_prompts(UNPOISONED, [30, 60])
    clean = {number: [token % POISON for token in prompt] for number, prompt in prompts.items()}
    poisoned(path, arch)
    with loaded(path, msgspec.structs.replace(EXACT, flash_attention=True)) as model:
        engine = Engine(model)
        engine.step(*(submit(number, prompt, max_tokens=20) for number, prompt in clean.items()))
        engine.serve(submit(9, [*ids(1, 20), POISON, *ids(2, 50)]))
        assert engine.finished[9].reason == "failed"
        judge(engine, path, clean)
        assert {engine.finished[number].reason for number in clean} <= {"stop", "length"}


@pytest.mark.parametrize("arch", ["gemma3", "gemma4"])
@pytest.mark.parametrize("parallel", [8, 16])
def test_windows_of_a_crowd_fit(zoo: Zoo, arch: Arch, parallel: int) -> None:
    """Many readers of one prefix, running and kept, are served where their windows outnumber the cells."""
    path, common = zoo.random(arch), ids(3, 20)
    prompts = {number: [*common, *ids(50 + number, 2)] for number in range(60)}
    with loaded(path, msgspec.structs.replace(SMALL, parallel=parallel)) as model:
        engine = Engine(model)
        engine.serve(*(submit(n, p, max_tokens=6, marks=(20,)) for n, p in prompts.items()), bound=400)
        judge(engine, path, prompts)
        assert {end.reason for end in engine.finished.values()} <= {"stop", "length"}
