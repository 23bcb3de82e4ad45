"""Keeps one child alive: starts it, waits for its end, starts it again later and later.

The front must never die of a child, so nothing a child does raises here; its end is told to `ended`, and
what it says goes to `hear`. Stopping closes the line (the child ends by itself), then kills.
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
from b3node.workers.parent_channel import Link
from b3node.workers.spawn import spawn

M = TypeVar("M")
GRACE: Final = 2.0
"""Seconds a child has to end by itself once its line is closed."""
_log = structlog.get_logger("b3node.workers")


class Supervisor(Generic[M]):
    """One child process running `module`, restarted until `stop` or until it crashed too often.

    Args:
        name: for the operator's log.
        module: what the child runs.
        kind: the type of the messages it sends.
        order: the first message it gets.
        hear: called with each message.
        ended: called when the process is gone, with True when it will be started again.
        load_within: seconds that a start may take until `ready` is called; None is as long as it takes.
        environment: variables that the child gets beside ours.
    """

    def __init__(
        self,
        name: str,
        module: str,
        kind: type[M],
        order: msgspec.Struct,
        *,
        hear: Callable[[M], None],
        ended: Callable[[bool], None],
        backoff: Backoff | None = None,
        load_within: float | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.next_start: float | None = None
        """When the next start is due (monotonic seconds), while the child is down."""
        self._name, self._module, self._kind, self._order = name, module, kind, order
        self._hear, self._ended = hear, ended
        self._backoff = backoff or Backoff()
        self._load_within = load_within
        self._environment = environment
        self._sentenced = False
        self._given_up = False
        self._process: subprocess.Popen[bytes] | None = None
        self._link: Link[M] | None = None
        self._ready_at: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process id of the running child."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Begins to keep the child alive, in a task of its own; once it has given up, from anew."""
        self._task = asyncio.create_task(self._keep(), name=f"supervise {self._name}")

    def send(self, message: msgspec.Struct) -> int:
        """Sends to the running child; how many bytes that were. Does nothing when there is none."""
        return self._link.send(message) if self._link is not None else 0

    def ready(self) -> None:
        """The child serves: crashes are counted from here."""
        self._ready_at = time.monotonic()

    def kill(self, reason: str, *, counts: bool = True) -> None:
        """Kills a child that is past help. It is started again, at once unless this `counts` as a crash."""
        if self._process is not None:
            _log.warning("child_killed", child=self._name, reason=reason, pid=self._process.pid)
            self._sentenced = not counts
            self._process.kill()

    def give_up(self) -> None:
        """The child cannot ever serve: it is not started again once it has ended."""
        self._given_up = True

    async def stop(self) -> None:
        """Ends the child for good. Idempotent."""
        self._stopping.set()
        if self._link is not None:
            self._link.close()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=GRACE)
            if self._process is not None:
                self._process.kill()
            await asyncio.wait([self._task], timeout=GRACE)
            self._task.cancel()

    async def _keep(self) -> None:
        while not self._stopping.is_set():
            await self._live()
            pause = self._after_death()
            if pause is not None:
                self.next_start = time.monotonic() + pause
            self._ended(pause is not None)
            if pause is None:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)

    async def _live(self) -> None:
        """One life of the child, from its start until its process is gone."""
        self._ready_at = None
        try:
            self._process, sock = spawn(self._module, environment=self._environment)
        except OSError as error:  # no memory, no process id, no descriptor: that may pass
            _log.error("child_not_started", child=self._name, reason=error.strerror)
            return
        self.next_start = None
        self._link = await Link.over(sock, self._kind, self._hear)
        self._link.send(self._order)
        if self._stopping.is_set():
            self._link.close()
        await self._until_closed(self._link)
        self._link = None
        await _gone(self._process)

    async def _until_closed(self, link: Link[M]) -> None:
        """Waits for the end of the line; kills a child that takes too long to load."""
        with suppress(TimeoutError):
            await asyncio.wait_for(link.closed.wait(), self._load_within)
        if self._ready_at is None and not link.closed.is_set():
            self.kill(f"not ready after {self._load_within:.0f} s")
        await link.closed.wait()

    def _after_death(self) -> float | None:
        """Seconds until the next start; None when there is to be none."""
        status = self._process.returncode if self._process is not None else None
        self._process = None
        if self._stopping.is_set():
            return None
        if self._given_up:
            self._given_up = False
            _log.error("child_given_up", child=self._name, status=status)
            return None
        if self._sentenced:
            self._sentenced = False
            return 0.0
        now = time.monotonic()
        lived = now - self._ready_at if self._ready_at is not None else 0.0
        pause = self._backoff.crashed(now, lived=lived)
        _log.error("child_died", child=self._name, status=status, lived=round(lived, 1), next_start_in=pause)
        return pause


async def _gone(process: subprocess.Popen[bytes]) -> None:
    """Waits for a process whose line is closed; kills it when it does not end."""
    deadline = time.monotonic() + GRACE
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
        await asyncio.sleep(0.01)
