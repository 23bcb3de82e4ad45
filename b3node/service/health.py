"""Readiness of the node: each model proves that it prepares a prompt and decodes a token."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Final, Literal

import msgspec

from b3node.service.node import Node
from b3node.workers.served_model import ModelState, ServedModel

PROBE_SECONDS: Final = 5.0
"""The time for preparing a prompt and for decoding one token, if the model has not done so lately."""

_PROBE_GRACE_SECONDS: Final = 1.0
"""Added to a probe's time, for probes that do not keep to it."""


class ModelHealth(msgspec.Struct, frozen=True):
    """One model: the state of its engine, and whether it prepares prompts and decodes tokens."""

    id: str
    state: ModelState
    prepares: bool
    decodes: bool


class Readiness(msgspec.Struct, frozen=True):
    """The body of `/readyz`; `ready` if the node takes requests and every model prepares and decodes."""

    status: Literal["ready", "not_ready", "draining"]
    node: str
    models: tuple[ModelHealth, ...]


class Health:
    """Answers probes. Concurrent probes share one result, so they cannot pile up."""

    def __init__(self, node: Node, *, timeout: float = PROBE_SECONDS) -> None:
        self._node = node
        self._timeout = timeout
        self._running: asyncio.Task[tuple[ModelHealth, ...]] | None = None

    async def readiness(self) -> Readiness:
        """Returns the state of the node and of every model; probes none while the node is draining."""
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
            self._succeeds(model.prepares(self._timeout)), self._succeeds(model.probe(self._timeout))
        )
        return ModelHealth(model.id, model.state, prepares, decodes)

    async def _succeeds(self, probe: Coroutine[object, object, bool]) -> bool:
        try:
            async with asyncio.timeout(self._timeout + _PROBE_GRACE_SECONDS):
                return await probe
        except Exception:  # noqa: BLE001 - a probe that breaks is an answer too
            return False
