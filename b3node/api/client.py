"""The client of one request: reads its body, sends its answer, notices when it leaves or stalls.

Litestar goes on with a handler whose client has left, and uvicorn waits for ever for one that stops reading
(both measured). A `Client` is entered around the work for a request and cancels it the moment the client
leaves, before the head as well as in mid-stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol, Self, runtime_checkable

from litestar.types import HTTPScope, Message, Receive, Send

from b3node.errors import too_large
from b3node.service.record import Disconnect

STALL_SECONDS: Final = 20.0
"""The longest time that one write waits for a client that does not read."""


class ClientLeft(Exception):  # noqa: N818 - an event, not an error
    """The client is gone, so no answer is sent; `phase` says when it went."""

    def __init__(self, phase: Disconnect) -> None:
        super().__init__(phase)
        self.phase: Final = phase


@runtime_checkable
class BodyWriter(Protocol):
    """Sends pieces of a response's body without a task, and so without ASGI's cost for each piece."""

    @property
    def open(self) -> bool:
        """Whether a head is sent whose body may follow in pieces."""
        ...

    @property
    def full(self) -> bool:
        """Whether the client reads too slowly, so that `drain` waits."""
        ...

    def write(self, piece: bytes) -> bool:
        """Sends a piece in one write; returns whether the client keeps up. Does nothing when it is gone."""
        ...

    async def drain(self) -> None:
        """Waits until the client has caught up or is gone."""
        ...


class Client:
    """Takes over the ASGI channels of one request; to be entered as a context by the task that serves it.

    Args:
        scope: the request's scope. Where the server offers it, `state["abort"]` drops the connection and
            `state["body_writer"]` sends pieces of the body without a task.
        receive: the ASGI channel; the client is its only caller.
        send: the ASGI channel.
        stall_seconds: the longest time that one write waits.
    """

    def __init__(
        self, scope: HTTPScope, receive: Receive, send: Send, *, stall_seconds: float = STALL_SECONDS
    ) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._stall_seconds = stall_seconds
        self._task: asyncio.Task[object] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._head_sent = False
        self._complete = False
        self._left = False
        self._bytes_sent = 0
        self._body_writer: BodyWriter | None = None
        self._unsent: list[bytes] = []

    @property
    def bytes_sent(self) -> int:
        """Bytes of the body that were handed to the server."""
        return self._bytes_sent

    async def __aenter__(self) -> Self:
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
        # As `asyncio.timeout` does: only a cancellation that is ours alone becomes an exception.
        cancelled = self._left and kind is asyncio.CancelledError and self._task is not None
        if cancelled and self._task is not None and self._task.uncancel() == 0:
            raise ClientLeft("mid_stream" if self._head_sent else "before_head") from None

    async def body(self, limit: int, hold: Callable[[int], None]) -> bytes:
        """Reads the whole body; from its last byte on the client is watched.

        A `Content-Length` over the limit is refused before anything is read, so that a client that waits for
        `100 Continue` never sends it.

        Args:
            limit: the largest body, in bytes.
            hold: is called with the number of bytes of each piece that arrives; may refuse.

        Raises:
            Refusal: `payload_too_large`, or the refusal of `hold`.
            ClientLeft: before the end of its body.
        """
        declared = _content_length(self._scope)
        if declared is not None and declared > limit:
            raise too_large(declared, limit)
        self._scope["state"]["reading"] = True
        chunks: list[bytes] = []
        size, more = 0, True
        while more:
            message = await self._receive()
            if message["type"] != "http.request":
                raise ClientLeft("body")
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            if size > limit:
                raise too_large(size, limit)
            hold(len(chunk))
            chunks.append(chunk)
        self._watcher = asyncio.create_task(self._watch())
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def send(self, message: Message) -> None:
        """Sends a message.

        Raises:
            ClientLeft: the client has not read for too long; its connection is dropped.
        """
        self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._within_stall_limit(self._send(message))
        if not self._head_sent:
            self._head_sent = True
            writer = self._scope["state"].get("body_writer")
            self._body_writer = writer if isinstance(writer, BodyWriter) and writer.open else None
        if message["type"] == "http.response.body":
            self._bytes_sent += len(message["body"])

    def write(self, frame: bytes) -> bool:
        """Sends a piece of the body in one write; returns False where `drain` has to send it, or to wait."""
        if self._body_writer is None:
            self._unsent.append(frame)
            return False
        self._bytes_sent += len(frame)
        return self._body_writer.write(frame)

    async def drain(self) -> None:
        """Returns once all pieces are sent and the client keeps up. Raises `ClientLeft` as `send` does."""
        if self._body_writer is not None and self._body_writer.full:
            await self._within_stall_limit(self._body_writer.drain())
        for frame in self._unsent:
            await self.send({"type": "http.response.body", "body": frame, "more_body": True})
        self._unsent.clear()

    async def _within_stall_limit(self, sending: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._stall_seconds):
                await sending
        except TimeoutError:
            self._abort()
            raise ClientLeft("stalled") from None

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._task is not None and not self._complete:
            self._left = True
            self._task.cancel()

    def _abort(self) -> None:
        # An orderly close would wait until the client has read what is buffered, and it does not read.
        abort = self._scope["state"].get("abort")
        if callable(abort):
            abort()


def _content_length(scope: HTTPScope) -> int | None:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return None
