"""One request in flight: whatever it holds is given back when its context ends, however that happens.

Three things can end a request early: its client leaves (the task is cancelled), the node stops (`halt`), or
something fails. The engine must hear of each within a step, so the generation belongs to the flight and not
to the code that reads it: a generator that was never started runs no `finally`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self, TypeVar

from b3node.errors import Refusal
from b3node.service.record import Record
from b3node.workers.served_model import Generation

T = TypeVar("T")


class Holder(Protocol):
    """What a flight gives back to: the node."""

    def leave(self, flight: Flight) -> None:
        """Takes the place back."""
        ...

    def hold_bytes(self, count: int) -> None:
        """Counts body bytes, or gives them back."""
        ...


class Flight:
    """A place among the requests in flight; made by `Node.admit`, entered as a context."""

    def __init__(self, node: Holder, record: Record) -> None:
        self.record = record
        self._node = node
        self._generation: Generation | None = None
        self._bytes = 0
        self._waiting: asyncio.Task[object] | None = None
        self._halted: Refusal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finished()
        self.release_bytes()
        self._node.leave(self)

    def hold_bytes(self, count: int) -> None:
        """Counts bytes of the body that have arrived. Raises `Refusal` `capacity_unavailable`."""
        self._node.hold_bytes(count)
        self._bytes += count

    def release_bytes(self) -> None:
        """The body is no longer held. Idempotent."""
        self._node.hold_bytes(-self._bytes)
        self._bytes = 0

    def started(self, generation: Generation) -> None:
        """From now on the generation is cancelled when the flight ends."""
        self._generation = generation

    def finished(self) -> None:
        """The generation is given up. Idempotent, and harmless after its last word."""
        if self._generation is not None:
            self._generation.cancel()
            self._generation = None

    async def wait(self, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` returns, unless the flight is halted first: then that refusal is raised.

        A cancellation from anywhere else passes through as it came.
        """
        self._raise_if_halted()
        task = self._waiting = asyncio.current_task()
        try:
            return await call()
        except asyncio.CancelledError:
            # As `asyncio.timeout` does: only a cancellation that is nobody else's too becomes an exception.
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
