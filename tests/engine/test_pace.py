from __future__ import annotations

import random

import pytest

from b3node.engine.pace import Pace


def seen(one: float, second: float, further: float, *, sizes: tuple[int, ...], noise: float = 0.0) -> Pace:
    """A pace that has seen three hundred steps of a machine where further tokens cost such shares of a step."""
    pace, rng = Pace(), random.Random(1)
    for number in range(300):
        tokens = sizes[number % len(sizes)]
        share = 1.0 if tokens == 1 else 1.0 + second + further * (tokens - 2)
        pace.observe(tokens, one * share * (1 + noise * rng.random()))
    return pace


@pytest.mark.parametrize(("second", "further"), [(0.6, 0.4), (0.05, 0.02), (1.0, 0.9), (0.2, 0.2)])
def test_what_tokens_cost_is_learnt(second: float, further: float) -> None:
    """On any machine, from whatever steps there are, and through noise."""
    learnt = seen(0.01, second, further, sizes=(1, 2, 1, 3, 1, 6), noise=0.2).prices(1)
    assert abs(learnt[0] - second) < 0.15
    assert abs(learnt[1] - further) < 0.1


def test_a_crowd_pays_more_for_a_token() -> None:
    """Where a step has sixteen tokens, one more for each doubles it but for what a step costs anyway."""
    pace = seen(0.01, 0.5, 0.4, sizes=(1, 2, 3, 16, 17))
    prices = [pace.prices(streams)[0] for streams in (1, 4, 16)]
    assert prices == sorted(prices)
    assert 0.8 < prices[-1] < 1.0


def test_a_moment_of_trouble_is_not_believed() -> None:
    pace = seen(0.01, 0.5, 0.4, sizes=(1, 2, 3))
    before = pace.prices(1)
    pace.observe(2, 5.0)
    assert pace.prices(1)[0] < before[0] + 0.2


def test_who_took_drafts_for_too_dear_tries_them_again() -> None:
    pace = seen(0.01, 1.5, 1.5, sizes=(1, 2, 3))
    assert min(pace.prices(1)) > 1.0
    for _ in range(3000):
        pace.observe(1, 0.01)
    assert max(pace.prices(1)) < 0.6


def test_a_step_is_as_long_as_such_steps_were() -> None:
    pace = seen(0.02, 0.5, 0.4, sizes=(1, 4, 8))
    assert pace.seconds(0) == 0.0
    assert pace.seconds(1) == pytest.approx(0.02)
    assert pace.seconds(4) == pytest.approx(0.02 * 2.3, rel=0.05)
    assert Pace().seconds(3) == 0.0
