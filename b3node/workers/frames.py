"""Frames between processes: four bytes of length (big-endian), then that many bytes of msgpack.

A frame is bounded, so a broken or hostile peer cannot make the other side allocate without end.
"""

from __future__ import annotations

import struct
from typing import Final

LARGEST: Final = 64 * 1024 * 1024
"""Bytes of a frame's payload. The largest thing that travels is a request body of 10 MiB, decoded."""
_HEAD: Final = struct.Struct(">I")


class FrameError(Exception):
    """The peer sent, or was to be sent, a frame over `LARGEST` bytes: the line is of no use any more."""


def frame(payload: bytes) -> bytes:
    """The payload behind its length. Raises `FrameError` when it is too large."""
    if len(payload) > LARGEST:
        raise FrameError
    return _HEAD.pack(len(payload)) + payload


class FrameReader:
    """Cuts a byte stream into payloads, however it arrives."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that `data` completes, in order. Raises `FrameError` on a length over `LARGEST`."""
        size = len(data) - _HEAD.size
        if not self._buffer and 0 <= size <= LARGEST and _HEAD.unpack_from(data)[0] == size:
            return [data[_HEAD.size :]]  # one whole frame is what mostly comes
        self._buffer += data
        payloads: list[bytes] = []
        at = 0
        while len(self._buffer) - at >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer, at)
            if size > LARGEST:
                raise FrameError
            if len(self._buffer) - at < _HEAD.size + size:
                break
            at += _HEAD.size + size
            payloads.append(bytes(self._buffer[at - size : at]))
        del self._buffer[:at]
        return payloads

    def finish(self) -> bool:
        """Whether the stream ended between frames rather than inside one."""
        return not self._buffer
