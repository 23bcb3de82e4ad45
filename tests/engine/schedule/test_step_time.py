from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from b3node.engine.schedule.step_time import REBUILD_STEPS, StepTimes

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


MEASURED = (1.0, 2.52, 3.2, 3.95, 5.38, 6.1, 6.5, 6.0, 7.8, 9.1, 9.3, 8.6, 10.3, 11.0, 11.3, 9.64, 10.9)
"""Steps of 1 to 17 tokens in steps of one: SmolLM2-135M in Q4_0 on one core that other processes used as
well.
"""
CHANCES: Sequence[tuple[float, Sequence[float]]] = (
    (0.05, (0.97,) * 16),
    (0.1, (0.85,) * 6),
    (0.15, (0.7,) * 3),
)
"""How often a draft is offered, and the chances of its tokens."""


def speed(curve: Callable[[int], float], *, learns: bool, drafts: bool = True) -> float:
    """Tokens for the time of a step of one, drafting by learnt costs or by the true ones."""
    times, rng, seconds, tokens = StepTimes(), random.Random(1), 0.0, 0
    for number in range(20_000):
        offered = next((one for often, one in CHANCES if rng.random() < often), ()) if drafts else ()
        costs = [
            times.cost(1, more) if learns else curve(1 + more) + REBUILD_STEPS - 1.0
            for more in range(1, len(offered) + 1)
        ]
        size = 1 + chosen(offered, costs)
        right = next((at for at, odds in enumerate(offered[: size - 1]) if rng.random() > odds), size - 1)
        noise = (
            (0.9 + 0.2 * rng.random()) * (1.5 if rng.random() < 0.03 else 1.0) * (1.0 + 0.3 * number / 20_000)
        )
        times.observe(size, 0.01 * curve(size) * noise)
        seconds, tokens = seconds + curve(size), tokens + 1 + right
    return tokens / seconds


def chosen(chances: Sequence[float], costs: Sequence[float]) -> int:
    """The length of a draft that brings most tokens for a step's time, as `drafter` chooses it."""
    best, rate, chance, gain = 0, 1.1, 1.0, 1.0
    for size, (odds, cost) in enumerate(zip(chances, costs, strict=True), start=1):
        chance *= odds
        gain += chance
        if gain > rate * (1.0 + cost):
            best, rate = size, gain / (1.0 + cost)
    return best


@pytest.mark.parametrize(
    "curve", [*CURVES.values(), lambda n: MEASURED[n - 1]], ids=[*CURVES, "a core that others use"]
)
def test_rare_drafts_teach_their_cost(curve: Callable[[int], float]) -> None:
    """Learning costs little against knowing: where drafts do not pay they cost nothing, elsewhere they are
    found.
    """
    learnt = speed(curve, learns=True)

    assert learnt > 0.99 * speed(curve, learns=True, drafts=False)
    assert learnt > 0.94 * speed(curve, learns=False)


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
