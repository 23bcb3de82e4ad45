"""A real node on loopback, in a thread of its own, with fake models behind it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvloop

from b3node.api.access import Access
from b3node.api.app import create_app
from b3node.api.server import Server, Shutdown
from b3node.api.wire import Wire, WireLimits
from b3node.service import log
from b3node.service.node import Limits, Node
from tests.service.fakes import FakeModel

TIMEOUT = 10.0


class Running:
    """A node that listens; everything a test may want to ask of it."""

    def __init__(self, node: Node, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.node = node
        self.server = server
        self.port = server.port
        self.loop = loop
        self.lines: list[dict[str, Any]] = []
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

    def idle(self) -> None:
        """Returns once nothing is in flight."""
        asyncio.run_coroutine_threadsafe(self.node.drained(), self.loop).result(TIMEOUT)

    def request_lines(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == "request"]


@contextmanager
def serving(
    *models: FakeModel,
    limits: Limits = Limits(),
    access: Access = Access(),
    shutdown: Shutdown = Shutdown(drain_seconds=5.0, goodbye_seconds=1.0),
    wire: WireLimits = WireLimits(),
    stall_seconds: float = 5.0,
) -> Iterator[Running]:
    """Serves the models; ends the node, and waits until it is gone."""
    started: list[Running] = []
    up = threading.Event()
    failures: list[BaseException] = []

    async def main() -> None:
        node = Node("n1", models, limits=limits)
        app = create_app(node, access, stall_seconds=stall_seconds)
        protocol = type("QuickWire", (Wire,), {"limits": wire})
        server = Server(app, node, shutdown=shutdown, wire=protocol)
        running = Running(node, server, asyncio.get_running_loop())
        log.configure("debug", lambda line: running.lines.append(json.loads(line)))
        started.append(running)
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
