from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from b3node.engine.schedule.step_time import StepTimes

CURVES: dict[str, Callable[[int], float]] = {
    "a slow core": lambda n: 1.0 if n == 1 else 1.2 + 0.4 * (n - 1),
    "a fast core": lambda n: 0.9 + 0.1 * n,
    "a gpu": lambda n: 1.0 + 0.01 * n,
    "many experts": float,
}


def seen(
    curve: Callable[[int], float], sizes: tuple[int, ...], *, one: float = 0.01, count: int = 900
) -> StepTimes:
    """Step times learnt from noisy steps of a machine that drifts by a half."""
    times, rng = StepTimes(), random.Random(1)
    for number in range(count):
        tokens = rng.choice(sizes)
        drift = 1.0 + 0.5 * number / count
        times.observe(tokens, one * drift * curve(tokens) * (0.95 + 0.1 * rng.random()))
    return times


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("streams", [1, 4])
def test_the_cost_of_further_tokens_is_learnt(curve: Callable[[int], float], streams: int) -> None:
    """On a machine of any curve, through noise and drift, also between the sizes that were seen."""
    times = seen(curve, (streams, streams, streams + 1, streams + 2, streams + 6))
    for more in (1, 2, 4):
        cost = streams * (curve(streams + more) / curve(streams) - 1.0)
        assert abs(times.cost(streams, more) - cost) < 0.2 + 0.2 * cost


def test_one_outlier_changes_little() -> None:
    times = seen(CURVES["a slow core"], (1, 2, 3))
    before = times.cost(1, 1)
    times.observe(2, 5.0)
    assert times.cost(1, 1) < before + 0.1


def test_longer_steps_of_a_longer_text_make_no_token_cheaper() -> None:
    """While only single tokens are seen, the cost of others keeps its share of them."""
    times = seen(CURVES["a slow core"], (1, 2, 3))
    before = times.cost(1, 1)
    for _ in range(50):
        times.observe(1, 0.04)
    assert abs(times.cost(1, 1) - before) < 0.1


def test_drafts_that_seemed_too_expensive_are_tried_again() -> None:
    times = seen(CURVES["many experts"], (1, 2, 3))
    assert times.cost(1, 1) > 0.8
    for _ in range(3000):
        times.observe(1, 0.01)
    assert times.cost(1, 1) < 0.65


def test_a_step_is_as_long_as_such_steps_were() -> None:
    times = seen(CURVES["a slow core"], (1, 4, 8), one=0.02)
    assert times.seconds(0) == 0.0
    assert times.seconds(1) == pytest.approx(0.03, rel=0.1)
    assert times.seconds(4) == pytest.approx(0.03 * 2.4, rel=0.1)
    assert StepTimes().seconds(3) == 0.0


def test_steps_larger_than_any_draft_are_not_learnt_from() -> None:
    times = seen(CURVES["a slow core"], (1, 2))
    before = times.seconds(1)
    times.observe(500, 10.0)
    assert times.seconds(1) == before
