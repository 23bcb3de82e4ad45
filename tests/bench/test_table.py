from __future__ import annotations

import pytest

from bench.scenarios import SCENARIOS
from bench.table import ROWS, Repetition, Row, lines, number, text, with_raw_share


def repetition(ours=None, theirs=None, raw=None):
    """One round of each scenario that is named."""
    named = {"b3node": ours or {}, "llama-server": theirs or {}, "raw": raw or {}}
    scenarios = {scenario for values in named.values() for scenario in values}
    return Repetition(
        busy=0.0,
        rounds={
            scenario: [{name: values[scenario] for name, values in named.items() if scenario in values}]
            for scenario in scenarios
        },
    )


def line(title, repetitions, *, judge=True):
    return next(found for found in lines(repetitions, judge=judge) if found.row.title == title)


def test_a_ratio_is_the_median_of_the_rounds_own() -> None:
    """A machine that slows down between rounds changes both servers' values, but not their ratio."""
    runs = [
        repetition({"clients_1": {"tokens_s": ours}}, {"clients_1": {"tokens_s": theirs}})
        for ours, theirs in ((120.0, 100.0), (12.0, 10.0), (200.0, 100.0))
    ]

    found = line("1 client", runs)

    assert found.ratio.median == pytest.approx(1.2)
    assert (found.ratio.lower, found.ratio.upper) == (pytest.approx(1.2), pytest.approx(1.6))
    assert found.ratio.count == 3
    assert (found.b3node.median, found.llama_server.median) == (120.0, 100.0)


def test_rounds_of_all_repetitions_count_alike() -> None:
    """A ratio's pairs are the rounds, in however many repetitions they were measured."""
    one, two = ({"b3node": {"tokens_s": ours}, "llama-server": {"tokens_s": 1.0}} for ours in (1.0, 3.0))
    runs = [Repetition(busy=0.0, rounds={"clients_4": rounds}) for rounds in ([one, one], [two, two, two])]

    found = line("4 clients", runs).ratio

    assert (found.median, found.count) == (3.0, 5)


@pytest.mark.parametrize(("ours", "met"), [(1.08, True), (1.07, False)])
def test_more_is_better_where_tokens_are_counted(ours, met) -> None:
    """A bar for tokens a second is met from below."""
    found = line(
        "1 client", [repetition({"clients_1": {"tokens_s": ours}}, {"clients_1": {"tokens_s": 1.0}})]
    )

    assert found.met is met
    assert found.advantage.median == pytest.approx(ours)


@pytest.mark.parametrize(("ours", "met"), [(0.5, True), (0.51, False)])
def test_less_is_better_where_time_is_taken(ours, met) -> None:
    """A bar for a duration is met from above, and the advantage is the ratio the other way round."""
    found = line(
        "16 clients: first token, p50",
        [repetition({"clients_16": {"first_s": ours}}, {"clients_16": {"first_s": 1.0}})],
    )

    assert found.met is met
    assert found.advantage.median == pytest.approx(1 / ours)


@pytest.mark.parametrize(("gap", "met"), [(10.0, True), (10.9, False)])
def test_the_raw_loop_is_held_against_the_served_gap(gap, met) -> None:
    """Both servers' gaps are divided by the same round's raw step; b3node's own share is what is judged."""
    runs = [
        repetition(
            {"clients_1": {"gap_ms": gap}}, {"clients_1": {"gap_ms": 20.0}}, {"clients_1": {"step_ms": 10.0}}
        )
    ]

    found = line("1 client: raw step / gap", runs)

    assert found.b3node.median == pytest.approx(10.0 / gap)
    assert found.llama_server.median == pytest.approx(0.5)
    assert (found.ratio, found.met) == (None, met)


def test_a_duration_that_took_longer_has_its_quartiles_the_other_way_round() -> None:
    """How many times better is the inverse of a duration's ratio, and so are the ends of its spread."""
    runs = [repetition({"agent": {"turn_s": t}}, {"agent": {"turn_s": 1.0}}) for t in (0.5, 1.0, 2.0)]

    found = line("agent: a turn, p50", runs).advantage

    assert (found.lower, found.median, found.upper) == (pytest.approx(1 / 1.5), 1.0, pytest.approx(1 / 0.75))


def test_what_was_not_measured_is_no_line_and_no_verdict() -> None:
    """Scenarios that did not run are left out; without a second server there is no ratio to judge."""
    found = lines([repetition({"clients_1": {"tokens_s": 100.0}})], judge=True)

    assert [one.row.title for one in found] == ["1 client"]
    assert (found[0].ratio, found[0].met, found[0].advantage) == (None, None, None)


def test_a_gap_of_zero_has_no_raw_share() -> None:
    """Where most tokens came together with others, the median gap is 0 and the share means nothing."""
    found = with_raw_share({"raw": {"step_ms": 7.0}, "b3node": {"gap_ms": 0.0}, "earlier": {"gap_ms": 14.0}})

    assert found["b3node"] == {"gap_ms": 0.0}
    assert found["earlier"]["raw_share"] == 0.5


def test_small_loads_are_not_judged() -> None:
    """Bars are for the full scale; elsewhere the numbers stand alone."""
    runs = [repetition({"clients_1": {"tokens_s": 1.0}}, {"clients_1": {"tokens_s": 2.0}})]

    assert line("1 client", runs, judge=False).met is None


def test_the_table_says_what_missed_its_bar() -> None:
    """The text has a line for each row, with the verdict at its end."""
    runs = [
        repetition({"agent": {"total_s": 9.0, "reused": 0.97}}, {"agent": {"total_s": 10.0, "reused": 0.9}})
    ]

    _, total, reused = text(lines(runs, judge=True)).splitlines()

    assert total.split() == ["agent:", "total", "(s)", "9.00", "10.0", "0.900", "1", "<=", "0.667", "MISSED"]
    assert reused.endswith("met")
    assert "b3node >= 0.950" in reused


def test_an_earlier_checkout_is_compared_without_bars() -> None:
    """The other column bears its name, and bars, which are for llama-server, are not shown."""
    runs = [Repetition(0.0, {"clients_1": [{"b3node": {"tokens_s": 3.0}, "earlier": {"tokens_s": 2.0}}]})]

    head, row = text(lines(runs, judge=False, theirs="earlier"), "earlier").splitlines()

    assert head.split()[:3] == ["b3node", "earlier", "ratio"]
    assert row.split() == ["1", "client", "(tokens/s)", "3.00", "2.00", "1.50", "1"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_every_row_is_of_a_scenario_that_exists(row: Row) -> None:
    """A row that no scenario fills would silently never be judged."""
    assert row.scenario in {*SCENARIOS, "server"}


def test_titles_are_unique() -> None:
    """Two rows of one title could not be told apart."""
    assert len({row.title for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "-"), (0.0314, "0.031"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1234")]
)
def test_numbers_show_what_matters(value, shown) -> None:
    """Three digits, no more."""
    assert number(value) == shown
