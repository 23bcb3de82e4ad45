"""A scheduler on the fake backend, driven by hand, and messages for it."""

from __future__ import annotations

from array import array

from b3node.engine.guidance.jump_forward import JumpForward
from b3node.engine.limits import EngineLimits
from b3node.engine.loop import Loop
from b3node.engine.messages import Finished, Sampling, Started, Step, Submit
from b3node.engine.schedule.scheduler import Scheduler
from b3node.engine.schedule.token_budget import TokenBudget
from b3node.spans import ImageSpan, TextSpan
from tests.engine.fake_backend import EOG, PIECES, TOKEN_TABLE, Dictation, FakeBackend, continuation

GREEDY = Sampling(0.0, 1.0, 0)


def spans(prompt):
    """The spans of a prompt that is written as token ids and images."""
    text = array("i")
    for item in prompt:
        if isinstance(item, ImageSpan):
            if text:
                yield TextSpan(text.tobytes())
            yield item
            text = array("i")
        else:
            text.append(item)
    if text:
        yield TextSpan(text.tobytes())


def submit(
    request,
    tokens,
    *,
    max_tokens=8,
    namespace="org",
    queue_timeout=1e9,
    reserve=None,
    cache_boundaries=(),
    grammar=None,
):
    return Submit(
        id=request,
        namespace=namespace,
        prompt=tuple(spans(tokens)),
        max_tokens=max_tokens,
        reserve=max_tokens if reserve is None else reserve,
        sampling=GREEDY,
        queue_timeout=queue_timeout,
        cache_boundaries=cache_boundaries,
        grammar=grammar,
    )


class Priced(TokenBudget):
    """A token budget with a fixed cost of further tokens, whatever the clock says."""

    def __init__(self, price, *, gap, largest):
        super().__init__(gap=gap, largest=largest)
        self.price = price

    def cost(self, streams, more):
        return self.price * more


class Rig:
    """A scheduler on the fake backend, driven by hand; records the messages for the front.

    With `dictating`, it keeps to grammars that are a `Dictation`, and jumps over what they force.
    """

    def __init__(
        self,
        *,
        cells=256,
        parallel=4,
        slots=8,
        waiting=64,
        batch=32,
        n_ctx=128,
        stateful=False,
        image_cells=0,
        kept_cells=10_000,
        host_cache=0,
        overlaps=False,
        dictating=False,
        price=0.1,
    ):
        self.now = 0.0
        self.inbox = []
        self.faults: list[str] = []
        limits = EngineLimits(
            n_ctx=n_ctx,
            cells=cells,
            parallel=parallel,
            slots=slots,
            waiting=waiting,
            batch=batch,
            image_cells=image_cells,
            drafts=price < 1.0 and not stateful,
            stateful=stateful,
            window=0,
            kept_cells=kept_cells,
            host_cache_bytes=host_cache,
            token_bytes=1,
            state_bytes=10 if stateful else 0,
        )
        self.scheduler = Scheduler(
            limits,
            eog=frozenset({EOG}),
            pieces=PIECES,
            token_budget=Priced(price, gap=0.15, largest=batch),
        )
        self.backend = FakeBackend(
            cells,
            slots,
            lambda: self.faults.pop(0) if self.faults else None,
            stateful=stateful,
            overlaps=overlaps,
        )
        self.loop = Loop(self.scheduler, self.backend, self, self.clock)
        if dictating:
            jump = JumpForward(str.encode, TOKEN_TABLE)
            self.loop = Loop(self.scheduler, self.backend, self, self.clock, Dictation, TOKEN_TABLE, jump)
        self.steps: list[Step] = []
        self.started: dict[int, Started] = {}
        self.finished: dict[int, Finished] = {}
        self.text: dict[int, bytes] = {}
        self.order: list[tuple[str, int]] = []

    def clock(self):
        self.now += 0.001
        return self.now

    def receive(self, *, wait):
        messages, self.inbox = self.inbox, []
        return messages

    def send(self, step):
        self.steps.append(step)
        for started in step.started:
            assert started.id not in self.started
            self.started[started.id] = started
            self.order.append(("started", started.id))
        for token in step.tokens:
            assert token.id in self.started
            assert token.id not in self.finished
            self.text[token.id] = self.text.get(token.id, b"") + token.piece
            self.order.append(("token", token.id))
        for finished in step.finished:
            assert finished.id not in self.finished, "a request ended twice"
            self.finished[finished.id] = finished
            self.order.append(("finished", finished.id))

    def step(self, *messages):
        self.inbox.extend(messages)
        self.loop.receive()
        self.loop.step()
        self.scheduler.check()
        assert self.scheduler.cache.used == self.backend.used or self.scheduler.cache.moves
        assert len(self.scheduler.running) <= self.scheduler.limits.parallel

    def drain(self, bound=20_000):
        for _ in range(bound):
            if self.scheduler.idle:
                self.loop.receive()
                return
            self.step()
        raise AssertionError("the engine does not come to rest")


def said(prompt, max_tokens, grammar=None):
    """The model's answer to a prompt, as the front gets it."""
    return bytes(token for token in continuation(prompt, max_tokens, grammar) if token != EOG)
