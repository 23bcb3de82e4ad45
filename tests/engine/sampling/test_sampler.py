from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.messages import Sampling
from b3node.engine.sampling import sampler
from b3node.engine.sampling.sampler import NoToken, Weights, greedy, sample


def nucleus(row, temperature, top_p):
    """The exact distribution, in float64, by sorting everything: the independent reference."""
    scaled = row.astype(np.float64) / temperature
    p = np.exp(scaled - scaled.max())
    p /= p.sum()
    order = np.argsort(-p, kind="stable")
    size = int(np.searchsorted(np.cumsum(p[order]), top_p - 1e-12)) + 1
    kept = np.zeros_like(p)
    kept[order[:size]] = p[order[:size]]
    return kept / kept.sum()


def draws(row, temperature, top_p, count, seed=0):
    """Many draws at evenly spread uniform numbers (with a shift), so that a small sample is enough."""
    shift = np.random.default_rng(seed).random()
    uniforms = (np.arange(count) + shift) / count
    return np.array([sample(row, Sampling(temperature, top_p, seed=0), u) for u in uniforms])


SHAPES = [
    pytest.param(lambda rng, n: rng.standard_normal(n) * 4, id="peaked"),
    pytest.param(lambda rng, n: rng.standard_normal(n) * 0.3, id="flat"),
    pytest.param(lambda rng, n: np.zeros(n), id="all equal"),
    pytest.param(lambda rng, n: np.where(np.arange(n) == 7, 50.0, 0.0), id="one certain"),
    pytest.param(
        lambda rng, n: np.where(np.arange(n) % 400 == 7, 0.0, np.log(5e-4)), id="light ones together"
    ),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("temperature", "top_p"), [(1.0, 1.0), (0.8, 0.95), (1.5, 0.5), (0.2, 0.9), (2.0, 0.999)]
)
@pytest.mark.parametrize("n_vocab", [281, 5000])
def test_draws_follow_the_exact_distribution(shape, temperature, top_p, n_vocab) -> None:
    """Frequencies agree with a float64 reference by chi-square, whatever path the size of the row takes."""
    row = shape(np.random.default_rng(3), n_vocab).astype(np.float32)
    expected = nucleus(row, temperature, top_p)
    count = 4000

    drawn = np.bincount(draws(row, temperature, top_p, count), minlength=n_vocab)

    bins = np.minimum((np.cumsum(expected) * 20).astype(int), 19)
    e = np.bincount(bins, weights=expected * count, minlength=20)
    o = np.bincount(bins, weights=drawn, minlength=20)
    chi_square = float(((o - e)[e > 0] ** 2 / e[e > 0]).sum())
    assert chi_square < 43.8  # 19 degrees of freedom, p = 0.001
    assert drawn[expected < 1e-9 / n_vocab].sum() <= count * 1e-3


@pytest.mark.parametrize("n_vocab", [281, 5000])
def test_nothing_outside_the_nucleus_is_ever_drawn(n_vocab) -> None:
    """A token that the nucleus leaves out has probability zero, on the sorted and on the histogram path."""
    row = (np.random.default_rng(5).standard_normal(n_vocab) * 0.3).astype(np.float32)
    expected = nucleus(row, 1.0, 0.6)
    edge = np.sort(expected[expected > 0])[:3].max()

    outside = [t for t in draws(row, 1.0, 0.6, 3000) if expected[t] == 0]

    p = np.exp(row.astype(np.float64) - row.max())
    assert all(p[t] / p.sum() >= edge * 0.6 * 0.999 for t in outside)


@given(
    st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=50),
    st.floats(0.05, 2),
    st.floats(0.01, 1),
    st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=300, deadline=None)
def test_every_draw_is_a_token_of_the_row(logits, temperature, top_p, uniform) -> None:
    """Whatever the row, a draw is an id inside it whose probability is not zero."""
    row = np.array(logits, np.float32)

    token = sample(row, Sampling(temperature, top_p, seed=0), uniform)

    assert 0 <= token < row.size
    assert np.exp((row[token] - row.max()) / temperature) > 0


def test_a_tiny_top_p_is_greedy() -> None:
    """The nucleus always holds the most probable token, however small it is asked to be."""
    row = np.random.default_rng(1).standard_normal(3000).astype(np.float32)

    assert set(draws(row, 1.0, 1e-9, 50)) == {greedy(row)}


