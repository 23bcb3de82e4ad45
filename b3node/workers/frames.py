"""Frames between processes: four bytes of length (big-endian), then so many bytes of msgpack.

Frames are bounded, so a broken or hostile peer cannot make the other side allocate without end.
"""

from __future__ import annotations

import struct
from typing import Final

MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a frame's payload. The largest are request bodies (`config.LARGEST_REQUEST_BYTES`)."""
_HEAD: Final = struct.Struct(">I")


class FrameError(Exception):
    """A frame exceeds `MAX_PAYLOAD_BYTES`: the connection cannot be used any more."""


def frame(payload: bytes) -> bytes:
    """Returns the payload with its length in front. Raises `FrameError` if it is too large."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FrameError
    return _HEAD.pack(len(payload)) + payload


class FrameReader:
    """Cuts a byte stream into payloads, in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the payloads that `data` completes, in order.

        Raises `FrameError` on a length over `MAX_PAYLOAD_BYTES`.
        """
        size = len(data) - _HEAD.size
        if not self._buffer and 0 <= size <= MAX_PAYLOAD_BYTES and _HEAD.unpack_from(data)[0] == size:
            return [data[_HEAD.size :]]  # the usual case: exactly one whole frame
        self._buffer += data
        payloads: list[bytes] = []
        at = 0
        while len(self._buffer) - at >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer, at)
            if size > MAX_PAYLOAD_BYTES:
                raise FrameError
            if len(self._buffer) - at < _HEAD.size + size:
                break
            at += _HEAD.size + size
            payloads.append(bytes(self._buffer[at - size : at]))
        del self._buffer[:at]
        return payloads
