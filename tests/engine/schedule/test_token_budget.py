from __future__ import annotations

from b3node.engine.schedule.token_budget import ALONE, SMALLEST, Governor, Measured


def taught(*, base, per_token, gap=0.15, largest=512):
    """A governor that has seen steps of a machine with these costs."""
    governor = Governor(gap=gap, largest=largest)
    for _ in range(20):
        governor.observe(Measured(0, 1, base))
        governor.observe(Measured(64, 1, base + 64 * per_token))
    return governor


def test_prompt_tokens_fill_the_gap_that_streams_allow() -> None:
    """Beside running streams a step takes as much prompt as keeps their gap."""
    governor = taught(base=0.03, per_token=0.002)

    assert 55 <= governor.allowance(streams=4) <= 60


def test_a_prompt_alone_is_bounded_by_its_own_time() -> None:
    """Without streams a step still ends in time to notice a client that left."""
    governor = taught(base=0.03, per_token=0.01)

    assert abs(governor.allowance(streams=0) - ALONE / 0.01) <= 2


def test_prompts_always_make_progress() -> None:
    """However slow the machine, a step takes some prompt tokens."""
    governor = taught(base=1.0, per_token=0.5)

    assert governor.allowance(streams=4) == SMALLEST


def test_nothing_exceeds_the_batch() -> None:
    """A fast machine is bounded by the batch."""
    governor = taught(base=0.0001, per_token=0.000001)

    assert governor.allowance(streams=4) == 512
    assert governor.allowance(streams=0) == 512


def test_an_unknown_machine_is_tried_gently() -> None:
    """Before anything is measured a first step is small, alone or not: it cannot be cut short on a GPU."""
    governor = Governor(gap=0.15, largest=512)

    assert governor.allowance(streams=0) <= 64
    assert governor.allowance(streams=3) <= 64


def test_a_crowd_leaves_a_prompt_as_much_as_a_single_stream() -> None:
    """What streams cost each other is not taken from prompts, whether a crowd has been there or is."""
    governor = taught(base=0.01, per_token=0.002)
    before = governor.allowance(streams=1)
    for _ in range(50):
        governor.observe(Measured(0, 16, 0.08))

    assert abs(governor.allowance(streams=1) - before) <= 3
    assert governor.allowance(streams=16) == governor.allowance(streams=1)
