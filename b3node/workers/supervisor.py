"""Keeps one child alive: starts it, waits for its end, and restarts it after pauses that grow.

The front must never die of a child, so nothing that a child does raises here: its messages go to
`on_message`, its end to `on_exit`. Stopping closes the channel (the child ends by itself), then kills.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Generic, TypeVar

import msgspec
import structlog

from b3node.workers.backoff import Backoff
from b3node.workers.parent_channel import ParentChannel
from b3node.workers.spawn import spawn

M = TypeVar("M")
GRACE_SECONDS: Final = 2.0
"""Seconds that a child has to end by itself once its channel is closed."""
_log = structlog.get_logger("b3node.workers")


class Supervisor(Generic[M]):
    """One child process running `module`, restarted until `stop` or until it crashed too often.

    Args:
        name: for the operator's log.
        module: the module that the child runs.
        kind: the type of the messages it sends.
        order: the first message it gets.
        on_message: called with each message.
        on_exit: called when the process is gone, with True if it will be started again.
        backoff: decides on pauses between starts; the default one if None.
        load_within: seconds from a start to the call of `ready`; None for no limit.
        environment: variables of the child besides the front's.
    """

    def __init__(
        self,
        name: str,
        module: str,
        kind: type[M],
        order: msgspec.Struct,
        *,
        on_message: Callable[[M], None],
        on_exit: Callable[[bool], None],
        backoff: Backoff | None = None,
        load_within: float | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.next_start: float | None = None
        """Time of the next start (monotonic seconds), while the child is down."""
        self._name, self._module, self._kind, self._order = name, module, kind, order
        self._on_message, self._on_exit = on_message, on_exit
        self._backoff = backoff or Backoff()
        self._load_within = load_within
        self._environment = environment
        self._restart_at_once = False
        self._given_up = False
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: ParentChannel[M] | None = None
        self._ready_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """Process id of the running child."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Starts a task that keeps the child alive; also after `give_up`."""
        self._task = asyncio.create_task(self._run(), name=f"supervise {self._name}")

    def send(self, message: msgspec.Struct) -> int:
        """Sends to the running child and returns the message's bytes; returns 0 if there is none."""
        return self._channel.send(message) if self._channel is not None else 0

    def ready(self) -> None:
        """Records that the child serves, from now on."""
        self._ready_at = time.monotonic()

    def kill(self, reason: str, *, counts: bool = True) -> None:
        """Kills the child. It is started again, at once unless this `counts` as a crash."""
        if self._process is not None:
            _log.warning("child_killed", child=self._name, reason=reason, pid=self._process.pid)
            self._restart_at_once = not counts
            self._process.kill()

    def give_up(self) -> None:
        """Makes the child's next end the last one: it can never serve."""
        self._given_up = True

    async def stop(self) -> None:
        """Ends the child for good. Idempotent."""
        self._stopping.set()
        if self._channel is not None:
            self._channel.close()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=GRACE_SECONDS)
            if self._process is not None:
                self._process.kill()
            await asyncio.wait([self._task], timeout=GRACE_SECONDS)
            self._task.cancel()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self._run_once()
            pause = self._next_pause()
            if pause is not None:
                self.next_start = time.monotonic() + pause
            self._on_exit(pause is not None)
            if pause is None:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _run_once(self) -> None:
        """Runs the child once, from its start until its process is gone."""
        self._ready_at = None
        try:
            self._process, sock = spawn(self._module, environment=self._environment)
        except OSError as error:  # no memory, no process id, no descriptor: that may pass
            _log.error("child_not_started", child=self._name, reason=error.strerror)
            return
        self.next_start = None
        self._channel = await ParentChannel.over(sock, self._kind, self._on_message)
        self._channel.send(self._order)
        if self._stopping.is_set():
            self._channel.close()
        await self._until_closed(self._channel)
        self._channel = None
        await _wait_for_exit(self._process)

    async def _until_closed(self, channel: ParentChannel[M]) -> None:
        """Waits until the channel closes; kills a child that takes too long to load."""
        with suppress(TimeoutError):
            await asyncio.wait_for(channel.closed.wait(), self._load_within)
        if self._ready_at is None and not channel.closed.is_set():
            self.kill(f"not ready after {self._load_within:.0f} s")
        await channel.closed.wait()

    def _next_pause(self) -> float | None:
        """Returns the seconds until the next start; None for no further start."""
        status = self._process.returncode if self._process is not None else None
        self._process = None
        if self._stopping.is_set():
            return None
        if self._given_up:
            self._given_up = False
            _log.error("child_given_up", child=self._name, status=status)
            return None
        if self._restart_at_once:
            self._restart_at_once = False
            return 0.0
        now = time.monotonic()
        lived = now - self._ready_at if self._ready_at is not None else 0.0
        pause = self._backoff.crashed(now, lived=lived)
        _log.error("child_died", child=self._name, status=status, lived=round(lived, 1), next_start_in=pause)
        return pause


async def _wait_for_exit(process: subprocess.Popen[bytes]) -> None:
    """Waits for a process whose channel is closed; kills it if it does not end."""
    deadline = time.monotonic() + GRACE_SECONDS
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
        await asyncio.sleep(0.01)
