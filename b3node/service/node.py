"""One node: what it serves, who is being served, and whether it takes more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from b3node.config import MAX_REQUEST_BYTES
from b3node.errors import Refusal, quoted
from b3node.service.in_flight import Flight
from b3node.service.record import Record
from b3node.service.timing import Clock
from b3node.workers.served_model import ServedModel

DRAIN_RETRY: Final = 5
"""Seconds after which a client may find another node, or this one again, once it stops."""

BUSY_RETRY: Final = 2
"""Seconds after which a slot has probably become free."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a node takes in at once.

    `requests`: POSTs in flight, far above any engine's slots, because engines bound their own queues.
    `bodies`: request bodies held in memory, in units of the largest one that is allowed.
    `first_token_seconds`: queue and prefill together; Node's fetch gives up 300 s after it asked for a head
    that waits for the first token, so the refusal must come before that.
    """

    requests: int = 256
    bodies: int = 8
    first_token_seconds: float = 280.0


class Node:
    """The models of this process, its requests in flight, and its one switch: draining.

    Args:
        node_id: the name in `b3os.node`.
        models: what is served; the order is that of the model list.
        limits: what is taken in at once.
        clock: both clocks.
    """

    def __init__(
        self,
        node_id: str,
        models: Iterable[ServedModel],
        *,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        clock: Clock = Clock(),  # noqa: B008 - frozen
    ) -> None:
        self.id = node_id
        self.models: Final = {model.id: model for model in models}
        self.limits: Final = limits
        self.clock: Final = clock
        self.max_request_bytes: Final = max(
            (model.max_request_bytes for model in self.models.values()), default=MAX_REQUEST_BYTES
        )
        self._draining = False
        self._flights: set[Flight] = set()
        self._body_bytes = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def draining(self) -> bool:
        """Whether new requests are turned away."""
        return self._draining

    @property
    def in_flight(self) -> int:
        """Requests that are being served."""
        return len(self._flights)

    def model(self, name: str) -> ServedModel:
        """The served model of that name. Raises `Refusal` `model_not_available`."""
        model = self.models.get(name)
        if model is None:
            raise Refusal(
                "model_not_available",
                f"This node serves no model called {quoted(name)}; GET /v1/models lists those it has.",
                param="model",
            )
        return model

    def admit(self, record: Record) -> Flight:
        """A place for one request, to be entered as a context and left whatever happens.

        Raises:
            Refusal: `node_unavailable` while draining, `capacity_unavailable` when the node is full.
        """
        if self._draining:
            raise stopping()
        if len(self._flights) >= self.limits.requests:
            raise full()
        flight = Flight(self, record)
        self._flights.add(flight)
        self._empty.clear()
        return flight

    def leave(self, flight: Flight) -> None:
        """Gives a place back. Idempotent."""
        self._flights.discard(flight)
        if not self._flights:
            self._empty.set()

    def hold_bytes(self, count: int) -> None:
        """Counts bytes of request bodies that are held; a negative count gives them back.

        Raises:
            Refusal: `capacity_unavailable` when that would be too many; nothing is counted then.
        """
        if count > 0 and self._body_bytes + count > self.limits.bodies * self.max_request_bytes:
            raise full()
        self._body_bytes += count

    def drain(self) -> None:
        """From now on new requests are turned away; those in flight go on. Idempotent."""
        self._draining = True

    async def drained(self) -> None:
        """Returns once nothing is in flight."""
        await self._empty.wait()

    def halt(self) -> None:
        """Ends every request in flight with `node_unavailable`, streams with their error event."""
        for flight in tuple(self._flights):
            flight.halt(stopping())


def stopping() -> Refusal:
    """The answer of a node that is about to exit."""
    return Refusal("node_unavailable", "The node is shutting down; try again.", retry_after=DRAIN_RETRY)


def full() -> Refusal:
    """The answer of a node that cannot take more at the moment."""
    return Refusal("capacity_unavailable", "The node is busy; try again in a moment.", retry_after=BUSY_RETRY)
