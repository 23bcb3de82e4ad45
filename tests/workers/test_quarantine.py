from __future__ import annotations

from hypothesis import given, strategies as st

from b3node.workers.quarantine import MAX_REQUESTS, QUARANTINE_SECONDS, Quarantine

POISON, OTHER, THIRD = b"poison", b"other", b"third"


def died(quarantine: Quarantine, *rounds: set[bytes]) -> list[bytes | None]:
    """Returns the culprit of each of several deaths."""
    return [quarantine.record_death(computed, 0.0) for computed in rounds]


def test_the_only_request_of_two_deaths_is_guilty() -> None:
    """It is refused from then on, and all others are admitted."""
    quarantine = Quarantine()

    assert died(quarantine, {POISON}, {POISON}) == [None, POISON]
    assert quarantine.verdict(POISON, [], 0.0) == "refuse"
    assert quarantine.verdict(OTHER, [], 0.0) == "admit"


def test_the_only_common_request_of_two_deaths_is_guilty() -> None:
    """A request of one of them alone is not."""
    quarantine = Quarantine()

    assert died(quarantine, {POISON, OTHER}, {THIRD, POISON}) == [None, POISON]
    assert quarantine.verdict(OTHER, [THIRD], 0.0) == quarantine.verdict(THIRD, [OTHER], 0.0) == "admit"


def test_where_two_explain_both_deaths_neither_is_guilty_but_each_is_tried_without_the_other() -> None:
    """The next death decides between them."""
    quarantine = Quarantine()

    assert died(quarantine, {POISON, OTHER}, {POISON, OTHER}) == [None, None]
    assert quarantine.verdict(POISON, [THIRD], 0.0) == "admit"
    assert quarantine.verdict(OTHER, [THIRD, POISON], 0.0) == "later"
    assert died(quarantine, {POISON, THIRD}) == [POISON]
    assert quarantine.verdict(OTHER, [THIRD], 0.0) == "admit"


def test_an_answer_clears() -> None:
    """A request computed to its end is no culprit, and its earlier deaths are forgotten."""
    quarantine = Quarantine()
    died(quarantine, {POISON})
    quarantine.clear(POISON)

    assert died(quarantine, {POISON}) == [None]


def test_a_request_that_comes_twice_is_one() -> None:
    """A request and its copy are no two suspects."""
    quarantine = Quarantine()
    died(quarantine, {POISON, OTHER}, {POISON, OTHER})

    assert quarantine.verdict(POISON, [POISON], 0.0) == "admit"


def test_suspicions_and_guilt_are_forgotten() -> None:
    """After some minutes a request may try again."""
    quarantine = Quarantine()
    quarantine.record_death({POISON, OTHER}, 0.0)
    quarantine.record_death({POISON}, 1.0)

    assert quarantine.verdict(POISON, [], QUARANTINE_SECONDS) == "refuse"
    assert quarantine.verdict(POISON, [], QUARANTINE_SECONDS + 2.0) == "admit"
    assert quarantine.record_death({OTHER}, QUARANTINE_SECONDS) is None
    assert quarantine.record_death({POISON}, QUARANTINE_SECONDS + 2.0) is None


def test_a_death_without_requests_accuses_nobody() -> None:
    """An engine may die by itself, or of the machine."""
    assert died(Quarantine(), set(), set(), set()) == [None, None, None]


@given(st.lists(st.sets(st.sampled_from([bytes([n]) for n in range(6)]))))
def test_whoever_is_guilty_was_in_two_deaths_and_no_other_explains_the_last_as_well(
    rounds: list[set[bytes]],
) -> None:
    """However deaths come about."""
    quarantine = Quarantine()
    deaths: dict[bytes, int] = {}
    for computed in rounds:
        guilty = quarantine.record_death(computed, 0.0)
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
    quarantine = Quarantine()
    everybody = [*sorted(beside - {poison}), poison]
    deaths = 0
    while quarantine.verdict(bytes([poison]), [], 0.0) != "refuse":
        computed: list[bytes] = []
        for number in everybody:
            if quarantine.verdict(bytes([number]), computed, 0.0) == "admit":
                computed.append(bytes([number]))
        if bytes([poison]) in computed:
            deaths += 1
            quarantine.record_death(set(computed), 0.0)
        else:
            for request in computed:
                quarantine.clear(request)

    assert deaths <= 3
    assert all(quarantine.verdict(bytes([number]), [], 0.0) == "admit" for number in everybody[:-1])


def test_what_is_remembered_is_bounded() -> None:
    """Ever new requests to dying engines fill no memory."""
    quarantine = Quarantine()
    for number in range(2 * MAX_REQUESTS):
        quarantine.record_death({number.to_bytes(4, "big")}, 0.0)

    assert len(quarantine._records) == MAX_REQUESTS
