"""What stands in the head of every answer, whoever made it."""

from __future__ import annotations

from typing import Final

from litestar.types import Message, Scope

from b3node.principal import Principal
from b3node.service.record import Record

EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")
"""What marks a head as a stream's."""


def record_of(scope: Scope) -> Record:
    """The record of the request that the scope belongs to. Raises `TypeError` where there is none."""
    record = scope["state"].get("record")
    if not isinstance(record, Record):
        raise TypeError("the scope did not come through a RequestMiddleware")
    return record


def principal_of(scope: Scope) -> Principal:
    """Returns the principal of the scope's request. Raises `TypeError` where it was not authenticated."""
    principal = record_of(scope).principal
    if principal is None:
        raise TypeError("the request was not authenticated")
    return principal


async def stamp_headers(message: Message, scope: Scope) -> None:
    """Litestar's `before_send` hook: `x-request-id` and `Server-Timing` on every head (contract).

    Middleware would miss the answers to paths and methods that do not exist.
    """
    if message["type"] != "http.response.start":
        return
    record = record_of(scope)
    record.status = message["status"]
    headers = [*message["headers"], (b"x-request-id", record.request_id.encode())]
    timing = record.timing.header(total=EVENT_STREAM not in headers)
    if timing:
        headers.append((b"server-timing", timing.encode()))
    if _awaits_continue(scope):
        headers.append((b"connection", b"close"))
    message["headers"] = headers


def _awaits_continue(scope: Scope) -> bool:
    """Whether the client holds back a body that nobody asked for: what it sends next could be taken for it."""
    return "reading" not in scope["state"] and any(name == b"expect" for name, _ in scope["headers"])
