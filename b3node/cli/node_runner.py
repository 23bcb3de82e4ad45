"""Runs a node from its configuration to its end: models, server, and their display on the terminal.

Its import takes longer than the start of a process, so a model's processes are started first
(`workers.startup`).
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from b3node.api.listener import listen
from b3node.config import Config
from b3node.service import log
from b3node.workers import startup
from b3node.workers.fleet import Fleet, FleetModel

if TYPE_CHECKING:
    from b3node.api.server import Server

_console: Final = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

_WhenReady = Callable[[str], Awaitable[None]]


def served(config: Config, then: _WhenReady | None = None) -> int:
    """Runs a node to its end, writes its log to the last line, and returns the exit status.

    `then` is called with the node's URL once a model is ready; the node stops when it returns. Runs on
    uvloop, which halves the cost of a streamed token.
    """
    lines = log.LineWriter(sys.stderr)
    log.configure("warning" if config.quiet else "info", lines)
    try:
        _yield_to_engines()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(config, then))
    finally:
        lines.close()


def _yield_to_engines() -> None:
    """Keeps this process from interrupting the compute threads of engines when it handles a token.

    Each barrier of a step waits for its slowest thread, so a thread that is interrupted holds up all. Under
    Linux's batch policy a wake-up interrupts no other process; children are started under the usual one. (One
    client, two cores: 7.7 instead of 8.3 ms a token.)
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))


async def _run(config: Config, then: _WhenReady | None) -> int:
    with _Bars() as bars:
        try:
            listener = listen(config.host, config.port)
        except OSError as error:
            _console.print(f"Cannot listen on {config.host}:{config.port}: {error.strerror}.")
            return 1
        fleet = Fleet(config, bars.show)
        try:
            fleet.start()
            return await _serve_fleet(config, fleet, listener, bars, then)
        finally:
            await fleet.stop()


async def _serve_fleet(
    config: Config, fleet: Fleet, listener: socket.socket, bars: _Bars, then: _WhenReady | None
) -> int:
    """Serves models that are being loaded, importing the server meanwhile. Returns the exit status."""
    front = await asyncio.wrap_future(startup.importing("b3node.cli.front"))
    server: Server = front.front(config, fleet.models.values(), listener, _in_url(config.host))
    startup.settled()
    serving = asyncio.create_task(front.serve(server))
    asyncio.get_running_loop().run_in_executor(None, startup.warm_up, front.respond.warm_up)
    settled = asyncio.create_task(fleet.settle())
    await asyncio.wait({serving, settled}, return_when=asyncio.FIRST_COMPLETED)
    bars.end()
    loaded = settled.done()
    try:
        if loaded:
            url = f"http://{_in_url(config.host)}:{server.port}"
            _announce(url, fleet)
            if then is not None and _any_ready(fleet):
                await then(url)
        if then is None:
            await serving
    finally:
        server.stop()
        await asyncio.wait([serving])
        settled.cancel()
    return 1 if loaded and not _any_loaded(fleet) else 0


def _any_ready(fleet: Fleet) -> bool:
    return any(model.state == "ready" for model in fleet.models.values())


def _any_loaded(fleet: Fleet) -> bool:
    return any(model.facts is not None for model in fleet.models.values())


def _announce(url: str, fleet: Fleet) -> None:
    for model in fleet.models.values():
        _console.print(f"{url}  {_line(model)}")


def _line(model: FleetModel) -> str:
    facts = model.facts
    if model.state != "ready" or facts is None:
        return f"{model.id} could not be loaded; the log says why"
    return (
        f"{model.id} ({facts.description})  context {facts.n_ctx}  slots {facts.n_parallel}  {facts.device}"
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Bars:
    """One progress bar a loading model; invisible once all are loaded, and where there is no terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("loading {task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            console=_console,
            transient=True,
            disable=not _console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Removes the bars. Idempotent."""
        self._progress.stop()

    def show(self, model: str, share: float) -> None:
        """Shows that `share` of `model` is loaded; does nothing once the bars are gone."""
        if model not in self._tasks:
            self._tasks[model] = self._progress.add_task(model, total=1.0)
        self._progress.update(self._tasks[model], completed=share)
