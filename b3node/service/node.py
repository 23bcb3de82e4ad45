"""A node: the models that it serves, the requests in flight, and whether it takes more of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from b3node.config import EngineOptions
from b3node.errors import Refusal, busy, quoted
from b3node.principal import Principal
from b3node.service import log
from b3node.service.in_flight import InFlight
from b3node.service.record import Record
from b3node.service.timing import Clock
from b3node.workers.served_model import ServedModel

DRAIN_RETRY_SECONDS: Final = 5
"""`Retry-After` while the node stops or is not ready: another node may be found, or this one again."""

RecordSink = Callable[[Record], None]
"""Takes the record of a finished request. Runs in the event loop, so it must not block."""


class NodeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on the requests that a node takes in at once."""

    requests: int = 256
    """POSTs in flight, far above any engine's slots, because engines bound their own queues."""

    bodies: int = 8
    """Request bodies held in memory, in units of the largest one that is allowed."""

    first_token_seconds: float = 280.0
    """Queue and prefill together. Node's fetch gives up 300 s after it asked for a head that waits for the
    first token, so the refusal must come before that."""


class Node:
    """The models of this process, its requests in flight, and its one switch: draining.

    Args:
        node_id: the name in `b3os.node`.
        models: the served models; their order is that of the model list.
        limits: bounds on the requests in flight.
        clock: both clocks.
        sinks: takers of every finished record, in order; the request log unless given.
    """

    def __init__(
        self,
        node_id: str,
        models: Iterable[ServedModel],
        *,
        limits: NodeLimits = NodeLimits(),  # noqa: B008 - frozen
        clock: Clock = Clock(),  # noqa: B008 - frozen
        sinks: tuple[RecordSink, ...] = (log.request,),
    ) -> None:
        self.id = node_id
        self.models: Final = {model.id: model for model in models}
        self.limits: Final = limits
        self.clock: Final = clock
        self.sinks: Final = sinks
        self.max_request_bytes: Final = max(
            (model.max_request_bytes for model in self.models.values()),
            default=EngineOptions().max_request_bytes,
        )
        self._draining = False
        self._in_flight: set[InFlight] = set()
        self._body_bytes = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def draining(self) -> bool:
        """Whether new requests are turned away."""
        return self._draining

    @property
    def in_flight(self) -> int:
        """The number of requests that are being served."""
        return len(self._in_flight)

    def model(self, name: str) -> ServedModel:
        """Returns the served model of that name. Raises `Refusal` `model_not_available`."""
        model = self.models.get(name)
        if model is None:
            raise Refusal(
                "model_not_available",
                f"This node serves no model called {quoted(name)}; GET /v1/models lists those it has.",
                param="model",
            )
        return model

    def admit(self, record: Record, principal: Principal) -> InFlight:
        """Takes a place for one request, to be entered as a context.

        Raises:
            Refusal: `node_unavailable` while draining, `capacity_unavailable` when the node is full.
        """
        if self._draining:
            raise shutting_down()
        if len(self._in_flight) >= self.limits.requests:
            raise busy()
        in_flight = InFlight(self, record, principal)
        self._in_flight.add(in_flight)
        self._empty.clear()
        return in_flight

    def release(self, in_flight: InFlight) -> None:
        """Frees the place of a request. Idempotent."""
        self._in_flight.discard(in_flight)
        if not self._in_flight:
            self._empty.set()

    def hold_bytes(self, count: int) -> None:
        """Counts bytes of request bodies that are held; a negative count gives them back.

        Raises:
            Refusal: `capacity_unavailable` when that would be too many; nothing is counted then.
        """
        if count > 0 and self._body_bytes + count > self.limits.bodies * self.max_request_bytes:
            raise busy()
        self._body_bytes += count

    def finish(self, record: Record) -> None:
        """Hands the record of a request that is over to every sink; one that fails keeps it from no other."""
        for sink in self.sinks:
            try:
                sink(record)
            except Exception as error:  # noqa: BLE001 - a sink that fails must not cost the others, or the answer
                log.bug(record, error)

    def drain(self) -> None:
        """Turns new requests away from now on; those in flight go on. Idempotent."""
        self._draining = True

    async def drained(self) -> None:
        """Returns once nothing is in flight."""
        await self._empty.wait()

    def halt(self) -> None:
        """Ends every request in flight with `node_unavailable`, streams with their error event."""
        for in_flight in tuple(self._in_flight):
            in_flight.halt(shutting_down())


def shutting_down() -> Refusal:
    """Returns the refusal of a node that is about to exit."""
    return Refusal(
        "node_unavailable", "The node is shutting down; try again.", retry_after=DRAIN_RETRY_SECONDS
    )
