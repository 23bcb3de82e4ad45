from __future__ import annotations

import asyncio
from typing import Any

import pytest

from b3node.errors import Refusal
from b3node.principal import LOCAL
from b3node.service.in_flight import InFlight
from b3node.service.node import Node, NodeLimits
from b3node.service.record import Record
from b3node.service.timing import Stopwatch
from tests.service.fakes import FakeGeneration, FakeModel, Gate

STOP = Refusal("node_unavailable", "stopping", retry_after=5)


def node(**limits: Any) -> Node:
    return Node("n1", [FakeModel(max_request_bytes=100)], limits=NodeLimits(**limits))


def record() -> Record:
    return Record(request_id="req_x", timing=Stopwatch(lambda: 1.0), method="POST")


async def never() -> None:
    await asyncio.Event().wait()


def test_leaving_cancels_the_generation_and_gives_everything_back() -> None:
    """However a request in flight ends, its generation is cancelled, its place and bytes are free."""
    here, generation = node(), FakeGeneration([])

    def fly() -> None:
        with here.admit(record(), LOCAL) as in_flight:
            in_flight.hold_bytes(50)
            in_flight.attach(generation)
            raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        fly()

    assert generation.cancelled.is_set()
    assert here.in_flight == 0
    with here.admit(record(), LOCAL) as in_flight:
        in_flight.hold_bytes(8 * 100)


def test_halting_interrupts_a_wait() -> None:
    """A request in flight that waits for the engine hears at once that the node stops."""

    async def story() -> None:
        in_flight = InFlight(node(), record(), LOCAL)
        waiting = asyncio.ensure_future(in_flight.wait(never))
        await asyncio.sleep(0)
        in_flight.halt(STOP)
        with pytest.raises(Refusal) as caught:
            await waiting

        assert caught.value is STOP

    asyncio.run(story())


def test_halting_between_waits_shows_at_the_next_one() -> None:
    """A halt that comes while a frame is written does not cut it: the next wait raises."""

    async def story() -> None:
        in_flight = InFlight(node(), record(), LOCAL)
        in_flight.halt(STOP)
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as caught:
            await in_flight.wait(never)

        assert caught.value is STOP

    asyncio.run(story())


def test_a_cancellation_from_outside_stays_one() -> None:
    """A client that leaves in the same moment as the node stops is a client that left."""

    async def story() -> None:
        in_flight = InFlight(node(), record(), LOCAL)
        waiting = asyncio.ensure_future(in_flight.wait(never))
        await asyncio.sleep(0)
        in_flight.halt(STOP)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())


def test_a_halt_leaves_an_outer_time_out_alone() -> None:
    """A time-out around a wait still tells a time-out from a halt."""

    async def story() -> None:
        in_flight = InFlight(node(), record(), LOCAL)

        async def wait(seconds: float) -> None:
            async with asyncio.timeout(seconds):
                await in_flight.wait(never)

        with pytest.raises(TimeoutError):
            await wait(0.001)
        asyncio.get_running_loop().call_soon(in_flight.halt, STOP)
        with pytest.raises(Refusal):
            await wait(5)

    asyncio.run(story())


def test_the_node_halts_every_flight() -> None:
    """When the drain is over, whoever is still waiting is told that the node is unavailable."""

    async def story() -> list[Refusal]:
        here = node()
        heard: list[Refusal] = []

        async def fly() -> None:
            with here.admit(record(), LOCAL) as in_flight:
                try:
                    await in_flight.wait(Gate().wait)
                except Refusal as refusal:
                    heard.append(refusal)

        tasks = [asyncio.create_task(fly()) for _ in range(3)]
        await asyncio.sleep(0)
        here.drain()
        here.halt()
        await asyncio.wait_for(here.drained(), 1)
        await asyncio.gather(*tasks)
        return heard

    heard = asyncio.run(story())

    assert [refusal.code for refusal in heard] == ["node_unavailable"] * 3