def test_sampling_leaves_the_row_alone() -> None:
    """The row is a view of the backend's buffer: it is read, never written."""
    row = np.random.default_rng(1).standard_normal(300).astype(np.float32)
    before = row.copy()

    sample(row, Sampling(0.7, 0.9, seed=0), 0.4)

    assert np.array_equal(before, row)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_row_that_is_no_distribution_is_broken(bad) -> None:
    """NaN or infinite logits are reported, not drawn from."""
    row = np.zeros(300, np.float32)
    row[5] = bad

    assert greedy(row) == NoToken.BROKEN
    assert sample(row, Sampling(1.0, 0.9, seed=0), 0.1) == NoToken.BROKEN


def test_a_row_without_any_chance_is_broken() -> None:
    """All logits at minus infinity leave nothing to draw."""
    row = np.full(300, -np.inf, np.float32)

    assert greedy(row) == NoToken.BROKEN
    assert sample(row, Sampling(1.0, 1.0, seed=0), 0.1) == NoToken.BROKEN


@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("temperature", [1e-9, 1e-38, 1e-40, 5e-324])
def test_temperatures_next_to_zero_are_greedy(temperature, top_p) -> None:
    """No temperature is so small that numbers overflow; the limit is the most probable token."""
    row = np.array([1, 3, 5, 2], np.float32)

    assert {sample(row, Sampling(temperature, top_p, seed=0), u) for u in (0.0, 0.5, 0.999)} == {2}


ROWS = st.builds(
    lambda seed, n, spread: (np.random.default_rng(seed).standard_normal(n) * spread).astype(np.float32),
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 60, 1500, 9000]),
    st.sampled_from([0.0, 0.3, 2.0, 8.0]),
)


@given(ROWS, st.sampled_from([1e-9, 0.3, 1.0, 2.0]))
@settings(max_examples=60, deadline=None)
def test_what_is_not_weighed_weighs_no_more_than_is_said(row, temperature) -> None:
    """The heavy tokens weigh what they weigh, few of many are heavy, and all others together are within the
    bound.
    """
    weights = Weights(row, row.max(), temperature)
    exact = np.exp((row.astype(np.float64) - row.max()) / temperature)

    assert np.allclose(weights.each, exact[weights.places], rtol=1e-4)
    assert weights.heavy == pytest.approx(exact[weights.places].sum(), rel=1e-4)
    assert exact.sum() - exact[weights.places].sum() <= weights.light * (1 + 1e-4) + 1e-6
    assert np.allclose(weights.all_weights(), exact, rtol=1e-3, atol=1e-30)
    assert row.size < 9000 or len(set(row.tolist())) == 1 or weights.places.size <= row.size / 3


@given(ROWS, st.integers(0, 2**32), st.sampled_from([0.05, 0.5, 0.95]))
@settings(max_examples=60, deadline=None)
def test_a_token_that_leads_is_in_the_nucleus_whatever_is_refused(row, seed, top_p) -> None:
    """Nobody needs to be asked about the others."""
    numbers = np.random.default_rng(seed)
    weights = Weights(row, row.max(), 1.0)
    exact = np.exp(row.astype(np.float64) - row.max())
    for token in weights.places[np.argsort(-weights.each)][:5].tolist():
        allowed = numbers.random(row.size) < numbers.random()
        allowed[token] = True
        weight_above = exact[allowed & (row > row[token])].sum()

        assert not weights.surely_in_nucleus(token, top_p) or weight_above < top_p * exact[allowed].sum() * (
            1 + 1e-5
        )


@given(ROWS, st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_is_left_out_is_not_drawn(row, seed) -> None:
    """Neither heavy tokens that were left out, nor, if so wished, those that are no heavier than some
    token.
    """
    source = random.Random(seed)
    weights = Weights(row, row.max(), 1.0)
    out = weights.places[np.random.default_rng(seed).random(weights.places.size) < 0.5]
    weights.exclude(out)
    if not weights.heavy:
        return
    assert not set(out.tolist()) & {weights.draw(source.random) for _ in range(20)}
    assert not weights.all_weights()[out].any()

    token = int(weights.places[np.where(weights.each > 0, weights.each, 2).argmin()])
    weights.keep_heavier(token)

    drawn = {weights.draw(source.random) for _ in range(20 if weights.heavy else 0)}
    assert all(row[place] > row[token] for place in drawn)


def test_a_number_gives_others_that_are_spread_evenly() -> None:
    """What follows from neighbouring numbers has nothing to do with them, nor with each other."""
    numbers = np.array(
        [list(itertools.islice(sampler._further_numbers(0.3 + i * 1e-9), 2)) for i in range(4000)]
    )

    assert ((numbers >= 0) & (numbers < 1)).all()
    for column in (numbers[:, 0], numbers[:, 1], (numbers[:, 0] + numbers[:, 1]) % 1):
        counts = np.histogram(column, 20, (0, 1))[0]
        assert ((counts - 200) ** 2 / 200).sum() < 43.8  # 19 degrees of freedom, p = 0.001
