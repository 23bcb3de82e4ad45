"""The front's client of a model's prepare workers: one request a worker at a time, bounded in CPU time.

A request that exceeds its budget costs its worker, and only that request fails; the others wait in the pool's
queue, which is bounded by the requests that the node admits.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from b3node.contract.request import Message, Request, TextPart
from b3node.errors import Refusal, busy
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits
from b3node.workers.backoff import Backoff
from b3node.workers.cputime import cpu_seconds
from b3node.workers.messages import (
    FromPrepare,
    PrepareCrashed,
    PreparedAnswer,
    PrepareFailed,
    PrepareOrder,
    PrepareReady,
    PrepareRequest,
    RequestRefused,
)
from b3node.workers.quarantine import Quarantine, digest, refused
from b3node.workers.startup import PREPARE
from b3node.workers.supervisor import Supervisor
from b3node.workers.timeouts import Timeouts

_MAX_PAUSE_SECONDS: Final = 1.0
"""Seconds between two starts at most: clients' requests must not stop a model for longer."""
_MIN_CHECK_SECONDS: Final = 0.02
"""Seconds between two readings of a process's CPU time at least; the kernel counts in hundredths."""
_ANSWER_FRESH_SECONDS: Final = 5.0
"""Seconds for which an answer proves that prompts can be prepared."""
_TRIAL: Final = Request(model="", input=(Message("user", (TextPart("Hello"),)),))
_log = structlog.get_logger("b3node.workers")


class PrepareError(Exception):
    """A bug showed in a prepare worker; the message is its traceback."""


class WorkerDiedError(Refusal):
    """A prepare worker was gone before it answered."""

    def __init__(self) -> None:
        super().__init__(
            "infer_backend_unavailable",
            "The node lost the process that prepares prompts; retry in 1 second.",
            retry_after=1,
        )


