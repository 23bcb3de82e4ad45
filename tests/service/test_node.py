from __future__ import annotations

import asyncio

import pytest

from b3node.errors import Refusal
from b3node.service.node import Limits, Node
from b3node.service.record import Record
from b3node.service.timing import Stopwatch
from tests.service.fakes import FakeModel


def record() -> Record:
    return Record(request_id="req_x", timing=Stopwatch(lambda: 1.0), method="POST")


def test_an_unknown_model_is_quoted_back_harmlessly() -> None:
    """The refusal names the model that was asked for, cut and without control characters."""
    node = Node("n1", [FakeModel()])
    with pytest.raises(Refusal) as caught:
        node.model("b3os/x\r\nX-Evil: 1" + "x" * 300)

    assert caught.value.code == "model_not_available"
    assert caught.value.param == "model"
    assert "b3os/x" in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) <= 300


def test_a_full_node_asks_to_come_back() -> None:
    """Beyond the limit of requests in flight the answer is 503 with a time to wait, until one ends."""
    node = Node("n1", [FakeModel()], limits=Limits(requests=2))
    with node.admit(record()), node.admit(record()), pytest.raises(Refusal) as caught:
        node.admit(record())

    assert caught.value.code == "capacity_unavailable"
    assert caught.value.retry_after is not None
    assert node.in_flight == 0
    with node.admit(record()):
        assert node.in_flight == 1


def test_a_draining_node_lets_nobody_in() -> None:
    """Once the drain began, a new request is told that the node is unavailable, and to retry in 5 s."""
    node = Node("n1", [FakeModel()])
    with node.admit(record()):
        node.drain()
        with pytest.raises(Refusal) as caught:
            node.admit(record())

        assert node.in_flight == 1
    assert caught.value.code == "node_unavailable"
    assert caught.value.retry_after == 5


def test_bodies_in_memory_are_bounded_together() -> None:
    """Many clients that each send an allowed body cannot fill the memory; what is refused is not counted."""
    node = Node("n1", [FakeModel(max_request_bytes=100)], limits=Limits(bodies=2))
    with node.admit(record()) as first, node.admit(record()) as second:
        first.hold_bytes(150)
        with pytest.raises(Refusal) as caught:
            second.hold_bytes(51)
        second.hold_bytes(50)
        first.release_bytes()
        second.hold_bytes(150)

    assert caught.value.code == "capacity_unavailable"


def test_the_largest_model_bounds_the_reading() -> None:
    """A body is read up to the largest limit of all models; without models the default holds."""
    small, large = FakeModel(name="a", max_request_bytes=10), FakeModel(name="b", max_request_bytes=20)

    assert Node("n1", [small, large]).max_request_bytes == 20
    assert Node("n1", []).max_request_bytes == 10_485_760


def test_drained_waits_for_the_last_flight() -> None:
    """`drained` returns at once when nothing is in flight, and otherwise with the last one."""

    async def story() -> None:
        node = Node("n1", [FakeModel()])
        await asyncio.wait_for(node.drained(), 1)
        with node.admit(record()):
            waiting = asyncio.create_task(node.drained())
            await asyncio.sleep(0)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(story())
