"""A model without an engine: it says what a script says, when the script lets it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

from b3node.contract.request import Request
from b3node.engine.messages import Finished, FinishReason, Sampling, Started, Token
from b3node.errors import Refusal
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits
from b3node.workers.served_model import EngineLoad, ModelFacts, ModelState, Output

MODEL = "tests/echo"


class Gate:
    """Holds a script up until a test, in whatever thread, opens it; `reached` tells that it is waited for."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened: Future[None] = Future()

    def open(self) -> None:
        self._opened.set_result(None)

    async def wait(self) -> None:
        self.reached.set()
        await asyncio.shield(asyncio.wrap_future(self._opened))


Step = Output | tuple[Output, ...] | Gate | Exception
"""What `take` does next: returns this, waits for it, or raises it."""


def said(
    *pieces: str | bytes, reason: FinishReason = "stop", prompt_tokens: int = 7, cached_tokens: int = 3
) -> list[Step]:
    """A script that starts, says the pieces one by one, and finishes."""
    return [
        started(cached_tokens),
        *map(token, pieces),
        finished(reason, len(pieces), prompt_tokens=prompt_tokens, cached_tokens=cached_tokens),
    ]


def started(cached_tokens: int = 3) -> Started:
    return Started(id=1, queue_seconds=0.0, cached_tokens=cached_tokens)


def token(piece: str | bytes) -> Token:
    return Token(id=1, piece=piece if isinstance(piece, bytes) else piece.encode())


def finished(
    reason: FinishReason = "stop",
    output_tokens: int = 1,
    *,
    prompt_tokens: int = 7,
    cached_tokens: int = 3,
) -> Finished:
    return Finished(
        id=1,
        reason=reason,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        output_tokens=output_tokens,
    )


class FakeGeneration:
    """Plays a script; a script that is over says nothing more, as an engine does."""

    def __init__(self, script: Sequence[Step]) -> None:
        self._steps = list(script)
        self.cancelled = threading.Event()
        self.taken = 0

    async def take(self) -> tuple[Output, ...]:
        while True:
            await asyncio.sleep(0)
            self.taken += 1
            step = self._steps.pop(0) if self._steps else Gate()
            if isinstance(step, Exception):
                raise step
            if not isinstance(step, Gate):
                return step if isinstance(step, tuple) else (step,)
            await step.wait()

    async def listen(self, hear: Callable[[Sequence[Output]], bool]) -> None:
        while hear(await self.take()):
            pass

    def cancel(self) -> None:
        self.cancelled.set()


class FakeFrameSink:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, frame: bytes) -> bool:
        self.frames.append(frame)
        return True

    async def drain(self) -> None:
        await asyncio.sleep(0)


class FakeModel:
    """Implements `served.ServedModel`; every submission plays the next script, the last one for ever."""

    def __init__(
        self,
        *scripts: Sequence[Step],
        name: str = MODEL,
        state: ModelState = "ready",
        n_ctx: int = 64,
        max_request_bytes: int = 100_000,
        prompt_tokens: int = 7,
    ) -> None:
        self.id = name
        self.state: ModelState = state
        self.max_request_bytes = max_request_bytes
        self.created = 1_700_000_000
        self.traits: Traits | None = Traits(True, "turn", "template", True, True, "switch")
        self.facts: ModelFacts | None = ModelFacts(
            n_ctx=n_ctx,
            n_ctx_train=n_ctx,
            n_parallel=4,
            n_vocab=256,
            device="cpu",
            description="fake",
            load_seconds=0.1,
        )
        self.load: EngineLoad | None = None
        self.scripts = list(scripts) or [said("Hell", "o", "!")]
        self.prompt_tokens = prompt_tokens
        self.generations: list[FakeGeneration] = []
        self.submitted: list[tuple[Sampling, int | None, str]] = []
        self.requests: list[Request] = []
        self.preparing: Callable[[], Awaitable[None]] | None = None
        self.probing: Callable[[], Awaitable[bool]] | None = None
        self.trying: Callable[[], Awaitable[bool]] | None = None

    def require_ready(self) -> None:
        if self.state != "ready":
            raise Refusal("infer_backend_unavailable", "The model is restarting.", retry_after=3)

    async def prepare(self, request: Request) -> Prepared:
        self.requests.append(request)
        if self.preparing is not None:
            await self.preparing()
        return Prepared(tokens=bytes(4 * self.prompt_tokens), prompt_tokens=self.prompt_tokens)

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> FakeGeneration:
        self.submitted.append((sampling, max_tokens, namespace))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        generation = FakeGeneration(script)
        self.generations.append(generation)
        return generation

    async def probe(self, within: float) -> bool:
        return self.state == "ready" if self.probing is None else await self.probing()

    async def prepares(self, within: float) -> bool:
        return True if self.trying is None else await self.trying()
