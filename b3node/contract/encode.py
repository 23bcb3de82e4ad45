"""Encodes values for clients; no other module writes their JSON."""

from __future__ import annotations

from typing import Final, get_args

import msgspec

from b3node.contract.events import Event
from b3node.contract.response import ErrorBody, ErrorObject, Response
from b3node.errors import Refusal

_encode: Final = msgspec.json.Encoder().encode

_HEADS: Final[dict[type, bytes]] = {
    kind: f"event: {kind.__struct_config__.tag}\ndata: ".encode() for kind in get_args(Event)
}
"""First bytes of a frame, up to the event's JSON, by the event's type."""

_LINE_BREAKS: Final = tuple((c.encode(), f"\\u{ord(c):04x}".encode()) for c in "\x85\u2028\u2029")
"""Characters that JSON need not escape and Python's `str.splitlines` breaks at, with their escapes. Readers
that split decoded text into lines would lose half of an event."""


def sse_frame(event: Event) -> bytes:
    """Returns one server-sent event for one write: its type, its JSON on one line, an empty line, with LF."""
    data = _encode(event)
    return _HEADS[type(event)] + (data if data.isascii() else _one_line(data)) + b"\n\n"


def response_body(response: Response) -> bytes:
    """Returns the JSON of an answer without streaming."""
    return _encode(response)


def error_object(refusal: Refusal) -> ErrorObject:
    """Returns the part of a refusal that clients see."""
    return ErrorObject(refusal.message, refusal.type, refusal.param, refusal.code)


def error_body(refusal: Refusal) -> bytes:
    """Returns the JSON of a refusal; status and headers are the caller's."""
    return _encode(ErrorBody(error_object(refusal)))


def _one_line(data: bytes) -> bytes:
    for character, escape in _LINE_BREAKS:
        data = data.replace(character, escape)
    return data
