"""Runs a node: uvicorn inside our own event loop, and an orderly end.

uvicorn closes its listener at the first signal and then waits for ever. Here the first signal only stops
intake: `/readyz` turns 503 at once, new requests are refused with `node_unavailable`, and requests in flight
have `drain_seconds` to finish. Then they end with an error event, and the listener closes. A second signal
ends everything at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from email.utils import formatdate
from typing import Final

import msgspec
import uvicorn
from litestar import Litestar
from uvicorn.server import ServerState

from b3node.api.http_protocol import HttpProtocol
from b3node.api.listener import listen
from b3node.service import log
from b3node.service.node import Node

KEEP_ALIVE_SECONDS: Final = 75
"""Longer than the idle time-outs of usual proxies, whose next request would otherwise race with our close."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Shutdown(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of a node's end; after them connections are cut."""

    drain_seconds: float = 25.0
    """Requests in flight may finish."""

    halt_seconds: float = 2.0
    """The rest of them may send their error."""


class Server:
    """One listening node. `run` serves until `stop`; both belong to one event loop.

    Args:
        app: the application that `create_app` made for `node`.
        node: is drained at the end.
        host: an address or name to listen on.
        port: 0 for any free one.
        listener: a socket that is bound already, instead of one bound to `host` and `port`.
        shutdown: the time that the end may take.
        protocol: the HTTP protocol with its limits.

    Raises:
        OSError: the address cannot be listened on.
    """

    def __init__(
        self,
        app: Litestar,
        node: Node,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        listener: socket.socket | None = None,
        shutdown: Shutdown = Shutdown(),  # noqa: B008 - frozen
        protocol: type[HttpProtocol] = HttpProtocol,
    ) -> None:
        self._node = node
        self._shutdown = shutdown
        self._socket = listener or listen(host, port)
        self._stopping = asyncio.Event()
        self._forced = asyncio.Event()
        self._uvicorn = _Uvicorn(_config(app, protocol, shutdown))

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._socket.getsockname()[1]
        return port

    async def run(self, on_started: Callable[[int], None] | None = None) -> None:
        """Serves until `stop`, then ends in order.

        `on_started` is called with the port once requests are taken.
        """
        self._uvicorn.on_started = lambda: on_started and on_started(self.port)
        serving = asyncio.create_task(self._uvicorn.serve(sockets=[self._socket]))
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not serving.done():
            await self._drain()
            if self._node.in_flight:
                self._uvicorn.drop()
            self._uvicorn.end()
        await serving

    def stop(self) -> None:
        """Drains at the first call; ends at once at the second."""
        if self._stopping.is_set():
            self._uvicorn.force_exit = True
            self._forced.set()
        self._node.drain()
        self._stopping.set()

    async def _drain(self) -> None:
        log.event("draining", in_flight=self._node.in_flight)
        if not await self._wait_until_empty(self._shutdown.drain_seconds):
            log.event("drain_ended", in_flight=self._node.in_flight)
            self._node.halt()
            await self._wait_until_empty(self._shutdown.halt_seconds)

    async def _wait_until_empty(self, seconds: float) -> bool:
        """Waits at most so many seconds, not at all when forced; returns whether no request is in flight."""
        waits = {asyncio.create_task(self._node.drained()), asyncio.create_task(self._forced.wait())}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        return self._node.in_flight == 0


async def serve(server: Server, on_started: Callable[[int], None] | None = None) -> None:
    """Runs a server in the main thread until SIGTERM or SIGINT, and to the end of its drain."""
    with _signals(server.stop):
        await server.run(on_started)


class _FreshDateState(ServerState):
    """uvicorn's state, with a date that is made for each answer."""

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"date", formatdate(usegmt=True).encode())]

    @default_headers.setter
    def default_headers(self, headers: object) -> None:
        """Ignores the headers that uvicorn sets once: their date grows old."""


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers, with a callback once it is up, and without ticks.

    uvicorn checks ten times a second whether it is to end; in a process that sleeps between tokens, each
    check costs more than a token.
    """

    on_started: Callable[[], object] = staticmethod(lambda: None)

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.server_state = _FreshDateState()
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Lets `serve` return."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        await self._ending.wait()

    def capture_signals(self) -> nullcontext[None]:  # type: ignore[override]  # ours are in `serve`
        return nullcontext()

    def drop(self) -> None:
        """Cuts every connection: those that are left have clients that neither read nor leave."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, HttpProtocol):
                connection.transport.abort()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_started()


def _config(app: Litestar, protocol: type[HttpProtocol], shutdown: Shutdown) -> uvicorn.Config:
    _silence_uvicorn()
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",  # the application has nothing to start
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(shutdown.halt_seconds)),
    )


def _silence_uvicorn() -> None:
    """Drops uvicorn's log lines, which are for a terminal; our own log has the events that matter."""
    logger = logging.getLogger("uvicorn")
    logger.propagate = False
    logger.handlers = [logging.NullHandler()]


@contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