class PrepareWorker:
    """One prepare process. `ask` must not be called again before it has returned."""

    def __init__(self, model: str, number: int, order: PrepareOrder, timeouts: Timeouts) -> None:
        self.ready = asyncio.Event()
        """Set while it can be asked."""
        self.settled = asyncio.Event()
        """Set once its first start is over, one way or the other."""
        self.failed = False
        """Whether it has ended without ever having been ready: the model is at fault, not a request."""
        self.answered = float("-inf")
        """Time of its last answer to a client (monotonic seconds)."""
        self.traits: Traits | None = None
        """The model's traits, once it has been ready."""
        self._model = model
        self._timeouts = timeouts
        self._served = self._over = False
        self._answer: asyncio.Future[Prepared] | None = None
        self._child: Supervisor[FromPrepare] = Supervisor(
            f"prepare {model} {number}",
            PREPARE,
            FromPrepare,  # type: ignore[arg-type]  # a union
            order,
            on_message=self._on_message,
            on_exit=self._on_exit,
            backoff=Backoff(
                first=min(timeouts.pause, _MAX_PAUSE_SECONDS), longest=_MAX_PAUSE_SECONDS, most=None
            ),
            load_within=timeouts.prepare_load,
        )

    @property
    def pid(self) -> int | None:
        """Process id of the worker."""
        return self._child.pid

    def start(self) -> None:
        """Starts the process."""
        self._child.start()

    def retry(self) -> None:
        """Starts the process again if it has given up."""
        if self._over:
            self._over = self.failed = False
            self.settled.clear()
            self._child.start()

    async def stop(self) -> None:
        """Ends the process."""
        await self._child.stop()

    async def ask(self, request: Request, n_ctx: int) -> Prepared:
        """Returns the prompt for a context of `n_ctx` tokens; kills a process that takes too long for it.

        A request that computes for too long is refused; one that the machine had no time for may be sent
        again.

        Raises:
            Refusal: the request cannot be prepared, or the process died under it.
            PrepareError: a bug.
        """
        self._answer = asyncio.get_running_loop().create_future()
        size = self._child.send(PrepareRequest(request, time.time(), n_ctx))
        budget = self._timeouts.prepare + self._timeouts.prepare_megabyte * size / 1e6
        try:
            return await self._answered(self._answer, budget)
        finally:
            self._answer = None

    async def _answered(self, answer: asyncio.Future[Prepared], budget: float) -> Prepared:
        """Returns the answer, unless it takes `budget` CPU seconds or waits too long for the CPU."""
        end = time.monotonic() + budget * self._timeouts.prepare_starved
        before = self._computed()
        used, left = 0.0, budget
        while used < budget and left > 0.0:
            await asyncio.wait({answer}, timeout=max(min(budget - used, left), _MIN_CHECK_SECONDS))
            if answer.done():
                return answer.result()
            left = end - time.monotonic()
            used = budget if before is None else (self._computed() or 0.0) - before
        self.ready.clear()
        self._child.kill("a request took too long", counts=False)
        raise _too_much() if used >= budget else _starved()

    def _computed(self) -> float | None:
        """Returns the CPU seconds of the process so far; None if unknown."""
        return cpu_seconds(self.pid) if self.pid is not None else None

    def _on_message(self, message: FromPrepare) -> None:
        match message:
            case PrepareReady(traits=traits):
                self.traits = traits
                self._child.ready()
                self._served, self.failed = True, False
                self.ready.set()
                self.settled.set()
            case PrepareFailed(reason=reason):
                _log.error("prompts_cannot_be_prepared", model=self._model, reason=reason)
                self._child.give_up()
            case PrepareCrashed(trace=trace):
                self._break_off(PrepareError(trace))
            case PreparedAnswer(prepared=prepared) if self._answer is not None and not self._answer.done():
                self.answered = time.monotonic()
                self._answer.set_result(prepared)
            case RequestRefused(code=code, message=words, param=param):
                self.answered = time.monotonic()
                self._break_off(Refusal(code, words, param=param))

    def _on_exit(self, again: bool) -> None:  # noqa: FBT001 - a callback with one argument
        self._over = not again
        self.ready.clear()
        self.failed = not self._served
        self.settled.set()
        self._break_off(WorkerDiedError())

    def _break_off(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


class PreparePool:
    """The prepare workers of one model."""

    def __init__(
        self,
        model: str,
        order: PrepareOrder,
        *,
        size: int,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    ) -> None:
        self.workers = [PrepareWorker(model, number, order, timeouts) for number in range(size)]
        self._timeouts = timeouts
        self._idle: asyncio.Queue[PrepareWorker] = asyncio.Queue()
        self._work: set[asyncio.Task[Prepared]] = set()
        self._quarantine = Quarantine()
        for worker in self.workers:
            self._idle.put_nowait(worker)

    @property
    def failed(self) -> bool:
        """Whether no worker can prepare prompts, nor ever could."""
        return all(worker.failed for worker in self.workers)

    @property
    def traits(self) -> Traits | None:
        """The model's traits; None before a worker has been ready."""
        return next((worker.traits for worker in self.workers if worker.traits), None)

    async def settle(self) -> None:
        """Waits until every worker's first start is over, whether it succeeded or not."""
        await asyncio.gather(*(worker.settled.wait() for worker in self.workers))

    def start(self) -> None:
        """Starts all workers."""
        for worker in self.workers:
            worker.start()

    def retry(self) -> None:
        """Starts workers again that have given up."""
        for worker in self.workers:
            worker.retry()

    async def stop(self) -> None:
        """Ends all workers."""
        await asyncio.gather(*(worker.stop() for worker in self.workers))

    async def prepare(self, request: Request, n_ctx: int) -> Prepared:
        """Returns the request's prompt for a context of `n_ctx` tokens, made by the next free worker.

        Raises as `PrepareWorker.ask` does, and `Refusal` for a request in quarantine.
        """
        if self._quarantine and self._quarantine.verdict(digest(request), (), time.monotonic()) == "refuse":
            raise refused()
        try:
            async with asyncio.timeout(self._timeouts.worker):
                worker = await self._idle.get()
        except TimeoutError:
            raise busy("The node is busy preparing other prompts.") from None
        # The client may leave, but the worker is free again only once it has answered.
        work = asyncio.create_task(self._ask(worker, request, n_ctx))
        self._work.add(work)
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    async def probe(self, within: float, n_ctx: int) -> bool:
        """Returns whether a running worker answered lately, or else does `within` seconds.

        A template that refuses the trial request counts as an answer.
        """
        fresh = time.monotonic() - _ANSWER_FRESH_SECONDS
        if any(worker.ready.is_set() and worker.answered > fresh for worker in self.workers):
            return True
        try:
            async with asyncio.timeout(within):
                await self.prepare(_TRIAL, n_ctx)
        except Refusal as refusal:
            return refusal.status < 500
        except (TimeoutError, PrepareError):
            return False
        return True

    async def _ask(self, worker: PrepareWorker, request: Request, n_ctx: int) -> Prepared:
        try:
            async with asyncio.timeout(self._timeouts.worker):
                await worker.ready.wait()
            prepared = await worker.ask(request, n_ctx)
        except TimeoutError:
            raise busy("The node is busy preparing other prompts.") from None
        except WorkerDiedError:
            self._quarantine.record_death((digest(request),), time.monotonic())  # it had no other request
            raise
        finally:
            self._idle.put_nowait(worker)
        if self._quarantine:
            self._quarantine.clear(digest(request))
        return prepared

    def _done(self, work: asyncio.Task[Prepared]) -> None:
        """Forgets a finished task; retrieves its exception, because its client may have left."""
        self._work.discard(work)
        if not work.cancelled():
            work.exception()


def _too_much() -> Refusal:
    return Refusal(
        "invalid_request", "The input took too long to prepare; send less text in one request.", param="input"
    )


def _starved() -> Refusal:
    return busy("The machine is too busy to prepare the input; try again in a moment.")
