"""A constrained draw against the plain definition: mask, temperature, nucleus, in float64."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.messages import Sampling
from b3node.engine.sampling import constrained
from b3node.engine.sampling.constrained import Nucleus, Search, draw
from b3node.engine.sampling.sampler import NoToken, Weights
from tests.engine.fake_constraint import FakeConstraint

N_VOCAB = 50


def masked(row, allowed, temperature, top_p):
    """The probabilities of masking first, in float64."""
    logits = np.full(row.size, -np.inf)
    ids = sorted(allowed)
    logits[ids] = row[ids]
    order = np.argsort(-logits, kind="stable")[: len(ids)]
    weights = np.exp((logits[order] - logits.max()) / temperature)
    cumulative = np.cumsum(weights)
    weights[int(np.searchsorted(cumulative, top_p * cumulative[-1])) + 1 :] = 0
    probabilities = np.zeros(row.size)
    probabilities[order] = weights / weights.sum()
    return probabilities


def chi_square(counts, expected) -> float:
    """Pearson's statistic in standard deviations from its mean, rare outcomes taken together."""
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], expected[~common].sum())
    kept = wanted > 1e-9
    assert observed[~kept].sum() == 0, "a token was drawn that cannot be"
    freedom = max(int(kept.sum()) - 1, 1)
    statistic = float((((observed - wanted) ** 2)[kept] / np.maximum(wanted[kept], 1)).sum())
    return (statistic - freedom) / float(np.sqrt(2 * freedom))


CASES = {
    "mostly allowed": range(1, 50),
    "mostly refused": range(40, 50),
    "every third": range(1, 50, 3),
    "two": (7, 31),
    "all": range(50),
}


@pytest.mark.parametrize(
    ("temperature", "top_p", "narrows"),
    [(0.7, 1.0, None), (1.7, 1.0, 10), (0.7, 0.6, None), (1.0, 0.95, 10), (1.7, 0.8, None), (1.0, 0.3, 10)],
)
@pytest.mark.parametrize("allowed", CASES.values(), ids=CASES)
def test_the_distribution_is_that_of_masking_first(allowed, temperature, top_p, narrows) -> None:
    """However many of the likely tokens are refused, the rest comes as if they had never been there."""
    row = -np.sort(-np.random.default_rng(3).normal(0, 2, N_VOCAB)).astype(np.float32)
    counts, draws, source = np.zeros(N_VOCAB), 1000, random.Random(11)
    for _ in range(draws):
        constraint = FakeConstraint(allowed, narrows=narrows)
        counts[draw(row, constraint, Sampling(temperature, top_p, seed=0), source)] += 1

    assert chi_square(counts, masked(row, allowed, temperature, top_p) * draws) < 5


@pytest.mark.parametrize("narrows", [None, 20])
@pytest.mark.parametrize(("blocks", "misses"), [((2,), 4), ((2, 4, 8), 4), ((2, 4, 8), 1)])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("top_p", [1.0, 0.9, 0.5])
def test_long_rows_come_out_alike(top_p, share, blocks, misses, narrows, monkeypatch) -> None:
    """Where the first blocks do not settle it, and where they do, the distribution is that of masking
    first.
    """
    monkeypatch.setattr(constrained, "_FIRST_BLOCKS", blocks)
    monkeypatch.setattr(constrained, "_MAX_MISSES", misses)
    row = np.random.default_rng(5).normal(0, 1.5, 300).astype(np.float32)
    allowed = frozenset(np.flatnonzero(np.random.default_rng(6).random(300) < share).tolist())
    draws, counts, source = 800, np.zeros(row.size), random.Random(9)
    for _ in range(draws):
        constraint = FakeConstraint(allowed, narrows=narrows)
        counts[draw(row, constraint, Sampling(1.0, top_p, seed=0), source)] += 1

    assert chi_square(counts, masked(row, allowed, 1.0, top_p) * draws) < 5


