"""The front's side of one submitted sequence: a mailbox that the engine's channel fills."""

from __future__ import annotations

import asyncio
from collections import abc
from collections.abc import Callable

from b3node.engine.messages import Finished
from b3node.errors import Refusal
from b3node.workers.served_model import Output


class Mailbox:
    """Implements `served_model.Generation`; bounded by the tokens that one sequence can generate."""

    def __init__(self, request: int, cancel: Callable[[int], None]) -> None:
        self._request = request
        self._cancel = cancel
        self._outputs: list[Output] = []
        self._failure: Refusal | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._feed: Callable[[abc.Sequence[Output]], bool] | None = None
        self._over = False

    async def take(self) -> tuple[Output, ...]:
        """Returns the outputs that arrived since the last call, at least one, in order.

        Raises `Refusal` if the engine is gone, once its outputs are taken.
        """
        while not self._outputs:
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._drain()

    async def listen(self, feed: Callable[[abc.Sequence[Output]], bool]) -> None:
        """Calls `feed` with the outputs so far, then with each one; see `served_model.Generation`."""
        if self._outputs and not feed(self._drain()):
            return
        if self._failure is not None:
            raise self._failure
        self._waiter, self._feed = asyncio.get_running_loop().create_future(), feed
        try:
            await self._waiter
        finally:
            self._feed = None

    def cancel(self) -> None:
        """Cancels the sequence. Idempotent, and without effect once it is over."""
        if not self._over:
            self._over = True
            self._cancel(self._request)

    def put(self, output: Output) -> None:
        """Delivers an output. An error of a listener is raised from its `listen`."""
        if isinstance(output, Finished):
            self._over = True
        if self._feed is None:
            self._outputs.append(output)
            self._wake()
            return
        try:
            if self._feed((output,)):
                return
        except Exception as error:  # noqa: BLE001 - one listener's error must not reach the others
            self._end_listening(error)
        else:
            self._end_listening(None)

    def fail(self, refusal: Refusal) -> None:
        """Ends the mailbox: no further output comes, and readers get `refusal`."""
        self._failure = refusal
        self._over = True
        self._wake()

    def _drain(self) -> tuple[Output, ...]:
        outputs = tuple(self._outputs)
        self._outputs.clear()
        return outputs

    def _end_listening(self, error: Exception | None) -> None:
        self._feed = None
        if error is None:
            self._wake()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
