"""A real node on loopback, in a thread of its own, with fake models behind it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import uvloop

from b3node.api.app import create_app
from b3node.api.host_check import HostCheck
from b3node.api.http_protocol import ConnectionLimits, HttpProtocol
from b3node.api.server import Server, Shutdown
from b3node.service import log
from b3node.service.node import Node, NodeLimits
from tests.service.fakes import MODEL, FakeModel

TIMEOUT = 10.0
LIMITS, HOST_CHECK, WIRE = NodeLimits(), HostCheck(), ConnectionLimits()
SHUTDOWN = Shutdown(drain_seconds=5.0, halt_seconds=1.0)


_ACTIVE: list[Running] = []


def _write(line: str) -> None:
    """The log is the process's: every node that runs hears every line."""
    for running in _ACTIVE:
        running.write(line)


class Running:
    """A node that listens; everything a test may want to ask of it."""

    def __init__(self, node: Node, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.node = node
        self.server = server
        self.port = server.port
        self.loop = loop
        self.lines: list[dict[str, Any]] = []
        self._written = threading.Condition()
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.server.stop)

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def wait_for_flights(self, count: int) -> None:
        """Returns once so many requests are in flight."""
        deadline = time.monotonic() + TIMEOUT
        while self.node.in_flight < count and time.monotonic() < deadline:
            time.sleep(0.005)

    def idle(self) -> None:
        """Returns once nothing is in flight."""
        asyncio.run_coroutine_threadsafe(self.node.drained(), self.loop).result(TIMEOUT)

    def write(self, line: str) -> None:
        with self._written:
            self.lines.append(json.loads(line))
            self._written.notify_all()

    def logged(self, **fields: object) -> dict[str, Any]:
        """The log line with these fields, as soon as it is written."""
        found: list[dict[str, Any]] = []

        def search() -> bool:
            found.extend(line for line in self.lines if fields.items() <= line.items())
            return bool(found)

        with self._written:
            if not self._written.wait_for(search, TIMEOUT):
                raise TimeoutError(f"no line with {fields}")
        return found[0]


@contextmanager
def serving(
    *models: FakeModel,
    limits: NodeLimits = LIMITS,
    host_check: HostCheck = HOST_CHECK,
    shutdown: Shutdown = SHUTDOWN,
    wire: ConnectionLimits = WIRE,
    stall_seconds: float = 5.0,
) -> Iterator[Running]:
    """Serves the models; ends the node, and waits until it is gone."""
    started: list[Running] = []
    up = threading.Event()
    failures: list[BaseException] = []

    async def main() -> None:
        node = Node("n1", models, limits=limits)
        app = create_app(node, host_check, stall_seconds=stall_seconds)
        protocol = type("QuickProtocol", (HttpProtocol,), {"limits": wire})
        server = Server(app, node, shutdown=shutdown, protocol=protocol)
        running = Running(node, server, asyncio.get_running_loop())
        log.configure("debug", _write)
        started.append(running)
        _ACTIVE.append(running)
        await server.run(lambda _port: up.set())

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(main())
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)
        finally:
            up.set()
            for running in started:
                _ACTIVE.remove(running)
                running.ended.set()

    thread = threading.Thread(target=run, name="node")
    thread.start()
    if not up.wait(TIMEOUT) or failures:
        raise RuntimeError(f"the node did not start: {failures}")
    try:
        yield started[0]
    finally:
        if not started[0].ended.is_set():
            started[0].stop()
            started[0].stop()
        thread.join(TIMEOUT)
    if failures:
        raise failures[0]
    if thread.is_alive():
        raise RuntimeError("the node did not end")


def post(
    body: bytes | dict[str, Any], *headers: str, path: str = "/v1/responses", length: int | None = None
) -> bytes:
    """A request's bytes; `length` lies about its size."""
    data = body if isinstance(body, bytes) else json.dumps({"model": MODEL, "input": "hi", **body}).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        *(headers or ["Content-Type: application/json"]),
        f"Content-Length: {len(data) if length is None else length}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


class Answer:
    """One HTTP answer as it came."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        code: str = self.json["error"]["code"]
        return code


class Line:
    """One client connection, read answer by answer."""

    def __init__(self, running: Running) -> None:
        self.socket = running.connect()
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def head(self) -> tuple[int, dict[str, str]]:
        first = self._file.readline()
        if not first:
            raise ConnectionError("closed without an answer")
        status = int(first.split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            assert name not in headers
            headers[name] = value
        return status, headers

    def chunk(self) -> bytes:
        """The next chunk of a body; empty is its end."""
        data = self._file.read(int(self._file.readline(), 16))
        assert self._file.readline() == b"\r\n"
        return data

    def answer(self, *, to_head: bool = False) -> Answer:
        status, headers = self.head()
        if to_head or status in (100, 204):
            return Answer(status, headers, b"")
        if "chunked" in headers.get("transfer-encoding", ""):
            return Answer(status, headers, b"".join(iter(self.chunk, b"")))
        return Answer(status, headers, self._file.read(int(headers["content-length"])))

    def ask(self, data: bytes) -> Answer:
        self.send(data)
        return self.answer()

    def is_closed(self) -> bool:
        """Whether the node has closed, once whatever it still says is read."""
        try:
            while self._file.read(65_536):
                pass
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True


def ask(running: Running, data: bytes) -> Answer:
    """One request on a connection of its own."""
    with Line(running) as line:
        return line.ask(data)


def frames(answer: Answer) -> list[dict[str, Any]]:
    """The events of a streamed answer."""
    return [json.loads(frame.partition(b"data: ")[2]) for frame in answer.body.split(b"\n\n") if frame]
