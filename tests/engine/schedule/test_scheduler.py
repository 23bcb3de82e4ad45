from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from b3node.engine.backend import CellsFullError
from b3node.engine.messages import Cancel
from b3node.engine.plan import Plan
from b3node.engine.schedule import chunking
from b3node.spans import ImageSpan
from tests.engine.fake_backend import EOG, continuation, seen
from tests.engine.rig import Rig, said, submit


def test_a_request_gets_exactly_the_tokens_of_the_model() -> None:
    """A lone request's tokens are the model's own, and its ending and counts are reported."""
    rig = Rig()
    prompt = [3, 1, 4, 1, 5]

    rig.step(submit(1, prompt, max_tokens=6))
    rig.drain()

    assert rig.text[1] == said(prompt, 6)
    assert rig.finished[1].reason in {"length", "stop"}
    assert rig.finished[1].prompt_tokens == 5
    assert rig.finished[1].output_tokens == len(continuation(prompt, 6))


def test_each_step_reports_its_cells_and_the_prompt_tokens_it_computed() -> None:
    """Tokens that the prefix cache serves, or that an answer computes, are none of a prompt's."""
    rig = Rig(price=1.0)
    rig.step(submit(1, [*range(40)], max_tokens=5))
    rig.drain()
    assert [step.prompt_tokens for step in rig.steps] == [32, 8, *[0] * (len(rig.steps) - 2)]
    assert [step.cells_used for step in rig.steps[:3]] == [32, 40, 41]
    known = len(rig.steps)

    rig.step(submit(2, [*range(40), 7, 7], max_tokens=1))
    rig.drain()

    assert sum(step.prompt_tokens for step in rig.steps[known:]) == 2
    assert rig.steps[-1].cells_used == rig.scheduler.cache.used == 44 + 2


def test_an_end_token_stops_a_sequence_and_is_counted_but_not_sent() -> None:
    """Generation stops at an end-of-generation token; its piece never reaches the front."""
    prompt = next([i, j] for i in range(90) for j in range(90) if EOG in continuation([i, j], 20)[3:])
    rig = Rig()

    rig.step(submit(1, prompt, max_tokens=20))
    rig.drain()

    assert rig.finished[1].reason == "stop"
    assert rig.finished[1].output_tokens == len(rig.text[1]) + 1


def test_the_end_of_the_context_ends_a_sequence() -> None:
    """A sequence that reaches n_ctx ends as `length`: nothing is shifted or dropped."""
    rig = Rig(n_ctx=20)
    prompt = list(range(10))

    rig.step(submit(1, prompt, max_tokens=100))
    rig.drain()

    reply = continuation(prompt, 10)
    assert rig.finished[1].reason == ("stop" if EOG in reply else "length")
    assert rig.finished[1].output_tokens == len(reply)


def test_prompts_that_arrive_together_compute_their_common_part_once() -> None:
    """Sixteen requests with a common beginning cost it once: the followers wait for the leader."""
    rig = Rig(cells=2048, parallel=16, slots=24, n_ctx=256)
    common = [i % 90 for i in range(150)]

    rig.step(*(submit(i, [*common, i], max_tokens=4) for i in range(16)))
    rig.drain()

    own = sum(rig.finished[i].output_tokens + 1 for i in range(16))
    assert rig.backend.computed <= len(common) + own
    assert all(rig.text.get(i, b"") == said([*common, i], 4) for i in range(16))
    assert sorted(rig.finished[i].cached_tokens for i in range(16)) == [0] + [150] * 15


def test_a_finished_conversation_is_read_by_its_next_turn() -> None:
    """The next turn of a conversation reuses everything that the last one computed."""
    rig = Rig()
    prompt = list(range(40))
    rig.step(submit(1, prompt, max_tokens=5))
    rig.drain()
    reply = continuation(prompt, 5)

    rig.step(submit(2, [*prompt, *reply, 8, 9], max_tokens=5))
    rig.drain()

    assert rig.finished[2].cached_tokens == 40 + len(reply) - 1


def test_another_namespace_shares_nothing() -> None:
    """One organization's prefix is never read by another, and its cached count says so."""
    rig = Rig()
    prompt = list(range(40))
    rig.step(submit(1, prompt, namespace="a"))
    rig.drain()

    rig.step(submit(2, prompt, namespace="b"))
    rig.drain()

    assert rig.finished[2].cached_tokens == 0


