"""A child's end of its connection to the front: blocking, on the socket that the child was started with."""

from __future__ import annotations

import select
import socket
from collections import abc, deque
from contextlib import suppress
from typing import Final, Generic, TypeVar

import msgspec

from b3node.workers.frames import FrameReader, frame

M = TypeVar("M")
_READ_BYTES: Final = 1 << 18
"""Bytes taken from the socket at a time."""


class ChildChannel(Generic[M]):
    """Receives messages of type `M` and sends any Struct.

    A front that is gone raises nothing: `receive` and `next` return None.

    Args:
        sock: a connected stream socket; used blocking, owned by the channel.
        kind: the type (a tagged union of Structs) of the messages that arrive.
    """

    def __init__(self, sock: socket.socket, kind: type[M]) -> None:
        self._sock = sock
        self._sock.setblocking(True)
        self._reader = FrameReader()
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._ready: deque[M] = deque()

    def receive(self, *, wait: bool) -> abc.Sequence[M] | None:
        """Returns the messages that have arrived, or None once the front is gone.

        With `wait`, blocks until there is one.
        """
        while self._readable(wait=wait and not self._ready):
            data = self._read()
            if not data:
                return None
            self._ready.extend(self._decode(payload) for payload in self._reader.feed(data))
        messages = tuple(self._ready)
        self._ready.clear()
        return messages

    def next(self) -> M | None:
        """Returns the next message, blocking until there is one, or None once the front is gone."""
        while not self._ready:
            messages = self.receive(wait=True)
            if messages is None:
                return None
            self._ready.extend(messages)
        return self._ready.popleft()

    def send(self, message: msgspec.Struct) -> None:
        """Sends a message; blocks while the front does not read."""
        with suppress(ConnectionError):
            self._sock.sendall(frame(self._encode(message)))

    def _read(self) -> bytes:
        try:
            return self._sock.recv(_READ_BYTES)
        except ConnectionError:
            return b""

    def _readable(self, *, wait: bool) -> bool:
        return bool(select.select([self._sock], [], [], None if wait else 0)[0])
