from __future__ import annotations

from b3node.engine.schedule.token_budget import (
    MAX_PROMPT_STEP_SECONDS,
    MIN_PROMPT_TOKENS,
    MeasuredStep,
    TokenBudget,
)


def taught(*, base, per_token, gap=0.15, largest=512):
    """A token budget that has seen steps of a machine with these costs."""
    token_budget = TokenBudget(gap=gap, largest=largest)
    for _ in range(20):
        token_budget.observe(MeasuredStep(0, 1, base))
        token_budget.observe(MeasuredStep(64, 1, base + 64 * per_token))
    return token_budget


def test_prompt_tokens_fill_the_gap_that_streams_allow() -> None:
    """While streams run a step takes as much prompt as keeps their gap."""
    token_budget = taught(base=0.03, per_token=0.002)

    assert 55 <= token_budget.allowance(streams=4) <= 60


def test_a_prompt_alone_is_bounded_by_its_own_time() -> None:
    """Without streams a step still ends in time to notice a client that left."""
    token_budget = taught(base=0.03, per_token=0.01)

    assert abs(token_budget.allowance(streams=0) - MAX_PROMPT_STEP_SECONDS / 0.01) <= 2


def test_prompts_always_make_progress() -> None:
    """However slow the machine, a step takes some prompt tokens."""
    token_budget = taught(base=1.0, per_token=0.5)

    assert token_budget.allowance(streams=4) == MIN_PROMPT_TOKENS


def test_nothing_exceeds_the_batch() -> None:
    """A fast machine is bounded by the batch."""
    token_budget = taught(base=0.0001, per_token=0.000001)

    assert token_budget.allowance(streams=4) == 512
    assert token_budget.allowance(streams=0) == 512


def test_an_unknown_machine_is_tried_gently() -> None:
    """Before anything is measured a first step is small, alone or not: it cannot be cut short on a GPU."""
    token_budget = TokenBudget(gap=0.15, largest=512)

    assert token_budget.allowance(streams=0) <= 64
    assert token_budget.allowance(streams=3) <= 64


def test_a_crowd_leaves_a_prompt_as_much_as_a_single_stream() -> None:
    """The cost of streams to each other is not taken from prompts, during a crowd and after it."""
    token_budget = taught(base=0.01, per_token=0.002)
    before = token_budget.allowance(streams=1)
    for _ in range(50):
        token_budget.observe(MeasuredStep(0, 16, 0.08))

    assert abs(token_budget.allowance(streams=1) - before) <= 3
    assert token_budget.allowance(streams=16) == token_budget.allowance(streams=1)