def test_a_cancelled_request_gives_back_its_slot_at_once() -> None:
    """After a cancel the next step has no trace of the sequence but the kept prefix."""
    rig = Rig(batch=8)
    rig.step(submit(1, list(range(90)), max_tokens=30))
    computed = rig.backend.computed

    rig.step(Cancel(1))

    assert rig.finished[1].reason == "cancelled"
    assert rig.backend.computed == computed
    assert not rig.scheduler.running


def test_a_prompt_whose_client_left_is_kept_for_its_retry() -> None:
    """A cancelled prefill is not wasted: the same prompt goes on where it was cut."""
    rig = Rig(batch=32)
    prompt = list(range(90))
    rig.step(submit(1, prompt))
    computed = rig.backend.computed
    rig.step(Cancel(1))

    rig.step(submit(2, prompt))
    rig.drain()

    assert rig.finished[2].cached_tokens == computed > 0


def test_the_queue_is_bounded_in_number() -> None:
    """A request that does not fit into the queue ends as `capacity` at once."""
    rig = Rig(parallel=1, slots=2, waiting=2)

    rig.step(*(submit(i, [i, i + 1], max_tokens=3) for i in range(4)))

    assert {i for i, f in rig.finished.items() if f.reason == "capacity"} == {2, 3}


def test_the_queue_is_bounded_in_time() -> None:
    """A request that waits too long ends as `capacity`, and nothing was computed for it."""
    rig = Rig(parallel=1, slots=2)
    rig.step(submit(1, list(range(10)), max_tokens=100), submit(2, [5, 6], queue_timeout=0.05))
    rig.now += 1.0

    rig.step()

    assert rig.finished[2].reason == "capacity"
    assert rig.finished[2].output_tokens == 0


def test_a_follower_does_not_expire_while_its_leader_computes() -> None:
    """A prompt that is held back because another one computes its beginning is not refused meanwhile."""
    rig = Rig(cells=2048, n_ctx=512, batch=16)
    common = [i % 90 for i in range(400)]
    rig.step(submit(1, [*common, 1], max_tokens=3), submit(2, [*common, 2], max_tokens=3, queue_timeout=0.5))

    for _ in range(20):
        rig.now += 0.4
        rig.step()
    rig.drain()

    assert rig.finished[2].reason in {"stop", "length"}
    assert rig.finished[2].cached_tokens == 400


def test_followers_are_put_in_order_once_a_step() -> None:
    """Not once for each of them: the time of a step does not grow with the square of the queue."""
    rig = Rig(cells=2048, n_ctx=512, batch=16, waiting=300)
    common = [i % 90 for i in range(400)]
    rig.step(submit(0, common, max_tokens=3))

    with mock.patch.object(
        rig.scheduler.waiting, "candidates", wraps=rig.scheduler.waiting.candidates
    ) as asked:
        rig.step(*(submit(n, [*common, n % 90], max_tokens=3) for n in range(1, 301)))

    assert len(rig.scheduler.waiting) == 300
    assert asked.call_count == 1


def test_a_running_stream_never_waits_for_more_than_one_chunk() -> None:
    """While a long prompt is computed, every step still gives the running stream its token."""
    rig = Rig(batch=16, n_ctx=400, cells=1024)
    prompt = next([i, i] for i in range(90) if EOG not in continuation([i, i], 40))
    rig.step(submit(1, prompt, max_tokens=40))
    rig.step()
    before = len(rig.text[1])

    rig.step(submit(2, [i % 90 for i in range(300)]))
    for _ in range(9):
        rig.step()

    assert len(rig.text[1]) == before + 10


def test_organizations_share_the_slots_fairly() -> None:
    """An organization with many requests does not keep another one waiting behind all of them."""
    rig = Rig(parallel=2, slots=4)
    rig.step(*(submit(i, [i, 7, i], namespace="many", max_tokens=4) for i in range(10)))

    rig.step(submit(99, [50, 51, 52], namespace="one", max_tokens=4))
    rig.drain()

    started = [request for what, request in rig.order if what == "started"]
    assert started.index(99) <= 4


def test_outgrown_promises_pause_and_go_on() -> None:
    """When cells run out, a sequence beyond its reserve is paused and computed again; its text is the
    same.
    """
    rig = Rig(cells=64, n_ctx=60, parallel=3, slots=4)
    prompts = [p for p in ([i, i + 1] for i in range(80)) if EOG not in continuation(p, 40)][:3]

    rig.step(*(submit(i, prompt, max_tokens=40, reserve=4) for i, prompt in enumerate(prompts)))
    rig.drain()

    assert [rig.text[i] for i in range(3)] == [said(prompt, 40) for prompt in prompts]
    assert rig.backend.computed > 3 * 42


