from __future__ import annotations

import asyncio

import pytest

from bench import rotation
from bench.load import LoadError
from bench.rotation import Party, Wait, idle_shares, rotate


class Clock:
    """Computes as much as it is told to."""

    cpu = 0.0


def rotated(*given, first=0):
    """The outcome of a rotation among parties (name, results), and who was asked in which order."""
    asked = []

    async def pieces(name, results):
        for number, result in enumerate(results):
            if result is None:
                raise LoadError("no")
            asked.append(f"{name}{number}")
            yield {"value": result}

    parties = [Party(name, pieces(name, results), Clock()) for name, results in given]
    return asyncio.run(rotate(parties, first)), asked


@pytest.fixture(autouse=True)
def restless(monkeypatch):
    monkeypatch.setattr(rotation, "REST", 0)


def test_parties_are_asked_in_turn_in_alternating_order() -> None:
    """A B, B A, A B: each piece's neighbour is the other one's piece of the same round."""
    outcome, asked = rotated(("a", [1, 2, 3]), ("b", [4, 5, 6]))

    assert asked == ["a0", "b0", "b1", "a1", "a2", "b2"]
    assert outcome.rounds == [{"a": {"value": n}, "b": {"value": n + 3}} for n in (1, 2, 3)]


def test_the_next_repetition_begins_with_the_other() -> None:
    """Scenarios of a single round alternate from repetition to repetition."""
    assert rotated(("a", [1]), ("b", [2]), first=1)[1] == ["b0", "a0"]


def test_what_stands_between_two_stays_between_them() -> None:
    """The raw loop is right beside both servers in every round."""
    assert rotated(("a", [1, 1]), ("r", [1, 1]), ("b", [1, 1]))[1] == ["a0", "r0", "b0", "b1", "r1", "a1"]


def test_who_fails_is_asked_no_more_and_the_others_go_on() -> None:
    """What was measured before counts; why it ended is told."""
    outcome, asked = rotated(("a", [1, None, 1]), ("b", [1, 1, 1]))

    assert asked == ["a0", "b0", "b1", "b2"]
    assert outcome.failures == {"a": "no"}
    assert [sorted(found) for found in outcome.rounds] == [["a", "b"], ["b"], ["b"]]


def test_what_waits_is_watched_and_what_is_asked_is_not() -> None:
    """While one computes, the CPU time that the other takes is measured, and nobody's own."""

    async def pieces(own, other):
        own.cpu += 5.0
        other.cpu += 0.25
        yield {}

    one, two = Clock(), Clock()
    parties = [Party("one", pieces(one, two), one), Party("two", pieces(two, one), two)]

    outcome = asyncio.run(rotate(parties, 0))

    assert [wait.cpu for wait in outcome.waits] == [{"two": 0.25}, {"one": 0.25}]


def test_an_idle_share_is_cpu_time_by_time_waited() -> None:
    """Long waits weigh more than short ones."""
    waits = [Wait(1.0, {"a": 0.5, "r": 0.0}), Wait(9.0, {"a": 0.0, "r": 0.0}), Wait(5.0, {"b": 0.1})]

    assert idle_shares(waits) == {"a": 0.05, "r": 0.0, "b": pytest.approx(0.02)}
    assert idle_shares([Wait(0.0, {"a": 0.1})]) == {}
