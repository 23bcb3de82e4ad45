from __future__ import annotations

from hypothesis import given, strategies as st

from b3node.workers.quarantine import MOST, SECONDS, Suspects

POISON, OTHER, THIRD = b"poison", b"other", b"third"


def died(suspects: Suspects, *rounds: set[bytes]) -> list[bytes | None]:
    """Who is found guilty at each of several deaths."""
    return [suspects.died(computed, 0.0) for computed in rounds]


def test_the_only_request_of_two_deaths_is_guilty() -> None:
    """It is refused from then on, and all others go free."""
    suspects = Suspects()

    assert died(suspects, {POISON}, {POISON}) == [None, POISON]
    assert suspects.verdict(POISON, [], 0.0) == "guilty"
    assert suspects.verdict(OTHER, [], 0.0) == "free"


def test_the_only_common_request_of_two_deaths_is_guilty() -> None:
    """What was in one of them alone is not."""
    suspects = Suspects()

    assert died(suspects, {POISON, OTHER}, {THIRD, POISON}) == [None, POISON]
    assert suspects.verdict(OTHER, [THIRD], 0.0) == suspects.verdict(THIRD, [OTHER], 0.0) == "free"


def test_where_two_explain_both_deaths_neither_is_guilty_but_each_is_tried_without_the_other() -> None:
    """The next death tells which of them it was."""
    suspects = Suspects()

    assert died(suspects, {POISON, OTHER}, {POISON, OTHER}) == [None, None]
    assert suspects.verdict(POISON, [THIRD], 0.0) == "free"
    assert suspects.verdict(OTHER, [THIRD, POISON], 0.0) == "later"
    assert died(suspects, {POISON, THIRD}) == [POISON]
    assert suspects.verdict(OTHER, [THIRD], 0.0) == "free"


def test_an_answer_clears() -> None:
    """What was computed to its end is not what kills, and its earlier deaths are not held against it."""
    suspects = Suspects()
    died(suspects, {POISON})
    suspects.answered(POISON)

    assert died(suspects, {POISON}) == [None]


def test_a_request_that_comes_twice_is_one() -> None:
    """The same one beside itself explains nothing else."""
    suspects = Suspects()
    died(suspects, {POISON, OTHER}, {POISON, OTHER})

    assert suspects.verdict(POISON, [POISON], 0.0) == "free"


def test_suspicions_and_guilt_are_forgotten() -> None:
    """After some minutes a request may try again."""
    suspects = Suspects()
    suspects.died({POISON, OTHER}, 0.0)
    suspects.died({POISON}, 1.0)

    assert suspects.verdict(POISON, [], SECONDS) == "guilty"
    assert suspects.verdict(POISON, [], SECONDS + 2.0) == "free"
    assert suspects.died({OTHER}, SECONDS) is None
    assert suspects.died({POISON}, SECONDS + 2.0) is None


def test_a_death_without_requests_accuses_nobody() -> None:
    """An engine may die by itself, or of the machine."""
    assert died(Suspects(), set(), set(), set()) == [None, None, None]


@given(st.lists(st.sets(st.sampled_from([bytes([n]) for n in range(6)]))))
def test_whoever_is_guilty_was_in_two_deaths_and_no_other_explains_the_last_as_well(
    rounds: list[set[bytes]],
) -> None:
    """However deaths come about."""
    suspects = Suspects()
    deaths: dict[bytes, int] = {}
    for computed in rounds:
        guilty = suspects.died(computed, 0.0)
        for request in computed:
            deaths[request] = deaths.get(request, 0) + 1
        if guilty is not None:
            assert guilty in computed
            assert deaths[guilty] >= 2
            assert all(deaths[other] < deaths[guilty] for other in computed - {guilty})


@given(st.sets(st.integers(0, 5)), st.integers(0, 5))
def test_a_request_that_kills_whenever_it_is_computed_is_found_out_by_its_third_death(
    beside: set[int], poison: int
) -> None:
    """However many others come back with it each time, and whether or not they are let in before it."""
    suspects = Suspects()
    everybody = [*sorted(beside - {poison}), poison]
    deaths = 0
    while suspects.verdict(bytes([poison]), [], 0.0) != "guilty":
        computed: list[bytes] = []
        for number in everybody:
            if suspects.verdict(bytes([number]), computed, 0.0) == "free":
                computed.append(bytes([number]))
        if bytes([poison]) in computed:
            deaths += 1
            suspects.died(set(computed), 0.0)
        else:
            for request in computed:
                suspects.answered(request)

    assert deaths <= 3
    assert all(suspects.verdict(bytes([number]), [], 0.0) == "free" for number in everybody[:-1])


def test_what_is_remembered_is_bounded() -> None:
    """Whoever sends ever new requests into dying engines fills no memory."""
    suspects = Suspects()
    for number in range(2 * MOST):
        suspects.died({number.to_bytes(4, "big")}, 0.0)

    assert len(suspects._known) == MOST