def poisonous(rig, monkeypatch, poison):
    """From now on every row of a step that holds the token `poison` is NaN."""
    read = rig.backend.rows

    def rows():
        read_rows = read()
        if any(token == poison for cells in rig.backend.held.values() for _, token in cells):
            read_rows[:] = float("nan")
        return read_rows

    monkeypatch.setattr(rig.backend, "rows", rows)


def test_a_step_that_breaks_once_costs_no_request_anything() -> None:
    """After a failed decode everything in it is computed again, and its text is unchanged."""
    rig = Rig()
    prompts = [p for p in ([i, i + 1] for i in range(80)) if EOG not in continuation(p, 12)][:3]
    rig.step(*(submit(i, prompt, max_tokens=12) for i, prompt in enumerate(prompts)))
    rig.step()
    rig.faults = ["broken"]

    rig.drain()

    assert [rig.text[i] for i in range(3)] == [said(prompt, 12) for prompt in prompts]


REPEATING = next(p for p in ([i, i + 1, i + 2] for i in range(90)) if EOG not in continuation(p, 40))


def test_right_drafts_take_fewer_steps_and_change_no_token() -> None:
    steps, texts = {}, {}
    for price in (0.0, 1.0):
        rig = Rig(price=price)
        rig.step(submit(1, REPEATING, max_tokens=40))
        steps[price] = next(n for n in range(1, 100) if rig.step() or rig.scheduler.idle)
        texts[price] = rig.text[1]

    assert texts[0.0] == texts[1.0] == said(REPEATING, 40)
    assert steps[0.0] < 0.8 * steps[1.0]


def test_drafts_are_computed_only_where_nothing_is_evicted_for_them() -> None:
    """With no cell to spare, a prefix that is kept stays kept, and no sequence is paused."""
    rig = Rig(cells=len(REPEATING) + 40 + 20, parallel=2, price=0.0)
    rig.step(submit(1, [*range(20)], max_tokens=1))
    assert rig.scheduler.cache.kept
    rig.step(submit(2, REPEATING, max_tokens=40))
    rig.drain()

    assert rig.text[2] == said(REPEATING, 40)
    assert rig.scheduler.cache.match("org", np.arange(20, dtype=np.int32)).resident == 20


def test_a_step_that_only_drafts_made_too_large_costs_no_request_anything(monkeypatch) -> None:
    rig = Rig(price=0.0, parallel=1, slots=2)
    refused: list[Plan] = []
    start = rig.backend.start

    def full_once(plan):
        if plan.drafted and not refused:
            refused.append(plan)
            raise CellsFullError
        start(plan)

    monkeypatch.setattr(rig.backend, "start", full_once)
    rig.step(submit(1, REPEATING, max_tokens=40))
    rig.drain()

    assert refused
    assert rig.text[1] == said(REPEATING, 40)


@pytest.mark.parametrize("place", range(0, 45, 3))
def test_an_overflow_after_a_draft_loses_no_token(monkeypatch, place) -> None:
    """A row that is not a distribution, wherever in a draft, is computed again; what came before it stays."""
    rig = Rig(price=0.0)
    rig.step(submit(1, REPEATING, max_tokens=40), submit(2, REPEATING[::-1], max_tokens=1000))
    honest, left = rig.backend._row, [place]

    def row(tokens):
        left[0] -= 1
        return np.full_like(honest(tokens), np.nan) if left[0] == 0 else honest(tokens)

    monkeypatch.setattr(rig.backend, "_row", row)
    rig.drain()

    assert rig.text[1] == said(REPEATING, 40)


def test_a_sequence_that_breaks_alone_fails() -> None:
    """A sequence that breaks a step alone ends as `failed`; those that wait are served."""
    rig = Rig(parallel=1, slots=2)
    rig.step(submit(1, [1, 2, 3], max_tokens=50), submit(2, [4, 5, 6], max_tokens=5))
    rig.faults = ["broken"]

    rig.step()
    rig.drain()

    assert rig.finished[1].reason == "failed"
    assert rig.text[2] == said([4, 5, 6], 5)


