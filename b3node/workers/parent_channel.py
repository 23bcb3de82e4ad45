"""The front's end of its connection to a child: asyncio, one callback a message."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Generic, TypeVar, cast

import msgspec

from b3node.workers.frames import FrameError, FrameReader, frame

M = TypeVar("M")


class ParentChannel(asyncio.Protocol, Generic[M]):
    """Calls `on_message` for each message of type `M`, in order; sets `closed` when the child's end is gone.

    Bytes that are no message close the channel, and the child ends with it.
    """

    def __init__(self, kind: type[M], on_message: Callable[[M], None]) -> None:
        self.closed = asyncio.Event()
        self._on_message = on_message
        self._reader = FrameReader()
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def over(
        cls, sock: socket.socket, kind: type[M], on_message: Callable[[M], None]
    ) -> ParentChannel[M]:
        """Returns a channel over a connected socket, which it owns from now on."""
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: cls(kind, on_message), sock=sock)
        return channel

    def send(self, message: msgspec.Struct) -> int:
        """Sends a message and returns its size in bytes; does nothing once the child is gone (see `closed`).

        Raises `FrameError` if the message is too large.
        """
        data = frame(self._encode(message))
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
        return len(data)

    def close(self) -> None:
        """Closes this end; the child then ends by itself."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Implements `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's do not inherit from it

    def data_received(self, data: bytes) -> None:
        """Implements `asyncio.Protocol`."""
        try:
            messages = [*map(self._decode, self._reader.feed(data))]
        except (FrameError, msgspec.DecodeError):
            self.close()
            return
        for message in messages:
            self._on_message(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """Implements `asyncio.Protocol`."""
        del exc
        self.closed.set()
