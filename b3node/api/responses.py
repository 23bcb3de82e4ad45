"""`POST /v1/infer/responses` and its alias: from the socket to the service and back.

A thin Litestar handler returns an ASGI application, for three reasons: the body is read only after its
declared type is known to be JSON, a client that leaves cancels the work at any time, and a stream's head
waits for the first token while each of its events is one write.
"""

from __future__ import annotations

from typing import Final

from litestar import post
from litestar.enums import ScopeType
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from b3node.api.client import STALL_SECONDS, Client, ClientLeft
from b3node.api.headers import EVENT_STREAM, principal_of, record_of
from b3node.contract.media import check_media_type
from b3node.service.in_flight import InFlight
from b3node.service.node import Node
from b3node.service.respond import Stream, respond

PATHS: Final = ["/v1/infer/responses", "/v1/responses"]

_STREAM_HEAD: Final = [
    EVENT_STREAM,
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
]


class Responses:
    """The endpoint.

    Args:
        node: serves the requests.
        stall_seconds: the longest time that one write waits for a client that does not read.
    """

    def __init__(self, node: Node, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._node = node
        self._stall_seconds = stall_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request. Raises `Refusal` as long as no head is sent."""
        if scope["type"] != ScopeType.HTTP:
            raise TypeError("the endpoint speaks HTTP")
        record = record_of(scope)
        client = Client(scope, receive, send, stall_seconds=self._stall_seconds)
        try:
            with self._node.admit(record, principal_of(scope)) as in_flight:
                check_media_type(_header(scope, b"content-type"), _header(scope, b"content-encoding"))
                async with client:
                    await self._serve(in_flight, client)
        except ClientLeft as left:
            record.disconnect = left.phase
        finally:
            record.bytes_out = client.bytes_sent

    async def _serve(self, in_flight: InFlight, client: Client) -> None:
        # The body is bound to no name here: a stream may be long, and the body large.
        reply = await respond(self._node, in_flight, await self._body(in_flight, client))
        if isinstance(reply, Stream):
            await _send_stream(client, reply)
        else:
            await _send_body(client, reply.body)

    async def _body(self, in_flight: InFlight, client: Client) -> bytes:
        with in_flight.record.timing.phase("read"):
            body = await client.body(self._node.max_request_bytes, in_flight.hold_bytes)
        in_flight.record.bytes_in = len(body)
        return body


def responses_route(node: Node, *, stall_seconds: float = STALL_SECONDS) -> HTTPRouteHandler:
    """Returns Litestar's handler for both paths."""
    endpoint = Responses(node, stall_seconds=stall_seconds)

    @post(PATHS, status_code=200, name="create_response")
    async def create_response() -> ASGIApp:
        return endpoint

    return create_response


async def _send_body(client: Client, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await client.send({"type": "http.response.start", "status": 200, "headers": headers})
    await client.send({"type": "http.response.body", "body": body, "more_body": False})


async def _send_stream(client: Client, stream: Stream) -> None:
    await client.send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEAD})
    await stream.run(client)
    await client.send({"type": "http.response.body", "body": b"", "more_body": False})


def _header(scope: Scope, wanted: bytes) -> str | None:
    """Returns the header's values as one, None where it is absent (RFC 9110, section 5.3)."""
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
    return ", ".join(values) if values else None
