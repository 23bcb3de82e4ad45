"""One request in flight. All that it holds is given back when its context ends, however that happens.

Three things can end a request early: its client leaves (the task is cancelled), the node stops (`halt`), or
something fails. The engine must know of each within a step, so the generation belongs to the request in
flight and not to the code that reads it: a generator that was never started runs no `finally`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from b3node.errors import Refusal
from b3node.principal import Principal
from b3node.service.record import Record
from b3node.workers.served_model import Generation

T = TypeVar("T")


class Capacity(Protocol):
    """The places and bytes that requests take up: the node's."""

    def release(self, in_flight: InFlight) -> None:
        """Frees the place of a request. Idempotent."""
        ...

    def hold_bytes(self, count: int) -> None:
        """Counts body bytes; a negative count gives them back. Raises `Refusal` `capacity_unavailable`."""
        ...


class InFlight:
    """A place among the requests in flight; made by `Node.admit`, entered as a context."""

    def __init__(self, capacity: Capacity, record: Record, principal: Principal) -> None:
        self.record = record
        self.principal = principal
        self._capacity = capacity
        self._generation: Generation | None = None
        self._bytes = 0
        self._waiting: asyncio.Task[object] | None = None
        self._halted: Refusal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._generation is not None:
            self._generation.cancel()  # harmless after its end
            self._generation = None
        self.release_bytes()
        self._capacity.release(self)

    def hold_bytes(self, count: int) -> None:
        """Counts bytes of the body that have arrived. Raises `Refusal` `capacity_unavailable`."""
        self._capacity.hold_bytes(count)
        self._bytes += count

    def release_bytes(self) -> None:
        """Gives the body's bytes back. Idempotent."""
        self._capacity.hold_bytes(-self._bytes)
        self._bytes = 0

    def attach(self, generation: Generation) -> None:
        """Takes over the generation, which is cancelled when the context ends."""
        self._generation = generation

    async def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns the result of `call`, unless the request is halted first: then raises that refusal.

        A cancellation from anywhere else passes through as it came.
        """
        self._raise_if_halted()
        task = self._waiting = asyncio.current_task()
        try:
            return await call()
        except asyncio.CancelledError:
            # As `asyncio.timeout` does: only a cancellation that is ours alone becomes an exception.
            if task is not None and self._halted is not None and task.uncancel() == 0:
                raise self._halted from None
            raise
        finally:
            self._waiting = None

    def halt(self, refusal: Refusal) -> None:
        """Makes the current or the next `wait` raise the refusal.

        A write to the client is not interrupted, so that no frame is lost in the middle.
        """
        if self._halted is None:
            self._halted = refusal
            if self._waiting is not None:
                self._waiting.cancel()

    def _raise_if_halted(self) -> None:
        if self._halted is not None:
            raise self._halted
