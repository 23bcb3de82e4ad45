"""Whether the node lives, and whether it can be sent requests: the second proves a real prompt and a real decode."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, Literal

import msgspec

from b3node.service.node import Node
from b3node.workers.served_model import ServedModel, State

PROBE_SECONDS: Final = 5.0
"""How long a model may take to prepare a prompt, and to decode one token, when it has not done so lately."""


class ModelHealth(msgspec.Struct, frozen=True):
    """One model: where its engine stands, whether a prompt was prepared and a token decoded lately or just now."""

    id: str
    state: State
    prepares: bool
    decodes: bool


class Readiness(msgspec.Struct, frozen=True):
    """The body of `/readyz`; `ready` exactly when the node takes requests and every model prepares and decodes."""

    status: Literal["ready", "not_ready", "draining"]
    node: str
    models: tuple[ModelHealth, ...]


class Health:
    """Answers probes. Probes that come while one is under way share its result, so they cannot pile up."""

    def __init__(self, node: Node, *, timeout: float = PROBE_SECONDS) -> None:
        self._node = node
        self._timeout = timeout
        self._running: asyncio.Task[tuple[ModelHealth, ...]] | None = None

    async def readiness(self) -> Readiness:
        """The state of the node and of every model; without probing when the node is draining."""
        models = self._unprobed() if self._node.draining else await self._probed()
        return Readiness(self._status(models), self._node.id, models)

    def _status(self, models: tuple[ModelHealth, ...]) -> Literal["ready", "not_ready", "draining"]:
        if self._node.draining:
            return "draining"
        return (
            "ready" if models and all(model.prepares and model.decodes for model in models) else "not_ready"
        )

    async def _probed(self) -> tuple[ModelHealth, ...]:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._probe())
        return await asyncio.shield(self._running)

    def _unprobed(self) -> tuple[ModelHealth, ...]:
        return tuple(
            ModelHealth(model.id, model.state, prepares=False, decodes=False)
            for model in self._node.models.values()
        )

    async def _probe(self) -> tuple[ModelHealth, ...]:
        return tuple(await asyncio.gather(*map(self._probe_model, self._node.models.values())))

    async def _probe_model(self, model: ServedModel) -> ModelHealth:
        if model.state != "ready":
            return ModelHealth(model.id, model.state, prepares=False, decodes=False)
        prepares, decodes = await asyncio.gather(
            self._answer(model.prepares(self._timeout)), self._answer(model.probe(self._timeout))
        )
        return ModelHealth(model.id, model.state, prepares, decodes)

    async def _answer(self, probe: Coroutine[object, object, bool]) -> bool:
        try:
            async with asyncio.timeout(self._timeout + 1.0):  # a probe that forgets its own time-out
                return await probe
        except Exception:  # noqa: BLE001 - a probe that breaks is an answer too
            return False
