from __future__ import annotations

import asyncio

from b3node.service.health import Health
from b3node.service.node import Node
from tests.service.fakes import FakeModel


def status(*models: FakeModel, timeout: float = 1.0) -> str:
    return asyncio.run(Health(Node("n1", models), timeout=timeout).readiness()).status


async def no() -> bool:
    return False


async def broken() -> bool:
    raise RuntimeError("bug")


def test_ready_means_that_every_model_decodes() -> None:
    """One model that does not decode makes the node unready, whatever the others do."""
    deaf = FakeModel(name="deaf")
    deaf.probing = no

    assert status(FakeModel()) == "ready"
    assert status(FakeModel(), deaf) == "not_ready"


def test_ready_means_that_prompts_can_be_prepared() -> None:
    """An engine that decodes is of no use to anybody whose request does not reach it; both are told of each
    model.
    """
    dumb = FakeModel(name="dumb")
    dumb.trying = no
    readiness = asyncio.run(Health(Node("n1", [FakeModel(), dumb])).readiness())

    assert readiness.status == "not_ready"
    assert [(health.prepares, health.decodes) for health in readiness.models] == [(True, True), (False, True)]


def test_a_model_that_is_not_up_is_not_asked() -> None:
    """While an engine loads or restarts, its probe would only fail slowly."""
    model = FakeModel(state="restarting")
    model.probing = model.trying = broken
    readiness = asyncio.run(Health(Node("n1", [model])).readiness())

    assert readiness.status == "not_ready"
    assert [(health.state, health.prepares, health.decodes) for health in readiness.models] == [
        ("restarting", False, False)
    ]


def test_a_probe_that_breaks_is_an_answer() -> None:
    """An exception of the probe means not ready, not an internal error."""
    model = FakeModel()
    model.probing = broken

    assert status(model) == "not_ready"


def test_a_node_without_models_is_not_ready() -> None:
    """Nothing to serve is nothing to be ready for."""
    assert status() == "not_ready"


def test_draining_is_told_without_probing() -> None:
    """A draining node answers at once that it is draining."""
    model = FakeModel()
    model.probing = broken
    node = Node("n1", [model])
    node.drain()

    assert asyncio.run(Health(node).readiness()).status == "draining"


def test_probes_that_come_together_share_one() -> None:
    """Ten probes at once ask the engine once; the next one afterwards asks again."""
    model = FakeModel()
    asked = 0

    async def slow() -> bool:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return True

    model.probing = slow

    async def story() -> set[str]:
        health = Health(Node("n1", [model]))
        answers = await asyncio.gather(*(health.readiness() for _ in range(10)))
        await health.readiness()
        return {answer.status for answer in answers}

    assert asyncio.run(story()) == {"ready"}
    assert asked == 2


def test_a_prober_that_leaves_takes_nobody_along() -> None:
    """The probe goes on for the others when one of those that wait for it is cancelled."""
    model = FakeModel()

    async def slow() -> bool:
        await asyncio.sleep(0.01)
        return True

    model.probing = slow

    async def story() -> str:
        health = Health(Node("n1", [model]))
        first = asyncio.create_task(health.readiness())
        second = asyncio.create_task(health.readiness())
        await asyncio.sleep(0)
        first.cancel()
        return (await second).status

    assert asyncio.run(story()) == "ready"
