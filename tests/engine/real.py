"""The whole engine on a real model, put together as its process does it, and driven by hand."""

from __future__ import annotations

from array import array
from collections import abc
from collections.abc import Mapping
from pathlib import Path
from unittest import mock

import numpy as np

from b3node.config import EngineOptions
from b3node.engine.backend import Rows
from b3node.engine.loop import Loop
from b3node.engine.messages import Cancel, Finished, Sampling, Started, Step, Submit
from b3node.engine.plan import Plan
from b3node.engine.sampling.sampler import NoToken
from b3node.llama.model import Model
from b3node.spans import TextSpan
from b3node.workers.engine_process import _scheduler
from tests.llama.loaded import TOLERANCE
from tests.zoo import reference
from tests.zoo.vocabulary import EOG

GREEDY = Sampling(0.0, 1.0, 0)


def submit(
    request: int,
    tokens: abc.Sequence[int],
    *,
    max_tokens: int = 12,
    namespace: str = "org",
    reserve: int | None = None,
    sampling: Sampling = GREEDY,
    marks: tuple[int, ...] = (),
) -> Submit:
    return Submit(
        id=request,
        namespace=namespace,
        prompt=(TextSpan(array("i", tokens).tobytes()),),
        max_tokens=max_tokens,
        reserve=max_tokens if reserve is None else reserve,
        sampling=sampling,
        queue_timeout=1e9,
        cache_boundaries=marks,
    )


class _Recording(Loop):
    """A loop that remembers each sequence's tokens and how many positions were computed."""

    said: dict[int, list[int]]
    computed = 0

    def _draw(self, plan: Plan, rows: Rows) -> dict[int, abc.Sequence[int]]:
        drawn = super()._draw(plan, rows)
        self.computed += plan.tokens
        for sequence, chunk in self._scheduler.draws(plan):
            if (new := drawn[chunk.slot])[0] != NoToken.BROKEN:
                left = sequence.limit - len(sequence.known)
                self.said.setdefault(sequence.id, []).extend(new[:left])
        return drawn


class Engine:
    """Serves `model` step by step. `tick` is how long everything seems to take, in seconds.

    Where a model allows drafts they seem to cost next to nothing, so that there are many, good and bad ones.

    `said` are the tokens of each request, ends included; `pieces` the bytes that the front heard.
    """

    def __init__(self, model: Model, *, tick: float = 0.001, drafts: bool = True) -> None:
        options = EngineOptions(gpu_layers=0, threads=1, queue=64, drafts=drafts)
        self.model = model
        self.scheduler = _scheduler(model, options)
        mock.patch.object(self.scheduler.token_budget, "cost", return_value=0.0).start()
        self.loop = _Recording(self.scheduler, model.backend, self, self._clock)
        self.said: dict[int, list[int]] = {}
        self.loop.said = self.said
        self.started: dict[int, Started] = {}
        self.finished: dict[int, Finished] = {}
        self.pieces: dict[int, list[bytes]] = {}
        self._inbox: list[object] = []
        self._now, self._tick = 0.0, tick
        self.steps = 0

    def _clock(self) -> float:
        self._now += self._tick
        return self._now

    def receive(self, *, wait: bool) -> abc.Sequence[object]:
        """What was given to `step`; the loop asks."""
        del wait
        messages, self._inbox = self._inbox, []
        return messages

    def send(self, step: Step) -> None:
        """What the front would hear; the loop tells."""
        for started in step.started:
            assert self.started.setdefault(started.id, started) is started
        for token in step.tokens:
            assert token.id not in self.finished
            self.pieces.setdefault(token.id, []).append(token.piece)
        for finished in step.finished:
            assert self.finished.setdefault(finished.id, finished) is finished

    def step(self, *messages: Submit | Cancel) -> None:
        self.steps += 1
        self._inbox.extend(messages)
        self.loop.receive()
        self.loop.step()
        self.scheduler.check()

    def serve(self, *messages: Submit | Cancel, bound: int = 2000) -> None:
        """Takes messages in and runs until nothing is left to do, for `bound` steps at most."""
        self.step(*messages)
        for _ in range(bound):
            if self.scheduler.idle:
                self.loop.receive()  # which tells what a step on a device left for the next one
                return
            self.step()
        raise AssertionError("the engine does not come to rest")

    @property
    def computed(self) -> int:
        """Positions that the model has computed."""
        return self.loop.computed

    @property
    def cached(self) -> dict[int, int]:
        """Each finished request's cached tokens."""
        return {request: end.cached_tokens for request, end in self.finished.items()}


def judge(engine: Engine, path: Path, prompts: Mapping[int, abc.Sequence[int]]) -> None:
    """Checks every finished request: each of its tokens is the likeliest after its prompt and those before.

    Likeliest is what a fresh context of the reference says, up to `TOLERANCE`. What the front heard must be
    those tokens, and the end must be where the model or the limit put it.
    """
    with reference.opened(path) as model:
        for request, prompt in prompts.items():
            said, end = engine.said.get(request, []), engine.finished[request]
            with model.context(len(prompt) + len(said) + 1) as context:
                row = context.decode(prompt)
                for token in said:
                    assert row.max() - row[token] < TOLERANCE, (
                        f"request {request} left the model's words by {row.max() - row[token]}"
                    )
                    row = context.decode([token])
            heard = [engine.model.vocabulary.pieces[token] for token in said if token not in EOG]
            assert engine.pieces.get(request, []) == heard
            assert end.output_tokens == len(said)
            assert not EOG.intersection(said[:-1])
            if end.reason in {"stop", "length"}:
                assert (end.reason == "stop") == (said[-1] in EOG)


def random_prompts(seed: int, sizes: abc.Sequence[int]) -> dict[int, list[int]]:
    """A prompt of random bytes for each size, by request number."""
    rng = np.random.default_rng(seed)
    return {number: [int(t) for t in rng.integers(0, 256, size)] for number, size in enumerate(sizes)}
