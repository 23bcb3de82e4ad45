"""The front's end of the line to a child: asyncio, one callback a message."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar, cast

import msgspec

from b3node.workers.frames import FrameError, FrameReader, frame

M = TypeVar("M")


class Link(asyncio.Protocol, Generic[M]):
    """Calls `hear` for each message of type `M`, in order; `closed` is set when the child's end is gone.

    A child that sends what is no message is of no use any more: the link closes, and the child ends with it.
    """

    def __init__(self, kind: type[M], hear: Callable[[M], None]) -> None:
        self.closed = asyncio.Event()
        self._hear = hear
        self._reader = FrameReader()
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def over(cls, sock: socket.socket, kind: type[M], hear: Callable[[M], None]) -> Link[M]:
        """A link over a connected socket, which it owns from now on."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(kind, hear), sock=sock)
        return link

    def send(self, message: msgspec.Struct) -> int:
        """Sends a message, or does nothing when the child is gone (its end is then reported by `closed`).

        Returns the message's size in bytes. Raises `FrameError` when the message is too large.
        """
        data = frame(self._encode(message))
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
        return len(data)

    def close(self) -> None:
        """Closes this end: the child then ends by itself."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's Protocol."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it

    def data_received(self, data: bytes) -> None:
        """Part of asyncio's Protocol."""
        try:
            messages = [*map(self._decode, self._reader.feed(data))]
        except (FrameError, msgspec.DecodeError):
            self.close()
            return
        for message in messages:
            self._hear(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's Protocol."""
        del exc
        self.closed.set()
