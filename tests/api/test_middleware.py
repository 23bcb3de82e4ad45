from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import structlog
from litestar import Request
from litestar.exceptions import InternalServerException

from b3node.api.exception_handlers import on_http_exception
from b3node.api.headers import principal_of, record_of
from b3node.api.host_check import HostCheck
from b3node.api.middleware import RequestMiddleware
from b3node.api.server import Shutdown
from b3node.errors import Refusal
from b3node.principal import LOCAL, Principal
from b3node.service import log
from b3node.service.node import Node
from b3node.service.record import Record
from b3node.service.timing import Stopwatch
from tests.api.serving import Line, ask, get, post, serving
from tests.service.fakes import FakeModel, Gate, Step, said, started, token


def test_a_request_is_one_record_however_it_ends() -> None:
    """Answered, refused anywhere, broken, left at any time, or halted: its sinks see it once."""
    ends: list[list[Step]] = [
        said("a"),
        [started(), RuntimeError("before the head")],
        [started(), token("a"), RuntimeError("in the middle")],
        [started(), token("a"), Gate()],
        [started(), token("a"), Gate()],
    ]
    with serving(FakeModel(*ends), shutdown=Shutdown(drain_seconds=0.1, halt_seconds=1.0)) as node:
        for data in (
            get("/healthz"),
            get("/nope"),
            get("/v1/responses"),
            get("/", "Origin: https://a.example"),
        ):
            ask(node, data)
        for _ in ends[:3]:
            ask(node, post({"stream": True}))
        with Line(node) as body:
            body.send(post(b"{", length=9))
            node.wait_for_flights(1)
        node.idle()
        with Line(node) as left:
            left.send(post({"stream": True}))
            left.head()
        node.idle()
        with Line(node) as halted:
            halted.send(post({"stream": True}))
            halted.head()
            node.stop()
            assert node.ended.wait(5)

    found = [line for line in node.lines if line["event"] == "request"]
    assert len({line["request_id"] for line in found}) == len(found)
    assert [(line.get("status"), line.get("code"), line.get("disconnect")) for line in found] == [
        (404, "not_found", None),
        (405, "method_not_allowed", None),
        (403, "forbidden", None),
        (200, None, None),
        (500, "internal", None),
        (200, "internal", None),
        (None, None, "body"),
        (200, None, "mid_stream"),
        (200, "node_unavailable", None),
    ]


@pytest.fixture
def lines() -> Iterator[list[str]]:
    written: list[str] = []
    log.configure("debug", written.append)
    yield written
    structlog.reset_defaults()


def scope(**more: Any) -> Any:
    headers = [(b"host", b"localhost")]
    return {"type": "http", "method": "GET", "path": "/", "headers": headers, "state": {}, **more}


async def nothing(*_: Any) -> Any:
    return None


def test_an_exception_that_comes_too_late_for_an_answer_is_logged(lines: list[str]) -> None:
    """With its head out, a request cannot be answered any more, but the log has the cause and the line."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("late")

    middleware = RequestMiddleware(broken, Node("n1", []), HostCheck())
    with pytest.raises(RuntimeError, match="late"):
        asyncio.run(middleware(scope(), nothing, nothing))
    bug, request = map(json.loads, lines)

    assert bug["event"] == "bug"
    assert "RuntimeError: late" in bug["exception"]
    assert request["event"] == "request"
    assert bug["request_id"] == request["request_id"]


def test_what_is_not_http_passes_through(lines: list[str]) -> None:
    """Other kinds of connection have no record; the application says what it thinks of them."""
    seen: list[Any] = []

    async def application(given: Any, *_: Any) -> None:
        seen.append(given)

    asyncio.run(
        RequestMiddleware(application, Node("n1", []), HostCheck())(scope(type="websocket"), nothing, nothing)
    )

    assert [given["type"] for given in seen] == ["websocket"]
    assert lines == []


PRINCIPAL = Principal(organization="org_2", project="p", key_id="k", scopes=frozenset({"infer:read"}))


def by_key(headers: Iterable[tuple[bytes, bytes]]) -> Principal:
    """Authenticates the one key that there is."""
    if (b"authorization", b"Bearer k") not in headers:
        raise Refusal("unauthorized", "No key.")
    return PRINCIPAL


def test_every_request_has_the_principal_of_its_headers(lines: list[str]) -> None:
    """The middleware sets it before the application runs; a request without one never gets there."""
    seen: list[Any] = []
    answers: list[Any] = []

    async def application(given: Any, *_: Any) -> None:
        seen.append(principal_of(given))

    async def send(message: Any) -> None:
        answers.append(message.get("status"))

    middleware = RequestMiddleware(application, Node("n1", []), HostCheck(), by_key)
    headers = [(b"host", b"localhost")]
    asyncio.run(middleware(scope(headers=[*headers, (b"authorization", b"Bearer k")]), nothing, send))
    asyncio.run(middleware(scope(headers=headers), nothing, send))

    assert seen == [PRINCIPAL]
    assert answers[0] == 401
    assert json.loads(lines[1])["code"] == "unauthorized"


def test_without_keys_every_request_is_the_local_principals(lines: list[str]) -> None:
    """Its namespace is that of the one organization."""
    seen: list[Principal] = []

    async def application(given: Any, *_: Any) -> None:
        seen.append(principal_of(given))

    asyncio.run(RequestMiddleware(application, Node("n1", []), HostCheck())(scope(), nothing, nothing))

    assert seen == [LOCAL]
    assert LOCAL.namespace == "local"
    assert len(lines) == 1


def test_a_request_without_a_principal_is_a_bug() -> None:
    """A route that asks for it before it is set says so at once."""
    record = Record(request_id="req_x", timing=Stopwatch(lambda: 1.0), method="GET")
    with pytest.raises(TypeError, match="not authenticated"):
        principal_of(scope(state={"record": record}))


def test_a_scope_without_a_record_is_a_bug() -> None:
    """A route that was reached around the middleware says so at once."""
    with pytest.raises(TypeError, match="RequestMiddleware"):
        record_of(scope())


def test_the_routers_own_failure_is_a_bug_of_ours(lines: list[str]) -> None:
    """An HTTP exception of the framework with status 500 is told like any other bug."""
    record = Record(request_id="req_x", timing=Stopwatch(lambda: 1.0), method="GET")
    request: Request[Any, Any, Any] = Request(scope(state={"record": record}))
    answer = on_http_exception(request, InternalServerException("secret"))

    assert answer.status_code == 500
    assert json.loads(answer.content)["error"]["message"] == "Internal error (request req_x)."
    assert record.code == "internal"
    assert "secret" in lines[0]
