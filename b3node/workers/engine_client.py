"""The front's client of one engine: submits requests, delivers outputs, detects deaths and hangs.

The engine counts as alive while steps arrive: it owes one for each message, and a further one while any
sequence runs or waits. A decode that hangs below Python (a lost GPU, a spinning barrier) sends none, so an
engine that owes a step for longer than `Timeouts` allows is killed. Clients change nothing about that: a hang
is detected even if all leave.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Final

import structlog

from b3node.engine.messages import (
    Cancel,
    Finished,
    FromEngine,
    LoadFailed,
    Loading,
    Ready,
    Sampling,
    Started,
    Step,
    Submit,
    Token,
)
from b3node.errors import Refusal, busy
from b3node.prompt.prepared import Prepared
from b3node.spans import TextSpan
from b3node.workers.backoff import Backoff
from b3node.workers.mailbox import Mailbox
from b3node.workers.messages import EngineOrder
from b3node.workers.quarantine import Quarantine, digest, refused
from b3node.workers.served_model import EngineLoad, ModelFacts, ModelState
from b3node.workers.startup import ENGINE
from b3node.workers.supervisor import Supervisor
from b3node.workers.timeouts import Timeouts
from b3node.workers.tunables import tunables

RESERVED_OUTPUT: Final = 512
"""Tokens of output that admission counts on when a request names no limit (contract: else 512)."""
TOKEN_FRESH_SECONDS: Final = 60.0
"""Seconds for which a decoded token proves that the engine works."""
DOWN_RETRY_SECONDS: Final = 60
"""Seconds after which a client may ask again for a model that is down."""
SUSPECT_RETRY_SECONDS: Final = 2
"""Seconds after which a suspect may ask again, when another one may have ended."""
_NEW_STEP_WEIGHT: Final = 0.1
"""Weight of the newest step in the usual step's duration."""
_CHECKS_PER_SILENCE: Final = 10.0
"""Checks of the watchdog within the longest silence, once a silence is that long; fewer before."""
_log = structlog.get_logger("b3node.workers")


