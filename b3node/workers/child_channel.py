"""A child's end of the line to the front: blocking, on the socket that it was born with."""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Sequence as Many
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from b3node.workers.frames import FrameReader, frame

M = TypeVar("M")
_READ = 1 << 18


class Line(Generic[M]):
    """Receives messages of type `M` and sends any Struct.

    A front that is gone is never an error here: `receive` and `next` say so.

    Args:
        sock: a connected stream socket; used blocking, owned by the line.
        kind: the type (a tagged union of Structs) that arrives.
    """

    def __init__(self, sock: socket.socket, kind: type[M]) -> None:
        self._sock = sock
        self._sock.setblocking(True)
        self._reader = FrameReader()
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._ready: deque[M] = deque()

    def receive(self, *, wait: bool) -> Many[M] | None:
        """Messages that have come; with `wait`, blocks until there is one. None when the front is gone."""
        while self._readable(wait=wait and not self._ready):
            data = self._read()
            if not data:
                return None
            self._ready.extend(self._decode(payload) for payload in self._reader.feed(data))
        messages = tuple(self._ready)
        self._ready.clear()
        return messages

    def next(self) -> M | None:
        """The next message, waited for. None when the front is gone."""
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
            return self._sock.recv(_READ)
        except ConnectionError:
            return b""

    def _readable(self, *, wait: bool) -> bool:
        return bool(select.select([self._sock], [], [], None if wait else 0)[0])
