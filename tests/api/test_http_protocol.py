from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from b3node.api.http_protocol import ConnectionLimits, HttpProtocol
from tests.api.serving import Line, Running, ask, get, post, serving
from tests.service.fakes import FakeModel, Gate, finished, started, token

LIMITS = ConnectionLimits(
    connections=24, head_seconds=0.3, body_seconds=0.3, linger_seconds=0.3, linger_bytes=4_000_000
)
BODY_LIMIT = 100_000
ID = re.compile("req_[0-9a-hjkmnp-tv-z]{26}")


@pytest.fixture(scope="module")
def node() -> Iterator[Running]:
    with serving(FakeModel(max_request_bytes=BODY_LIMIT), wire=LIMITS) as running:
        yield running


def asked(node: Running) -> int:
    model = next(iter(node.node.models.values()))
    assert isinstance(model, FakeModel)
    return len(model.requests)


GOOD = post({})
TAIL = GOOD.partition(b"\r\n\r\n")[2]
JSON_TYPE = b"Content-Type: application/json\r\n"

MALFORMED = {
    "length and chunked": b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
    "space before colon": b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "xchunked": b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "bare LF": b"GET /healthz HTTP/1.1\nHost: a\n\n",
    "folded header": b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "negative length": b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
    "a byte of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a tunnel": b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
    "control character": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "long request line": b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "megabyte request line": b"GET /" + b"a" * 1_000_000,
    "large header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
    "endless header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 3_000_000,
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 101 + b"\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_requests_are_refused_and_the_connection_closed(node: Running, data: bytes) -> None:
    """What another hop could read differently, or is too much, gets the contract's error body and a close."""
    before = asked(node)
    with Line(node) as line:
        with suppress(OSError):  # it may close while it is still being told
            line.send(data)
            line.send(GOOD)
        try:
            answer = line.answer()
        except OSError:
            answer = None

        assert line.is_closed()
    if answer is not None:
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert ID.fullmatch(answer.headers["x-request-id"])
        assert answer.headers["connection"] == "close"
    assert asked(node) == before


@pytest.mark.parametrize("name", ["two hosts", "length and chunked", "large header"])
def test_the_reason_reaches_a_client_that_reads(node: Running, name: str) -> None:
    """A refusal in front of the application is an answer like any other, and it is in the log."""
    answer = ask(node, MALFORMED[name])

    assert answer.status == 400
    line = node.logged(request_id=answer.headers["x-request-id"])

    assert line["event"] == "refused_before_routing"
    assert line["reason"] == answer.json["error"]["message"]


def test_a_second_request_behind_a_bad_one_is_not_run(node: Running) -> None:
    """After bytes that are no request, nothing on that connection is one."""
    before = asked(node)
    with Line(node) as line:
        line.send(MALFORMED["length and chunked"] + GOOD)
        answer = line.answer()

        assert answer.status == 400
        assert line.is_closed()
    assert asked(node) == before


def test_requests_on_one_connection_are_answered_in_order(node: Running) -> None:
    """Keep-alive and pipelining work: three requests in one write get three answers."""
    with Line(node) as line:
        line.send(GOOD + get("/healthz") + GOOD)

        assert [line.answer().status for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize(
    "data", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "]
)
def test_a_head_has_a_deadline(node: Running, data: bytes) -> None:
    """A connection that does not finish its first head is closed, however little or much it has said."""
    with Line(node) as line:
        line.send(data)

        assert line.is_closed()


def test_dripping_does_not_extend_a_deadline(node: Running) -> None:
    """One byte now and then is no progress: the head's time counts from its beginning."""
    with Line(node) as line, pytest.raises(OSError, match=r".*"):  # noqa: PT012 - any of the writes
        for byte in get("/healthz", *(f"X-{n}: y" for n in range(20))):
            line.send(bytes([byte]))
            time.sleep(0.02)


def test_slow_clients_do_not_disturb_others(node: Running) -> None:
    """While a dozen connections hold their heads back, a normal request is served at once."""
    slow = [Line(node) for _ in range(12)]
    for line in slow:
        line.send(b"GET /healthz HTTP/1.1\r\n")

    assert ask(node, GOOD).status == 200
    for line in slow:
        assert line.is_closed()
        line.__exit__()


def test_a_second_head_has_a_deadline_too(node: Running) -> None:
    """After an answer, stray bytes that never become a request close the connection."""
    with Line(node) as line:
        assert line.ask(get("/healthz")).status == 200
        line.send(b"\r\n")

        assert line.is_closed()


def test_a_body_has_a_deadline(node: Running) -> None:
    """A body that does not come is given up, and recorded as a client that left in its body."""
    with Line(node) as line:
        line.send(post(b"{", length=1_000))

        assert line.is_closed()
    assert node.logged(disconnect="body")["event"] == "request"


def test_a_body_that_makes_progress_may_take_longer() -> None:
    """Every so many bytes buy a second more."""
    patient = ConnectionLimits(body_seconds=0.2, body_bytes_per_second=100)
    with serving(FakeModel(), wire=patient) as node, Line(node) as line:
        data = post({"input": "x" * 400})
        for start in range(0, len(data), 100):
            line.send(data[start : start + 100])
            time.sleep(0.1)

        assert line.answer().status == 200


def test_stray_bytes_behind_a_request_do_not_end_its_stream() -> None:
    """Some clients send a line break behind their body; a long answer must survive the head deadline it
    starts.
    """
    gate = Gate()
    model = FakeModel([started(), token("a"), gate, finished("stop", 1)])
    with serving(model, wire=ConnectionLimits(head_seconds=0.1)) as node, Line(node) as line:
        line.send(post({"stream": True}))
        line.head()
        line.send(b"\r\n")
        time.sleep(0.3)
        gate.open()

        assert b"response.completed" in b"".join(iter(line.chunk, b""))


def test_garbage_in_the_middle_of_an_answer_drops_the_connection() -> None:
    """Bytes that are no request cannot be answered inside another answer: the client is gone, the model is
    freed.
    """
    model = FakeModel([started(), token("a"), Gate()])
    with serving(model) as node, Line(node) as line:
        line.send(post({"stream": True}))
        line.head()
        line.send(b"\x00garbage\r\n\r\n")

        assert line.is_closed()
        node.idle()
    assert model.generations[0].cancelled.is_set()


def test_a_declared_size_over_the_limit_is_refused_unread(node: Running) -> None:
    """With `Expect` the client is answered instead of being told to go on, and the connection ends there."""
    with Line(node) as line:
        line.send(post(b"", "Content-Type: application/json", "Expect: 100-continue", length=10**10))
        answer = line.answer()

        assert (answer.status, answer.code) == (413, "payload_too_large")
        assert str(10**10) in answer.json["error"]["message"]
        assert str(BODY_LIMIT) in answer.json["error"]["message"]
        assert answer.headers["connection"] == "close"
        assert line.is_closed()


def test_an_expected_body_is_asked_for(node: Running) -> None:
    """With `Expect` and a size within the limit the client is told to go on."""
    head, _, body = post({}, "Content-Type: application/json", "Expect: 100-continue").partition(b"\r\n\r\n")
    with Line(node) as line:
        assert line.ask(head + b"\r\n\r\n").status == 100
        assert line.ask(body).status == 200


@pytest.mark.parametrize("path", ["/nope", "/healthz"])
def test_no_answer_leaves_an_unsent_body_in_doubt(node: Running, path: str) -> None:
    """Whoever answers without reading an expected body closes, so the body cannot be taken for a request."""
    with Line(node) as line:
        answer = line.ask(post(b"", "Expect: 100-continue", path=path, length=10))

        assert answer.status in (404, 405)
        assert answer.headers["connection"] == "close"
        assert line.is_closed()


def chunked(*chunks: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    head = (
        b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n"
        + JSON_TYPE
        + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    body = b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    return head + body + b"0\r\n" + trailers + b"\r\n"


def test_a_chunked_body_is_counted(node: Running) -> None:
    """Without a declared size the bytes are counted as they come: one too many is refused."""
    fits = TAIL + b" " * (BODY_LIMIT - len(TAIL))

    assert ask(node, chunked(*(fits[n : n + 999] for n in range(0, len(fits), 999)))).status == 200
    assert ask(node, chunked(fits, b" ")).code == "payload_too_large"


def test_chunk_extensions_cannot_be_endless(node: Running) -> None:
    """Framing that dwarfs what it frames closes the connection."""
    with Line(node) as line:
        with suppress(OSError):
            line.send(chunked(b"{", extension=b";x=" + b"a" * 3_000_000))

        assert line.is_closed()


def test_trailers_are_not_headers(node: Running) -> None:
    """What stands behind a chunked body cannot change how the request is judged."""
    trailers = b"Origin: https://evil.example\r\nHost: evil.example\r\nContent-Encoding: gzip\r\n"

    assert ask(node, chunked(TAIL, trailers=trailers)).status == 200


def test_endless_trailers_close_the_connection(node: Running) -> None:
    """Trailers count against the same limits as headers."""
    with Line(node) as line:
        with suppress(OSError):
            line.send(chunked(TAIL, trailers=b"X: y\r\n" * 200))

        assert line.is_closed()


def test_a_refusal_in_the_middle_of_an_upload_is_read(node: Running) -> None:
    """A body that is too large is taken to its end and thrown away, so the client sees why; the line stays
    usable.
    """
    with Line(node) as line:
        answer = line.ask(post(b"x" * 3_000_000))

        assert answer.code == "payload_too_large"
        assert line.ask(GOOD).status == 200


@pytest.mark.parametrize("size", [2_000, 30_000_000])
def test_an_upload_that_does_not_end_is_cut(node: Running, size: int) -> None:
    """After the answer, only so much time and so many bytes are spent on the rest of a body."""
    with Line(node) as line:
        try:
            line.send(post(b"x" * size, length=10**9))
            answer: Any = line.answer()
        except OSError:
            answer = None

        assert line.is_closed()
    assert answer is None or answer.code == "payload_too_large"


@pytest.mark.parametrize("header", ["Upgrade: h2c", "upgrade : h2c", "UPGRADE:websocket"])
def test_an_offer_to_upgrade_is_ignored(node: Running, header: str) -> None:
    """Java's client offers HTTP/2 by default; its request is served as it is, body and all."""
    data = post({}, "Connection: Upgrade, HTTP2-Settings", header, "Content-Type: application/json")

    answer = ask(node, data)

    assert answer.status == (400 if " :" in header else 200)


def test_an_upgrade_that_is_cut_in_two_is_refused(node: Running) -> None:
    """An offer that cannot be ignored in time is refused: its body is never taken for a request."""
    before = asked(node)
    data = post(GOOD, "Connection: Upgrade", "Upgrade: h2c", "Content-Type: application/json")
    cut = data.index(b"pgrade: h2c")
    with Line(node) as line:
        line.send(data[:cut])
        time.sleep(0.05)
        answer = line.ask(data[cut:])

        assert answer.status == 400
        assert line.is_closed()
    assert asked(node) == before


def test_only_so_many_connections_are_taken(node: Running) -> None:
    """One connection too many hears why, those before it go on."""
    lines = [Line(node) for _ in range(LIMITS.connections)]
    statuses = [line.ask(get("/healthz")).status for line in lines]
    with Line(node) as late:
        answer = late.answer()

        assert late.is_closed()
    assert statuses == [200] * LIMITS.connections
    assert (answer.status, answer.code) == (503, "capacity_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    for line in lines:
        assert line.ask(get("/healthz")).status == 200
        line.__exit__()


class Wired(asyncio.Transport):
    """A transport from a given address that remembers what was written."""

    def __init__(self, address: str) -> None:
        super().__init__({"peername": (address, 1), "sockname": ("10.0.0.1", 80)})
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def test_one_peer_cannot_take_all_connections() -> None:
    """Peers on the network are counted by address; loopback, where all clients share one, is not."""

    async def story() -> list[bool]:
        class Few(HttpProtocol):
            limits = ConnectionLimits(connections_per_peer=2)

        async def app(_scope: Any, _receive: Any, _send: Any) -> None: ...

        state = ServerState()
        config = Config(cast("Any", app), ws="none", lifespan="off", log_config=None, http=Few)
        config.load()
        closed = []
        for address in ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "::1", "::1", "::1"]:
            transport, protocol = Wired(address), Few(config, state, {})
            protocol.connection_made(transport)
            closed.append(transport.closed)
        for connection in list(state.connections):
            connection.connection_lost(None)
        return closed

    assert asyncio.run(story()) == [False, False, True, False, False, False, False]


def test_a_half_closed_connection_is_a_client_that_left(node: Running) -> None:
    """Shutting down the write side ends the request, as everywhere with this server."""
    with Line(node) as line:
        line.send(post(b"{", length=1_000))
        line.socket.shutdown(socket.SHUT_WR)

        assert line.is_closed()