@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("allowed", ["all", "light", "few heavy"])
def test_tokens_that_weigh_next_to_nothing_come_as_often_as_they_should(top_p, allowed) -> None:
    """Thousands of tokens that are not weighed one by one share what they weigh together, allowed or not."""
    n_vocab = 6000
    row = np.log(3e-4) - np.linspace(0, 0.1, n_vocab, dtype=np.float32)
    row[:8] = np.log([1, 0.9, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
    may = {"all": range(n_vocab), "light": range(8, n_vocab), "few heavy": [0, 2, 5, *range(100, n_vocab, 2)]}
    source, once, draws, counts = random.Random(2), frozenset(may[allowed]), 400, np.zeros(12)
    bins = np.minimum(np.arange(n_vocab) - 8, 0) + 8
    bins[8:] += (np.arange(8, n_vocab) * 4) // n_vocab
    for _ in range(draws):
        constraint = FakeConstraint(())
        constraint.allowed = [once]
        counts[bins[draw(row, constraint, Sampling(1.0, top_p, seed=0), source)]] += 1

    expected = np.bincount(bins, weights=masked(row, once, 1.0, top_p), minlength=12) * draws
    assert chi_square(counts, expected) < 5


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    size=st.sampled_from([20, 400, 1500]),
    spread=st.sampled_from([0.1, 1, 5]),
    top_p=st.sampled_from([1e-9, 0.1, 0.5, 0.9, 0.95, 0.999]),
    share=st.sampled_from([0.02, 0.3, 0.9, 1.0]),
    blocks=st.sampled_from([(1,), (2, 4), (32, 512)]),
)
def test_a_nucleus_knows_its_own(seed, size, spread, top_p, share, blocks) -> None:
    """Whatever it answers without asking about everything is what asking about everything says."""
    numbers = np.random.default_rng(seed)
    row = numbers.normal(0, spread, size).astype(np.float32)
    allowed = frozenset(np.flatnonzero(numbers.random(size) < share).tolist() or [size - 1])
    weights, constraint = Weights(row, row.max(), 1.0), FakeConstraint(allowed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constrained, "_FIRST_BLOCKS", blocks)
        nucleus = Nucleus(weights, lambda places: constraint.allows(places.astype(np.int32)), top_p)
        for token in numbers.permutation(sorted(allowed))[:8]:
            answer = nucleus.holds(int(token))
            sure = {masked(row, allowed, 1.0, top_p * (1 + error))[token] > 0 for error in (-1e-5, 0, 1e-5)}
            assert answer is None or answer in sure


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_draw_is_allowed_accepted_and_possible(data) -> None:
    """Every draw is an allowed token, and the constraint went on with it; greedy is the largest of them."""
    seed = data.draw(st.integers(0, 2**32))
    row = (np.random.default_rng(seed).normal(0, data.draw(st.sampled_from([0.1, 3, 40])), N_VOCAB)).astype(
        np.float32
    )
    allowed = data.draw(st.sets(st.integers(0, N_VOCAB - 1), min_size=1))
    temperature = data.draw(st.sampled_from([0.0, 0.01, 0.7, 1.0, 2.0]))
    top_p = data.draw(st.sampled_from([0.0, 0.1, 0.9, 0.999, 1.0]))
    narrows = data.draw(st.sampled_from([None, 0, 5]))
    constraint = FakeConstraint(allowed, narrows=narrows)

    token = draw(row, constraint, Sampling(temperature, top_p, seed=0), random.Random(seed))

    assert constraint.accepted == [token]
    assert token in allowed
    if temperature == 0 or top_p == 0:
        assert row[token] == max(row[list(allowed)])


@pytest.mark.parametrize("top_p", [1.0, 0.9])
@pytest.mark.parametrize("temperature", [1e-9, 1e-38, 1e-40, 5e-324])
def test_temperatures_next_to_zero_are_greedy(temperature, top_p) -> None:
    """No temperature is so small that numbers overflow; the limit is the most probable token."""
    row = np.array([1, 5, 3, 2] * 10, np.float32)

    tokens = {
        draw(row, FakeConstraint({0, 2, 3}), Sampling(temperature, top_p, seed=0), random.Random(seed))
        for seed in range(20)
    }

    assert tokens == {2}


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.9)])
def test_a_seed_repeats_the_draws(temperature, top_p) -> None:
    """The same seed gives the same tokens, refusals or not."""
    rows = np.random.default_rng(1).normal(0, 2, (40, N_VOCAB)).astype(np.float32)
    allowed = [set(range(i % 7, N_VOCAB, 3)) for i in range(40)]

    def run() -> list[int]:
        source, constraint = random.Random(5), FakeConstraint(*allowed)
        return [draw(row, constraint, Sampling(temperature, top_p, seed=0), source) for row in rows]

    assert run() == run()


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.9)])
def test_tokens_far_below_the_refused_are_still_drawn(temperature, top_p) -> None:
    """What a grammar wants may weigh nothing beside what the model wants; it is drawn all the same."""
    row = np.linspace(0, -1000, N_VOCAB).astype(np.float32)

    token = draw(row, FakeConstraint({47, 49}), Sampling(temperature, top_p, seed=0), random.Random(1))

    assert token == 47


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.9)])
@pytest.mark.parametrize("narrows", [None, 0, 10])
def test_a_dead_end_is_told_from_a_broken_row(temperature, top_p, narrows) -> None:
    """Where nothing is allowed the draw says so, and nothing is accepted."""
    row = np.random.default_rng(2).normal(0, 2, N_VOCAB).astype(np.float32)
    constraint = FakeConstraint(narrows=narrows)

    assert draw(row, constraint, Sampling(temperature, top_p, seed=0), random.Random(1)) == NoToken.DEAD_END
    assert constraint.accepted == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.9)])
