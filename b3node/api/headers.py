"""Headers that every answer has, and the values of a request that stand in its scope."""

from __future__ import annotations

from typing import Final

from litestar.types import Message, Scope

from b3node.principal import Principal
from b3node.service.record import Record

EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")
"""Marks a head as a stream's."""


def record_of(scope: Scope) -> Record:
    """Returns the record of the scope's request. Raises `TypeError` where there is none."""
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
    """Adds `x-request-id` and `Server-Timing` to every head (contract). Litestar's `before_send` hook.

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
    """Returns whether the client still holds back a body: its next request could be taken for that."""
    return "reading" not in scope["state"] and any(name == b"expect" for name, _ in scope["headers"])
