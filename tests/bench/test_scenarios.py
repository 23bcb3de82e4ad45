from __future__ import annotations

import asyncio
import os

import pytest

from bench.scenarios import FULL, QUICK, SCENARIOS
from bench.servers import Running
from tests.bench.endpoint import endpoint
from tests.bench.wire import answer, completed, delta

ASKED = sorted(SCENARIOS.keys() - {"long", "streaming"})
"""All that ask without timing: the others act beside streams that run for a while."""


def played(name, scale=QUICK):
    """What each piece of a scenario measured, and the bodies that were sent for each."""
    heard = []

    async def reply(body, writer):
        heard.append(body)
        for part in (answer(delta("a")), delta("b"), delta("c") + completed()):
            writer.write(part)
            await asyncio.sleep(0.001)  # pieces of text with gaps between them

    async def main():
        found = []
        async with endpoint(reply) as url:
            server = Running("any", url, os.getpid(), 0.0)
            pieces = SCENARIOS[name].pieces(server, scale, "seed", scale.rounds[name])
            async for measures in pieces:
                found.append((measures, heard[:]))
                heard.clear()
        return found

    return asyncio.run(main())


@pytest.mark.parametrize("name", ASKED)
def test_a_scenario_asks_the_same_of_every_server(name) -> None:
    """What is sent is decided by the seed alone, so both servers have the same work in every round."""

    def sent():
        return [sorted(map(str, bodies)) for _, bodies in played(name)]

    assert sent() == sent()


@pytest.mark.parametrize("name", ["clients_1", "clients_4", "clients_16", "neighbour"])
def test_a_piece_is_one_request_of_each_client(name) -> None:
    """Servers are asked in turn in pieces as small as they get, and no request is asked twice."""
    found = played(name)

    count = int(name.rpartition("_")[2]) if "_" in name else 1
    assert [len(bodies) for _, bodies in found] == [count] * QUICK.rounds[name]
    texts = [body["input"] for _, bodies in found for body in bodies]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(("name", "count"), [("agent", 1), ("agents", QUICK.agents)])
def test_a_conversations_total_is_the_sum_of_its_own_turns(name, count) -> None:
    """A piece is a turn of each conversation, and what others do between two turns costs it nothing."""
    *turns, (whole, nothing) = played(name)

    assert [len(bodies) for _, bodies in turns] == [count] * QUICK.rounds[name]
    assert [len(bodies[0]["input"]) for _, bodies in turns] == [1 + 2 * n for n in range(len(turns))]
    assert (nothing, whole["total_s"]) == (
        [],
        pytest.approx(sum(measures["turn_s"] for measures, _ in turns)),
    )
    assert whole["reused"] == pytest.approx(2 / (7 + 3))


def test_greedy_and_drawn_answers_are_asked_in_turn() -> None:
    """What drawing costs more is a ratio of neighbours in time, in alternating order."""
    found = played("sampled", FULL)

    drawn = [[body["temperature"] > 0 for body in bodies] for _, bodies in found]
    assert drawn == [[False] * 16 + [True] * 16, [True] * 16 + [False] * 16] * 2


def test_a_full_run_has_enough_pairs() -> None:
    """A median of few pairs would be the machine's mood: 12 of one client, 4 of sixteen, 8 of what drawing
    costs.
    """
    pairs = {name: FULL.repetitions * rounds for name, rounds in FULL.rounds.items()}

    assert pairs["clients_1"] >= 12
    assert pairs["clients_16"] >= 4
    assert pairs["sampled"] >= 8
    assert pairs.keys() == QUICK.rounds.keys() == SCENARIOS.keys()