def test_a_row_that_is_no_distribution_is_broken(value, temperature, top_p) -> None:
    """NaN and infinite logits cost the sequence, as without a constraint; nothing is accepted."""
    row = np.full(N_VOCAB, value, np.float32)
    constraint = FakeConstraint(range(N_VOCAB))

    assert draw(row, constraint, Sampling(temperature, top_p, seed=0), random.Random(1)) == NoToken.BROKEN
    assert constraint.accepted == []


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.9)])
def test_impossible_tokens_are_never_drawn(temperature, top_p) -> None:
    """A logit of -inf stays impossible, even where the grammar allows nothing else."""
    row = np.zeros(N_VOCAB, np.float32)
    row[10:20] = -np.inf
    constraint = FakeConstraint(range(10, 20))

    assert draw(row, constraint, Sampling(temperature, top_p, seed=0), random.Random(1)) == NoToken.DEAD_END


@pytest.mark.parametrize(("temperature", "top_p"), [(0.0, 1.0), (0.7, 1.0), (0.7, 0.9)])
def test_a_model_that_keeps_to_the_grammar_is_asked_little(temperature, top_p) -> None:
    """Where the likely token is allowed, the vocabulary is not gone through."""
    row = np.zeros(20_000, np.float32)
    row[123] = 30.0
    constraint = FakeConstraint(range(0, 20_000, 3))

    draw(row, constraint, Sampling(temperature, top_p, seed=0), random.Random(1))

    assert constraint.asked <= 32


def test_what_only_the_nucleus_left_out_weighs_in_again_when_more_is_asked() -> None:
    """How much may come at all is not bounded by what a draw has been cut to."""
    row = np.random.default_rng(4).normal(0, 1, N_VOCAB).astype(np.float32)
    weights = Weights(row, row.max(), 1.0)
    heavy = weights.heavy
    weights.keep_heavier(int(np.argsort(-row)[3]))
    assert weights.heavy < heavy

    search = Search(row, FakeConstraint(range(N_VOCAB)), Sampling(1.0, 0.5, seed=0), random.Random(1))
    left = search._without_refused(weights, 2)

    assert left is not None
    assert left.heavy == pytest.approx(heavy)
