"""The front's side of one submitted sequence: a mailbox that the engine's link fills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from b3node.engine.messages import Finished
from b3node.errors import Refusal
from b3node.workers.served_model import Output


class Mailbox:
    """Implements `served.Generation`. What waits in it is bounded by what one sequence can generate."""

    def __init__(self, request: int, cancel: Callable[[int], None]) -> None:
        self._request = request
        self._cancel = cancel
        self._outputs: list[Output] = []
        self._failure: Refusal | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._hear: Callable[[Sequence[Output]], bool] | None = None
        self._over = False

    async def take(self) -> tuple[Output, ...]:
        """Everything that has arrived since the last call, at least one, in the order of arrival.

        Raises `Refusal` when the engine is gone, once what it had sent is taken.
        """
        while not self._outputs:
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._taken()

    async def listen(self, hear: Callable[[Sequence[Output]], bool]) -> None:
        """Calls `hear` with what has arrived and with each output as it arrives; see `served.Generation`."""
        if self._outputs and not hear(self._taken()):
            return
        if self._failure is not None:
            raise self._failure
        self._waiter, self._hear = asyncio.get_running_loop().create_future(), hear
        try:
            await self._waiter
        finally:
            self._hear = None

    def cancel(self) -> None:
        """Gives the sequence up. Idempotent, and without effect once it is over."""
        if not self._over:
            self._over = True
            self._cancel(self._request)

    def put(self, output: Output) -> None:
        """Delivers an output. What a listener raises is raised where it listens."""
        if isinstance(output, Finished):
            self._over = True
        if self._hear is None:
            self._outputs.append(output)
            self._wake()
            return
        try:
            if self._hear((output,)):
                return
        except Exception as error:  # noqa: BLE001 - one listener's trouble must not reach the others'
            self._end_listening(error)
        else:
            self._end_listening(None)

    def fail(self, refusal: Refusal) -> None:
        """Tells that nothing more will come."""
        self._failure = refusal
        self._over = True
        self._wake()

    def _taken(self) -> tuple[Output, ...]:
        outputs = tuple(self._outputs)
        self._outputs.clear()
        return outputs

    def _end_listening(self, error: Exception | None) -> None:
        self._hear = None
        if error is None:
            self._wake()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
