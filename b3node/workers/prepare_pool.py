"""The front's view of a model's prepare workers: one request a worker at a time, each on a short leash.

A request that outlives its budget costs its worker, and only that request fails; the others wait in the
pool's queue, which is bounded by the requests that the node admits.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

import structlog

from b3node.contract.request import Message, Request, TextPart
from b3node.errors import Refusal
from b3node.prompt.prepared import Prepared
from b3node.workers.backoff import Backoff
from b3node.workers.orders import (
    Answer,
    Ask,
    FromPrepare,
    PrepareFailed,
    PrepareOrder,
    PrepareReady,
    Refused,
)
from b3node.workers.supervisor import Supervisor

SECONDS: Final = 2.0
"""What one request may take (a template takes milliseconds; this is for busy machines) ..."""
SECONDS_A_MEGABYTE: Final = 4.0
"""... and for each megabyte of text on top, because 1 MB takes up to 2.6 s to tokenize."""
WAIT: Final = 30.0
"""How long a request waits for a worker that is starting or busy."""
_log = structlog.get_logger("b3node.workers")


class PrepareWorker:
    """One prepare process; `ask` must not be called again before it has returned."""

    def __init__(self, model: str, number: int, order: PrepareOrder) -> None:
        self.ready = asyncio.Event()
        self._model = model
        self._answer: asyncio.Future[Prepared] | None = None
        self._child: Supervisor[FromPrepare] = Supervisor(
            f"prepare {model} {number}",
            "b3node.workers.prepare_process",
            FromPrepare,  # type: ignore[arg-type]  # a union is a type to msgspec
            order,
            hear=self._hear,
            ended=self._ended,
            backoff=Backoff(longest=1.0, gives_up=False),
        )

    @property
    def pid(self) -> int | None:
        """The worker's process id."""
        return self._child.pid

    def start(self) -> None:
        """Starts the process."""
        self._child.start()

    async def stop(self) -> None:
        """Ends the process."""
        await self._child.stop()

    async def ask(self, request: Request, budget: float) -> Prepared:
        """The prepared prompt. Raises `Refusal`; after `budget` seconds the process is killed."""
        self._answer = asyncio.get_running_loop().create_future()
        self._child.send(Ask(request, time.time()))
        try:
            async with asyncio.timeout(budget):
                return await self._answer
        except TimeoutError:
            self.ready.clear()
            self._child.kill("a request took too long", counts=False)
            raise Refusal(
                "invalid_request",
                "The input took too long to prepare; send less text in one request.",
                param="input",
            ) from None
        finally:
            self._answer = None

    def _hear(self, message: FromPrepare) -> None:
        match message:
            case PrepareReady():
                self._child.ready()
                self.ready.set()
            case PrepareFailed(reason=reason):
                _log.error("vocabulary_not_loaded", model=self._model, reason=reason)
            case Answer(prepared=prepared) if self._answer is not None and not self._answer.done():
                self._answer.set_result(prepared)
            case Refused(code=code, message=words, param=param):
                self._refuse(Refusal(code, words, param=param))

    def _ended(self, again: bool) -> None:  # noqa: FBT001 - a callback with one argument
        del again
        self.ready.clear()
        self._refuse(
            Refusal(
                "infer_backend_unavailable",
                "The node lost the process that prepares prompts; retry in 1 second.",
                retry_after=1,
            )
        )

    def _refuse(self, refusal: Refusal) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(refusal)


class PreparePool:
    """The prepare workers of one model."""

    def __init__(self, model: str, order: PrepareOrder, *, size: int) -> None:
        self.workers = [PrepareWorker(model, number, order) for number in range(size)]
        self._idle: asyncio.Queue[PrepareWorker] = asyncio.Queue()
        self._work: set[asyncio.Task[Prepared]] = set()
        for worker in self.workers:
            self._idle.put_nowait(worker)

    def start(self) -> None:
        """Starts all workers."""
        for worker in self.workers:
            worker.start()

    async def stop(self) -> None:
        """Ends all workers."""
        await asyncio.gather(*(worker.stop() for worker in self.workers))

    async def prepare(self, request: Request) -> Prepared:
        """The request's prompt, made by the next free worker. Raises `Refusal`."""
        try:
            async with asyncio.timeout(WAIT):
                worker = await self._idle.get()
        except TimeoutError:
            raise _busy() from None
        # Whoever asked may leave; the worker is free again only when it has answered.
        work = asyncio.create_task(self._ask(worker, request))
        self._work.add(work)
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    async def _ask(self, worker: PrepareWorker, request: Request) -> Prepared:
        try:
            async with asyncio.timeout(WAIT):
                await worker.ready.wait()
            return await worker.ask(request, SECONDS + SECONDS_A_MEGABYTE * _megabytes(request))
        except TimeoutError:
            raise _busy() from None
        finally:
            self._idle.put_nowait(worker)

    def _done(self, work: asyncio.Task[Prepared]) -> None:
        """Forgets a finished piece of work; looks at its failure, which nobody may be waiting for any more."""
        self._work.discard(work)
        if not work.cancelled():
            work.exception()


def _busy() -> Refusal:
    return Refusal("capacity_unavailable", "The node is busy preparing other prompts.", retry_after=1)


def _megabytes(request: Request) -> float:
    """The size of a request's text, roughly: what its messages say, in millions of characters."""
    texts = [
        part.text
        for item in request.input
        if isinstance(item, Message)
        for part in item.content
        if isinstance(part, TextPart)
    ]
    return (sum(map(len, texts)) + len(request.instructions or "")) / 1e6
