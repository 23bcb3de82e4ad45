from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from bench.pairs import in_turn, middles, ratios, summary, values


@given(st.lists(st.integers(), max_size=3), st.integers(0, 20))
def test_the_order_changes_from_round_to_round(things, number) -> None:
    """Who was asked last in a round is asked first in the next one: A B, B A, A B."""
    assert in_turn(in_turn(things, number), number + 1) == things[::-1]
    assert in_turn(things, number) == in_turn(things, number + 2)


def test_a_pair_is_of_one_round_that_both_measured() -> None:
    """A round that only one has measured is no pair, and what is divided by nothing is none either."""
    rounds = [
        {"a": {"s": 3.0}, "b": {"s": 2.0}},
        {"a": {"s": 9.0}},
        {"b": {"s": 5.0}},
        {"a": {"s": 1.0}, "b": {"s": 0.0}},
        {"a": {"s": 1.0}, "b": {"other": 1.0}},
    ]

    assert ratios(rounds, "a", "b", "s") == [1.5]
    assert values(rounds, "a", "s") == [3.0, 9.0, 1.0, 1.0]


def test_paired_ratios_do_not_see_a_machine_that_slows_down() -> None:
    """However the pace changes from round to round, what is the same in each round is the ratio."""
    rounds = [{"a": {"s": 1.1 * pace}, "b": {"s": pace}} for pace in (1.0, 1.5, 7.0, 0.3)]

    found = summary(ratios(rounds, "a", "b", "s"))

    assert found is not None
    assert found.lower == found.upper == pytest.approx(1.1)


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=30))
def test_the_quartiles_lie_around_the_median_and_within_the_values(found) -> None:
    """What is told of values is never more extreme than they are."""
    short = summary(found)

    assert short is not None
    assert min(found) <= short.lower <= short.median <= short.upper <= max(found)
    assert short.count == len(found)


def test_one_pair_far_off_changes_little() -> None:
    """A machine that is busy for a moment spoils a pair, not the result."""
    short = summary([1.0, 1.1, 1.2, 1.3, 100.0])

    assert short is not None
    assert (short.lower, short.median, short.upper) == (1.1, 1.2, 1.3)


def test_one_value_is_its_own_summary_and_none_has_none() -> None:
    """A single pair is shown as what it is."""
    one = summary([2.0])

    assert one is not None
    assert (one.lower, one.median, one.upper, one.count) == (2.0, 2.0, 2.0, 1)
    assert summary([]) is None


def test_middles_are_taken_where_a_measure_was_taken() -> None:
    """A measure that only some rounds have, such as a whole conversation's, counts those."""
    rounds = [{"a": {"turn": 1.0}}, {"a": {"turn": 2.0}}, {"a": {"turn": 9.0}}, {"a": {"total": 12.0}}]

    assert middles(rounds, "a") == {"turn": 2.0, "total": 12.0}
    assert middles(rounds, "b") == {}
