"""HTTP/1.1 with bounds: uvicorn's httptools protocol, which has none.

Measured of uvicorn and httptools: no time-out for a head or a body, no limit on a head's size, an answer to
requests with no Host or several, an upgrade request whose body becomes the next request. This class counts
and times the bytes of a request before an application sees it, and refuses with the contract's error body.

One connection reads in three phases: `IDLE` between requests, `HEAD` from a request's first byte until its
headers are complete, `BODY` until its body is. Each has one deadline, held by one timer.
"""

from __future__ import annotations

import asyncio
import enum
import ipaddress
import re
from collections import deque
from http import HTTPStatus
from typing import Any, ClassVar, Final, NoReturn

import msgspec
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from b3node.contract.encode import error_body
from b3node.errors import Refusal, busy
from b3node.ids import new_request_id
from b3node.service import log

_UPGRADE: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on one connection, and on all of them together."""

    connections: int = 512

    connections_per_peer: int = 64
    """For peers on the network: on loopback every client has the same address."""

    request_line_bytes: int = 8_192

    head_bytes: int = 32_768
    """All headers together."""

    headers: int = 100
    head_seconds: float = 10.0
    body_seconds: float = 30.0

    body_bytes_per_second: int = 262_144
    """The slowest upload: a body has one second beyond `body_seconds` for so many bytes."""

    linger_seconds: float = 2.0
    """The time for which the rest of a body is taken, and thrown away, once its answer is out: a close in the
    middle of an upload would reset the connection before the client has read the answer."""

    linger_bytes: int = 16_777_216
    """The most bytes that are thrown away so."""

    chunk_slack_bytes: int = 16_384
    """Chunk framing that a body may have beyond eight for each byte of its own."""


class _ReadPhase(enum.Enum):
    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()


class HttpProtocol(HttpToolsProtocol):
    """One connection. Subclass it to change `limits`."""

    limits: ClassVar[ConnectionLimits] = ConnectionLimits()

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._phase = _ReadPhase.HEAD
        self._moved = False
        self._since = self.loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._header_count = 0
        self._raw_bytes = 0
        self._body_bytes = 0
        self._lingering = False
        self._cycles: deque[RequestResponseCycle] = deque()  # of requests in flight, the oldest first
        self._refusal: Refusal | None = None

    # -- the connection ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Accepts a connection, or refuses it where there are too many."""
        super().connection_made(transport)
        if self._is_over_limit():
            self._refuse(busy())
        else:
            self._set_deadline(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection; every request in flight is notified (uvicorn notifies the newest only)."""
        self._clear_deadline()
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def _is_over_limit(self) -> bool:
        if len(self.connections) > self.limits.connections:
            return True
        peer = _address(self)
        if peer is None or ipaddress.ip_address(peer).is_loopback:
            return False
        return sum(_address(other) == peer for other in self.connections) > self.limits.connections_per_peer

    # -- incoming bytes ---------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Feeds the parser, then checks the bytes so far against the limits of the phase they ended in."""
        self._moved = False
        if self._phase is _ReadPhase.IDLE:
            self._move(_ReadPhase.HEAD)
        if self._phase is _ReadPhase.HEAD:
            data = _without_upgrade(data)
        super().data_received(data)
        if self.transport.is_closing():
            self._clear_deadline()
        elif self._moved:
            self._begin_phase()
        else:
            self._raw_bytes += len(data)
            self._check_raw()

    def on_message_begin(self) -> None:
        """Begins a request."""
        super().on_message_begin()
        self._move(_ReadPhase.HEAD)
        self._head_bytes = self._header_count = self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """Takes more of the request line."""
        super().on_url(url)
        if len(self.url) > self.limits.request_line_bytes:
            self._reject(f"The request line is longer than {self.limits.request_line_bytes} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes one more header. A trailer counts as well, but goes no further."""
        self._head_bytes += len(name) + len(value) + 4
        self._header_count += 1
        if self._head_bytes > self.limits.head_bytes or self._header_count > self.limits.headers:
            self._reject(self._too_long_head)
        if self._phase is _ReadPhase.HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Hands the request to the application, with the ways to drop the connection and to send pieces."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() != "1.0"):
            self._reject("A request has exactly one Host header.")
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):  # the parser objects too, but only once the application runs
            self._reject("The only transfer encoding is chunked.")
        if self.parser.should_upgrade():
            self._reject("Protocol upgrades and tunnels are not offered.")
        self._move(_ReadPhase.BODY)
        self.scope["state"]["abort"] = self.transport.abort
        super().on_headers_complete()
        self.scope["state"]["body_writer"] = _ChunkedBodyWriter(self.cycle)
        self._cycles.append(self.cycle)

    def on_body(self, body: bytes) -> None:
        """Takes more of the body, without its framing."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends a request that has arrived whole."""
        self._move(_ReadPhase.IDLE)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Ends an answer; the rest of its request is awaited for a while, and thrown away."""
        super().on_response_complete()
        self._cycles.popleft()
        unread = self._phase is _ReadPhase.BODY and not self._cycles
        if unread and not self.transport.is_closing():
            self._lingering = True
            self._raw_bytes = 0
            self._set_deadline(self.limits.linger_seconds)

    # -- phases and their limits -------------------------------------------------------------------------

    def _move(self, phase: _ReadPhase) -> None:
        self._phase = phase
        self._moved = True
        self._lingering = False

    def _begin_phase(self) -> None:
        """Starts the deadline of the phase that the last bytes ended in."""
        self._raw_bytes = 0
        self._since = self.loop.time()
        match self._phase:
            case _ReadPhase.IDLE:
                self._clear_deadline()  # uvicorn's own keep-alive timer takes over
            case _ReadPhase.HEAD:
                self._set_deadline(self.limits.head_seconds)
            case _ReadPhase.BODY:
                self._set_deadline(self.limits.body_seconds)

    def _check_raw(self) -> None:
        """Bounds the bytes that the parser takes without a callback: unfinished headers, chunk extensions."""
        limits = self.limits
        if self._phase is _ReadPhase.HEAD and self._raw_bytes > limits.request_line_bytes + limits.head_bytes:
            self._refuse(Refusal("invalid_request", self._too_long_head))
        elif (self._lingering and self._raw_bytes > limits.linger_bytes) or (
            self._phase is _ReadPhase.BODY
            and self._raw_bytes > 8 * self._body_bytes + limits.chunk_slack_bytes
        ):
            self.transport.abort()

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._timer = self.loop.call_later(seconds, self._expire)

    def _clear_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        left = self._time_left()
        if left > 0:
            self._set_deadline(left)
        else:
            self.transport.abort()

    def _time_left(self) -> float:
        """Returns the seconds until the connection is dropped; 0 is now."""
        if self._lingering:
            return 0.0
        if self._phase is _ReadPhase.HEAD:
            # Stray bytes after a request whose answer is under way do no harm.
            return self.limits.head_seconds if self._cycles else 0.0
        allowed = self.limits.body_seconds + self._body_bytes / self.limits.body_bytes_per_second
        return max(0.0, self._since + allowed - self.loop.time())

    # -- refusals ----------------------------------------------------------------------------------------

    @property
    def _too_long_head(self) -> str:
        limits = self.limits
        return f"The head of the request has more than {limits.headers} headers or {limits.head_bytes} bytes."

    def _reject(self, message: str) -> NoReturn:
        """Stops the parser from inside one of its callbacks; uvicorn then calls `send_400_response`."""
        self._refusal = Refusal("invalid_request", message)
        raise self._refusal

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - ours are sent instead
        """Answers bytes that are not a request. Called by uvicorn."""
        self._refuse(
            self._refusal or Refusal("invalid_request", "This is not a well-formed HTTP/1.1 request.")
        )

    def _refuse(self, refusal: Refusal) -> None:
        """Answers and closes the connection; only drops it while another answer is under way."""
        self._clear_deadline()
        if self._cycles:
            self.transport.abort()
            return
        request_id = new_request_id()
        log.event("refused_before_routing", request_id=request_id, code=refusal.code, reason=refusal.message)
        self.transport.write(_answer(refusal, request_id, self.server_state.default_headers))
        self.transport.close()


class _ChunkedBodyWriter:
    """Implements `client.BodyWriter` on a response of uvicorn's, as its `send` does for a piece of the body.

    The way through ASGI, Litestar and a time-out costs a piece more than everything else that a token needs.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._flow = cycle.flow
        self._write = cycle.transport.write

    @property
    def open(self) -> bool:
        cycle = self._cycle
        return bool(cycle.response_started and not cycle.response_complete and cycle.chunked_encoding)

    @property
    def full(self) -> bool:
        return self._flow.write_paused and not self._cycle.disconnected

    def write(self, piece: bytes) -> bool:
        if not self._cycle.disconnected:
            self._write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return not self._flow.write_paused

    async def drain(self) -> None:
        await self._flow.drain()


def _address(connection: object) -> str | None:
    client = getattr(connection, "client", None)
    return client[0] if client else None


def _without_upgrade(data: bytes) -> bytes:
    """Returns the bytes with `Upgrade` headers renamed in the first head.

    A server may ignore an offer to upgrade (RFC 9110, section 7.8), and clients make one by default, Java's
    for HTTP/2 with a body. The parser would stop at the head and take that body for the next request. An
    offer that is cut in two by the network is missed here, and refused when its head is complete.
    """
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"\r\nx-upgrade:", head) + end + rest if _UPGRADE.search(head) else data


def _answer(refusal: Refusal, request_id: str, headers: list[tuple[bytes, bytes]]) -> bytes:
    body = error_body(refusal)
    lines = [
        f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}".encode(),
        *(name + b": " + value for name, value in headers),
        b"content-type: application/json",
        b"content-length: " + str(len(body)).encode(),
        b"x-request-id: " + request_id.encode(),
        b"connection: close",
    ]
    if refusal.retry_after is not None:
        lines.append(b"retry-after: " + str(refusal.retry_after).encode())
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
