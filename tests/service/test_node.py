from __future__ import annotations

import asyncio

import pytest
import structlog

from b3node.errors import Refusal
from b3node.principal import LOCAL
from b3node.service import log
from b3node.service.node import Node, NodeLimits
from b3node.service.record import Record
from b3node.service.timing import Stopwatch
from b3node.workers.served_model import EngineLoad
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
    node = Node("n1", [FakeModel()], limits=NodeLimits(requests=2))
    with node.admit(record(), LOCAL), node.admit(record(), LOCAL), pytest.raises(Refusal) as caught:
        node.admit(record(), LOCAL)

    assert caught.value.code == "capacity_unavailable"
    assert caught.value.retry_after is not None
    assert node.in_flight == 0
    with node.admit(record(), LOCAL):
        assert node.in_flight == 1


def test_a_draining_node_lets_nobody_in() -> None:
    """Once the drain began, a new request is told that the node is unavailable, and to retry in 5 s."""
    node = Node("n1", [FakeModel()])
    with node.admit(record(), LOCAL):
        node.drain()
        with pytest.raises(Refusal) as caught:
            node.admit(record(), LOCAL)

        assert node.in_flight == 1
    assert caught.value.code == "node_unavailable"
    assert caught.value.retry_after == 5


def test_bodies_in_memory_are_bounded_together() -> None:
    """Many clients that each send an allowed body cannot fill the memory; what is refused is not counted."""
    node = Node("n1", [FakeModel(max_request_bytes=100)], limits=NodeLimits(bodies=2))
    with node.admit(record(), LOCAL) as first, node.admit(record(), LOCAL) as second:
        first.hold_bytes(150)
        with pytest.raises(Refusal) as caught:
            second.hold_bytes(51)
        second.hold_bytes(50)
        first.release_bytes()
        second.hold_bytes(150)

    assert caught.value.code == "capacity_unavailable"


def test_every_sink_has_every_finished_record() -> None:
    """Sinks are asked in order, and one that fails keeps the record from no other."""
    taken: list[tuple[str, Record]] = []

    def broken(_: Record) -> None:
        raise RuntimeError("full disk")

    sinks = (
        lambda given: taken.append(("first", given)),
        broken,
        lambda given: taken.append(("last", given)),
    )
    written: list[str] = []
    log.configure("debug", written.append)
    finished = record()
    Node("n1", [], sinks=sinks).finish(finished)
    structlog.reset_defaults()

    assert taken == [("first", finished), ("last", finished)]
    assert len(written) == 1
    assert "RuntimeError: full disk" in written[0]


def test_the_request_log_is_a_nodes_sink() -> None:
    """Unless others are given."""
    assert Node("n1", []).sinks == (log.request,)


def test_the_load_of_every_model_can_be_read() -> None:
    """A node knows how many sequences run and wait in each engine, as of its last step."""
    busy, idle = FakeModel(name="busy"), FakeModel(name="idle")
    busy.load = EngineLoad(running=2, waiting=1)

    assert {model.id: model.load for model in Node("n1", [busy, idle]).models.values()} == {
        "busy": EngineLoad(running=2, waiting=1),
        "idle": None,
    }


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
        with node.admit(record(), LOCAL):
            waiting = asyncio.create_task(node.drained())
            await asyncio.sleep(0)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(story())
