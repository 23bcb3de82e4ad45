"""Eviction of finished sequences on a machine where every kept cell makes steps longer."""

from __future__ import annotations

from b3node.engine.cache.eviction import STAY_STEPS
from b3node.engine.plan import Drop, Load, Save
from tests.engine.fake_backend import EOG, continuation
from tests.engine.rig import Rig, said, submit

TALKING = [p for p in ([i, i + 1] for i in range(90)) if EOG not in continuation(p, 60)]
"""Prompts after which the model does not end by itself for a while."""


def cold(**options) -> Rig:
    return Rig(kept_cells=0, host_cache=10_000, cells=1000, price=1.0, **options)


def moved(rig: Rig, kind: type) -> int:
    return sum(isinstance(move, kind) for plan in rig.backend.plans for move in plan.moves)


def test_a_finished_sequence_is_copied_while_nothing_runs_and_stays_readable() -> None:
    rig = cold()
    rig.step(submit(1, TALKING[0], max_tokens=30))
    rig.drain()
    assert (moved(rig, Save), moved(rig, Drop)) == (1, 0)

    conversation = [*TALKING[0], *continuation(TALKING[0], 30), 5]
    rig.step(submit(2, conversation, max_tokens=4))
    rig.drain()

    assert rig.started[2].cached_tokens == len(TALKING[0]) + 29
    assert moved(rig, Load) == 0
    assert rig.text[2] == said(conversation, 4)


def test_the_next_sequence_waits_for_no_copy() -> None:
    rig = cold()
    for number in range(3):
        rig.step(submit(number, TALKING[number], max_tokens=30))
        rig.drain()
    copied = moved(rig, Save)
    assert copied == 3

    rig.step(submit(9, TALKING[9], max_tokens=30))
    assert moved(rig, Save) == copied
    assert not rig.scheduler.cache.kept


def test_a_sequence_that_ends_while_others_run_is_not_copied_before_one_enters() -> None:
    rig = cold(parallel=8, slots=20)
    rig.step(*(submit(number, TALKING[number], max_tokens=60 - 40 * (number < 3)) for number in range(8)))
    while len(rig.scheduler.running) != 5:
        rig.step()
    assert len(rig.scheduler.cache.kept) == 3
    assert moved(rig, Save) == 0

    rig.step(submit(9, TALKING[9], max_tokens=2))
    for _ in range(4):
        rig.step()

    assert not rig.scheduler.cache.kept
    assert moved(rig, Save) == 3
    assert max(sum(isinstance(move, Save) for move in plan.moves) for plan in rig.backend.plans) == 1


def test_a_finished_sequence_does_not_stay_long_while_others_run() -> None:
    rig = cold(parallel=8, slots=20)
    rig.step(*(submit(number, TALKING[number], max_tokens=18 + 40 * (number < 1)) for number in range(4)))
    while len(rig.scheduler.running) > 1:
        rig.step()
    for _ in range(STAY_STEPS - 2):
        rig.step()
    assert len(rig.scheduler.cache.kept) == 3
    for _ in range(6):
        rig.step()

    assert rig.scheduler.running
    assert not rig.scheduler.cache.kept


def test_full_host_memory_goes_to_the_sequences_that_ended_last() -> None:
    """While nothing runs, copies of prefixes without cells make room for others; then it is idle."""
    rig = Rig(kept_cells=0, host_cache=70, cells=1000, price=1.0)
    for number in range(6):
        rig.step(submit(number, TALKING[number], max_tokens=30))
        rig.drain()
        saved = moved(rig, Save)
        assert saved == number + 1
        assert rig.scheduler.idle

    rig.step(submit(9, TALKING[9], max_tokens=2))
    assert moved(rig, Save) == saved


def test_host_memory_that_holds_too_little_is_left_alone() -> None:
    """Several sequences that ended last do not take turns in it for ever."""
    rig = Rig(kept_cells=0, host_cache=70, cells=1000, price=1.0, parallel=4)
    rig.step(*(submit(number, TALKING[number], max_tokens=30) for number in range(4)))
    rig.drain(bound=60)

    assert rig.scheduler.idle
    assert len(rig.scheduler.cache.kept) == 4


def test_after_a_crowd_a_prefix_comes_back_to_the_lowest_cells() -> None:
    """A prefix that each request shares with the one before does not stay where a crowd left room for it."""
    rig = cold(parallel=8, slots=20, n_ctx=300)
    prefix = [9, 8, 7, 6] * 8
    crowd = [submit(number, [*TALKING[number], *range(60)], max_tokens=5) for number in range(6)]
    rig.step(*crowd, submit(9, [*prefix, 1], max_tokens=5))
    rig.drain()
    assert len(rig.scheduler.cache.kept) == 7

    for number in (10, 11):
        rig.step(submit(number, [*prefix, number], max_tokens=5))
        rig.drain()
        assert rig.started[number].cached_tokens == len(prefix)
        assert rig.text[number] == said([*prefix, number], 5)
        # The first one has seen the crowd's cells; once it is gone, nothing is in the way of the second.
        assert bool(rig.scheduler.cache.kept) == (number == 11)


def test_states_of_resident_prefixes_are_not_evicted_for_a_copy() -> None:
    """A stateful model can be entered only where a state was copied: those stay as long
    as their cells.
    """
    rig = Rig(kept_cells=0, host_cache=45, cells=1000, stateful=True)
    conversation = TALKING[0]
    rig.step(submit(1, conversation, max_tokens=30))
    rig.drain()
    longer = [*conversation, *continuation(conversation, 30), 5]

    rig.step(submit(2, longer, max_tokens=4))
    rig.drain()

    assert rig.started[2].cached_tokens > 0
    assert rig.text[2] == said(longer, 4)
