from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.sampling import BROKEN, greedy, sample


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
    return np.array([sample(row, temperature=temperature, top_p=top_p, uniform=u) for u in uniforms])


SHAPES = [
    pytest.param(lambda rng, n: rng.standard_normal(n) * 4, id="peaked"),
    pytest.param(lambda rng, n: rng.standard_normal(n) * 0.3, id="flat"),
    pytest.param(lambda rng, n: np.zeros(n), id="all equal"),
    pytest.param(lambda rng, n: np.where(np.arange(n) == 7, 50.0, 0.0), id="one certain"),
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

    token = sample(row, temperature=temperature, top_p=top_p, uniform=uniform)

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

    sample(row, temperature=0.7, top_p=0.9, uniform=0.4)

    assert np.array_equal(before, row)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_row_that_is_no_distribution_is_broken(bad) -> None:
    """NaN or infinite logits are reported, not drawn from."""
    row = np.zeros(300, np.float32)
    row[5] = bad

    assert greedy(row) == BROKEN
    assert sample(row, temperature=1.0, top_p=0.9, uniform=0.1) == BROKEN


def test_a_row_without_any_chance_is_broken() -> None:
    """All logits at minus infinity leave nothing to draw."""
    row = np.full(300, -np.inf, np.float32)

    assert greedy(row) == BROKEN
    assert sample(row, temperature=1.0, top_p=1.0, uniform=0.1) == BROKEN


@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("temperature", [1e-9, 1e-38, 1e-40, 5e-324])
def test_temperatures_next_to_zero_are_greedy(temperature, top_p) -> None:
    """No temperature is so small that numbers overflow; the limit is the most probable token."""
    row = np.array([1, 3, 5, 2], np.float32)

    assert {sample(row, temperature=temperature, top_p=top_p, uniform=u) for u in (0.0, 0.5, 0.999)} == {2}