class EngineClient:
    """One engine process of the model `model`, kept alive. Every method belongs to the front's event loop."""

    def __init__(
        self,
        model: str,
        order: EngineOrder,
        *,
        progress: Callable[[str, float], None],
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    ) -> None:
        self.state: ModelState = "loading"
        self.facts: ModelFacts | None = None
        self._model = model
        self._limit = order.model.queue
        self._queue_seconds = order.model.queue_seconds
        self._progress = progress
        self._timeouts = timeouts
        self._ids = itertools.count(1)
        self._live: dict[int, Mailbox] = {}
        self._quarantine = Quarantine()
        self._computing: dict[int, bytes] = {}
        """Digests of the requests that the engine has and has not ended yet, including cancelled ones."""
        self._step_due_since: float | None = None
        self._usual_step: float | None = None
        self._last_token = float("-inf")
        self._last_step: Step | None = None
        self._prompt_tokens = self._cached_tokens = 0  # of all engines
        self._load_began = time.monotonic()
        self._restarted = False
        self.settled = asyncio.Event()
        """Set once the first load is over, one way or the other."""
        self._watchdog: asyncio.Task[None] | None = None
        self._child: Supervisor[FromEngine] = Supervisor(
            f"engine {model}",
            ENGINE,
            FromEngine,  # type: ignore[arg-type]  # a union
            order,
            on_message=self._on_message,
            on_exit=self._on_exit,
            backoff=Backoff(first=timeouts.pause, most=timeouts.crashes),
            environment=tunables(),
        )

    @property
    def pid(self) -> int | None:
        """Process id of the engine."""
        return self._child.pid

    @property
    def load(self) -> EngineLoad | None:
        """The engine's load at its last step; None before the first one since its start."""
        step = self._last_step
        if step is None:
            return None
        return EngineLoad(
            step.running, step.waiting, step.cells_used, self._prompt_tokens, self._cached_tokens
        )

    def start(self) -> None:
        """Starts the process and its watchdog."""
        self._child.start()
        self._watchdog = asyncio.create_task(self._watch(), name=f"watch {self._model}")

    async def stop(self) -> None:
        """Ends the process; requests in flight fail."""
        self.state = "stopped"
        if self._watchdog is not None:
            self._watchdog.cancel()
        await self._child.stop()
        self._fail_all()

    def require_ready(self) -> None:
        """Raises `Refusal` `infer_backend_unavailable` unless requests can be served now."""
        if self.state != "ready":
            raise self._unavailable()

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> Mailbox:
        """Submits a prompt; `max_tokens` None is until the end of the context.

        Raises `Refusal`, also for a request in quarantine.
        """
        self.require_ready()
        known = digest(prepared)
        self._check_quarantine(known)
        request, mailbox = self._submit(
            prepared, sampling=sampling, max_tokens=max_tokens, namespace=namespace
        )
        self._computing[request] = known
        return mailbox

    def _submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> tuple[int, Mailbox]:
        facts = self.facts
        if facts is None or len(self._live) >= facts.n_parallel + self._limit:
            raise busy()
        room = facts.n_ctx - prepared.prompt_tokens
        request = next(self._ids)
        mailbox = Mailbox(request, self._cancel)
        if self._step_due_since is None:
            self._step_due_since = time.monotonic()
        self._live[request] = mailbox
        self._child.send(
            Submit(
                id=request,
                namespace=namespace,
                prompt=(TextSpan(prepared.tokens),),
                max_tokens=min(max_tokens or room, room),
                reserve=min(max_tokens or RESERVED_OUTPUT, room),
                sampling=sampling,
                queue_timeout=self._queue_seconds,
                cache_boundaries=prepared.cache_boundaries,
                grammar=prepared.grammar,
                outline=prepared.outline,
            )
        )
        return request, mailbox

    def _check_quarantine(self, request: bytes) -> None:
        """Raises `Refusal` for a request in quarantine, and for a suspect while another one is computed."""
        match self._quarantine.verdict(request, self._computing.values(), time.monotonic()):
            case "refuse":
                raise refused()
            case "later":
                raise Refusal(
                    "capacity_unavailable",
                    "The model runtime died of this request or of another one; each is tried again by itself.",
                    retry_after=SUSPECT_RETRY_SECONDS,
                )
            case "admit":
                pass

    async def probe(self, within: float) -> bool:
        """Returns whether a token was decoded in the last 60 s, else whether one is `within` seconds."""
        if self.state != "ready":
            return False
        if time.monotonic() - self._last_token < TOKEN_FRESH_SECONDS:
            return True
        token = Prepared(tokens=(0).to_bytes(4, "little"), prompt_tokens=1)
        try:
            _, mailbox = self._submit(
                token, sampling=Sampling(0.0, 1.0, 0), max_tokens=1, namespace="\x00probe"
            )
        except Refusal as refusal:
            return refusal.code == "capacity_unavailable"
        try:
            async with asyncio.timeout(within):
                while not any(isinstance(output, Finished) for output in await mailbox.take()):
                    pass
        except (TimeoutError, Refusal):
            return False
        finally:
            mailbox.cancel()
        return True

    # -- messages of the engine ------------------------------------------------------------------------

    def _on_message(self, message: FromEngine) -> None:
        match message:
            case Step():
                self._step(message)
            case Loading(progress=progress):
                self._progress(self._model, progress)
            case Ready():
                self._ready(message)
            case LoadFailed(reason=reason):
                _log.error("model_not_loaded", model=self._model, reason=reason)

    def _step(self, step: Step) -> None:
        self._last_step = step
        self._prompt_tokens += step.prompt_tokens
        self._cached_tokens += sum([started.cached_tokens for started in step.started])
        now = time.monotonic()
        if step.tokens:
            self._last_token = now
        if step.running:
            usual = step.seconds if self._usual_step is None else self._usual_step
            self._usual_step = usual + _NEW_STEP_WEIGHT * (step.seconds - usual)
        live = self._live
        for output in step.started:
            self._deliver(live, output)
        for token in step.tokens:
            if (mailbox := live.get(token.id)) is not None:
                mailbox.put(token)
        for finished in step.finished:
            self._deliver(live, finished)
            live.pop(finished.id, None)
            self._clear(finished)
            if finished.reason == "stop":
                self._last_token = now
        self._step_due_since = now if live or step.running or step.waiting else None

    def _clear(self, finished: Finished) -> None:
        """Clears a request that came to its end by itself."""
        known = self._computing.pop(finished.id, None)
        if known is not None and finished.reason in {"stop", "length", "failed"}:
            self._quarantine.clear(known)

    def _record_deaths(self) -> None:
        """Counts the engine's death for all requests that it was computing."""
        culprit = self._quarantine.record_death(set(self._computing.values()), time.monotonic())
        self._computing.clear()
        if culprit is not None:
            _log.error("request_kills_engines", model=self._model, digest=culprit.hex())

    def _deliver(self, live: dict[int, Mailbox], output: Started | Token | Finished) -> None:
        mailbox = live.get(output.id)
        if mailbox is not None:
            mailbox.put(output)

    def _ready(self, ready: Ready) -> None:
        self.facts = ModelFacts(
            n_ctx=ready.n_ctx,
            n_ctx_train=ready.n_ctx_train,
            n_parallel=ready.n_parallel,
            n_vocab=ready.n_vocab,
            device=ready.device,
            description=ready.description,
            load_seconds=ready.load_seconds,
        )
        self.state = "ready"
        self._last_token = time.monotonic()
        self._step_due_since = self._usual_step = None
        if self._restarted:
            _log.info("engine_is_back", model=self._model, seconds=round(ready.load_seconds, 1))
        self._child.ready()
        self.settled.set()

    def _on_exit(self, again: bool) -> None:  # noqa: FBT001 - a callback with one argument
        if self.state != "stopped":
            self.state = "restarting" if again else "failed"
            self._load_began = time.monotonic()
        self._restarted = again
        self._last_step = None
        self.settled.set()
        self._record_deaths()
        self._fail_all()

    def _fail_all(self) -> None:
        failed, self._live = self._live, {}
        for mailbox in failed.values():
            mailbox.fail(self._unavailable())

    def _cancel(self, request: int) -> None:
        if self._live.pop(request, None) is not None:
            self._child.send(Cancel(request))

    def _unavailable(self) -> Refusal:
        if self.state == "failed":
            return down(self._model)
        seconds = self._seconds_to_ready()
        return Refusal(
            "infer_backend_unavailable",
            f"The model runtime of {self._model} is starting; retry in {seconds} s.",
            retry_after=seconds,
        )

    def _seconds_to_ready(self) -> int:
        """Returns an estimate from the last load, 1 to 60."""
        load = self.facts.load_seconds if self.facts is not None else 5.0
        began = self._child.next_start or self._load_began
        return max(1, min(60, round(began + load - time.monotonic() + 0.5)))

    async def _watch(self) -> None:
        """Kills an engine that owes a step for too long."""
        while True:
            pause = self._next_check()
            due = time.monotonic() + pause
            await asyncio.sleep(pause)
            if self.state != "ready" or self._step_due_since is None:
                continue
            now = time.monotonic()
            self._step_due_since += max(now - due, 0.0)  # the front itself stood still, and read nothing
            if (silence := now - self._step_due_since) > self._allowed_silence():
                self._child.kill(f"no step for {silence:.1f} s with work under way")
                self._step_due_since = None

    def _next_check(self) -> float:
        """Returns the seconds until the next check.

        Checks are rare while steps arrive: each wakes the process and costs as much as a token.
        """
        longest, since = self._timeouts.silence, self._step_due_since
        left = longest if since is None else longest - (time.monotonic() - since)
        return max(left / 2, longest / _CHECKS_PER_SILENCE)

    def _allowed_silence(self) -> float:
        timeouts, usual = self._timeouts, self._usual_step
        if usual is None:
            return timeouts.silence_most
        return min(max(timeouts.silence, timeouts.silence_steps * usual), timeouts.silence_most)


def down(model: str) -> Refusal:
    """Returns the refusal for a model that stays down until an operator acts."""
    return Refusal(
        "infer_backend_unavailable",
        f"The model runtime of {model} could not be started; retry in {DOWN_RETRY_SECONDS} s.",
        retry_after=DOWN_RETRY_SECONDS,
    )