def test_an_overflow_costs_the_sequence_that_caused_it(monkeypatch) -> None:
    """NaN spreads to every sequence of the step; the culprit is found, other texts are unchanged."""
    rig = Rig()
    prompts = [p for p in ([i, i + 1] for i in range(80)) if not {EOG, 94} & set(continuation(p, 12))][:3]
    rig.step(*(submit(i, prompt, max_tokens=12) for i, prompt in enumerate(prompts)))
    poisonous(rig, monkeypatch, poison=94)

    rig.step(submit(9, [1, 94, 2], max_tokens=5))
    rig.drain()

    assert rig.finished[9].reason == "failed"
    assert 9 not in rig.text
    assert [rig.text[i] for i in range(3)] == [said(prompt, 12) for prompt in prompts]


def test_an_overflow_next_to_a_sequence_that_ends_costs_no_request_anything(monkeypatch) -> None:
    """A sequence has not broken a step alone if another one ended with that step."""
    rig = Rig(price=1.0)
    ending, broken = [p for p in ([i, i + 1] for i in range(80)) if EOG not in continuation(p, 12)][:2]
    rig.step(submit(1, ending, max_tokens=2), submit(2, broken, max_tokens=12))
    read = rig.backend.rows

    def rows():
        read_rows = read()
        read_rows[1:] = np.nan
        return read_rows

    with monkeypatch.context() as patch:
        patch.setattr(rig.backend, "rows", rows)
        rig.step()
    assert rig.finished[1].reason == "length"
    rig.drain()

    assert rig.text[2] == said(broken, 12)


def test_cells_that_do_not_exist_end_no_request() -> None:
    """When the cache has fewer cells than counted, requests take turns instead of planning for ever."""
    rig = Rig(cells=100, n_ctx=60, parallel=4)
    rig.backend.cells = 50
    prompts = [[i, *range(20)] for i in range(30, 34)]

    rig.step(*(submit(i, prompt, max_tokens=10) for i, prompt in enumerate(prompts)))
    rig.drain(bound=500)

    assert [rig.text.get(i, b"") for i in range(4)] == [said(prompt, 10) for prompt in prompts]


CAT, DOG = ImageSpan(b"cat", 4, 12), ImageSpan(b"dog", 4, 12)
PREFIXES = [
    [],
    list(range(20)),
    [*range(20), *range(40, 60)],
    [9] * 17,
    [*range(20), CAT],
    [*range(20), DOG, 7, CAT, CAT],
]
orders = st.one_of(
    st.tuples(
        st.just("submit"),
        st.sampled_from(PREFIXES),
        st.lists(st.integers(0, 90), min_size=1, max_size=30),
        st.integers(1, 40),
        st.integers(0, 40),
        st.sampled_from("abc"),
        st.sampled_from([None, "1 4", "2 11 20", "0 7", "1 0 6", "0 5 17"]),
    ),
    st.tuples(st.just("cancel"), st.integers(0, 40)),
    st.tuples(st.just("steps"), st.integers(1, 5)),
    st.tuples(st.just("fault"), st.sampled_from(["full", "broken"])),
    st.tuples(st.just("wait"), st.floats(0.1, 20.0)),
)


def played(rig: Rig, workload) -> dict[int, tuple[list[int | ImageSpan], int, str | None]]:
    """Carries out a workload to its end; the prompt, `max_tokens` and grammar of each request."""
    sent: dict[int, tuple[list[int | ImageSpan], int, str | None]] = {}
    for order in workload:
        match order:
            case ("submit", prefix, own, max_tokens, reserve, namespace, grammar):
                request = len(sent)
                sent[request] = ([*prefix, *own], max_tokens, grammar)
                cells = len(seen(prefix))
                cache_boundaries = tuple(sorted({cells, cells + len(own) // 2}))
                rig.step(
                    submit(
                        request,
                        sent[request][0],
                        max_tokens=max_tokens,
                        reserve=min(reserve, max_tokens),
                        namespace=namespace,
                        queue_timeout=10.0,
                        cache_boundaries=cache_boundaries,
                        grammar=grammar,
                    )
                )
            case ("cancel", request):
                rig.step(Cancel(request))
            case ("steps", count):
                for _ in range(count):
                    rig.step()
            case ("fault", kind):
                rig.faults.append(kind)
                rig.step()
            case ("wait", seconds):
                rig.now += seconds
                rig.step()
    rig.faults = []
    rig.drain()
    return sent


def test_an_image_is_one_chunk_and_part_of_the_prefix() -> None:
    """The same image is read from the cache with the text around it, and is computed whole."""
    rig = Rig(image_cells=12)
    prompt = [*range(20), CAT, *range(40, 60)]
    rig.step(submit(1, [*prompt, 1], max_tokens=4), submit(2, [*range(30), DOG, 5], max_tokens=4))
    rig.drain()
    rig.step(submit(3, [*prompt, 2], max_tokens=4))
    rig.drain()

    images = [chunk for plan in rig.backend.plans for chunk in plan.chunks if chunk.image is not None]
    assert [(chunk.image, chunk.start, len(chunk.tokens)) for chunk in images] == [
        (CAT, 20, 12),
        (DOG, 30, 12),
    ]
    assert rig.started[3].cached_tokens == 52
    assert [rig.text[1], rig.text[3]] == [said([*prompt, end], 4) for end in (1, 2)]
    assert rig.text[2] == said([*range(30), DOG, 5], 4)


def test_the_largest_image_is_computed_next_to_streams_with_forced_text() -> None:
    """Streams that have forced tokens in every step leave room for the image of the first prompt."""
    image = ImageSpan(b"cat", 4, 20)
    rig = Rig(batch=24, parallel=4, cells=1024, n_ctx=256, image_cells=20, dictating=True, price=1.0)
    streams = range(3)
    rig.step(*(submit(n, [n, n + 1, 5], max_tokens=200, grammar="1 4") for n in streams))
    rig.step(submit(9, [1, 2, image, 3], max_tokens=3))

    for _ in range(3):
        rig.step()

    assert rig.text[9]
    assert not rig.finished.keys() & set(streams)
    rig.drain()
    assert rig.text[9] == said([1, 2, image, 3], 3)


def test_another_image_is_another_prefix() -> None:
    """Prompts part where their images differ, also if these are of one size."""
    rig = Rig(image_cells=12)
    for number, image in enumerate((CAT, DOG)):
        rig.step(submit(number, [*range(20), image, 5, 6], max_tokens=4))
        rig.drain()

    assert rig.started[1].cached_tokens == 20
    assert rig.text == {n: said([*range(20), image, 5, 6], 4) for n, image in enumerate((CAT, DOG))}


@pytest.mark.parametrize("image_cells", [0, 11])
def test_an_image_that_cannot_be_computed_costs_its_request(image_cells) -> None:
    rig = Rig(image_cells=image_cells)

    rig.step(submit(1, [1, CAT, 2]), submit(2, [1, 2, 3], max_tokens=5))
    rig.drain()

    assert rig.finished[1].reason == "failed"
    assert rig.text[2] == said([1, 2, 3], 5)


def test_a_prompt_must_end_with_text() -> None:
    rig = Rig(image_cells=12)

    rig.step(submit(1, [1, CAT]))
    rig.drain()

    assert rig.finished[1].reason == "failed"


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(orders, max_size=40),
    st.sampled_from([(100, 4, 8), (100, 1, 2), (160, 8, 9), (400, 3, 12)]),
    st.booleans(),
    st.sampled_from([0, 60, 500, 10_000]),
    st.sampled_from([0, 30, 10_000]),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_no_workload_loses_a_request_a_cell_or_a_token(
    workload, size, stateful, host_cache, kept_cells, overlaps, price
) -> None:
    """Under any arrivals, cancels, waits and failures: invariants hold, each request ends once, text is
    exact.
    """
    cells, parallel, slots = size
    rig = Rig(
        cells=cells,
        parallel=parallel,
        slots=slots,
        n_ctx=96,
        waiting=12,
        batch=24,
        image_cells=CAT.cells,
        stateful=stateful,
        host_cache=host_cache,
        kept_cells=kept_cells,
        overlaps=overlaps,
        dictating=True,
        price=price,
    )
    with mock.patch.object(chunking, "CHECKPOINT_TOKENS", 8):
        sent = played(rig, workload)

    assert set(rig.finished) == set(sent)
    for request, (prompt, max_tokens, grammar) in sent.items():
        text, end = rig.text.get(request, b""), rig.finished[request]
        most = min(max_tokens, 96 - len(seen(prompt)))
        whole = said(prompt, most, grammar)
        assert whole.startswith(text)
        if end.reason in {"stop", "length"}:
            assert text == whole
            assert end.output_tokens == len(continuation(prompt, most, grammar))


def test_check_notices_a_lost_slot() -> None:
    """The integrity check is able to fail: a slot without an owner is an error."""
    rig = Rig()
    rig.scheduler._slots._free.pop()

    with pytest.raises(ValueError, match="slot"):
        rig.scheduler.check()
