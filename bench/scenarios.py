"""What is asked of a server, and what is measured of its answers.

A scenario is a function of a running server, a scale and a seed to measures: numbers by name, where `_s` and
`_ms` are durations, `tokens_s` is tokens a second with the prompts included, `gap` is the median time between
two pieces of text of a stream and `first` the median time to its first one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

import msgspec

from b3node.embedded import MODEL_ID
from bench import bodies
from bench.bodies import Body
from bench.load import Load, Stream, ask, clients, quantile
from bench.processes import busy_neighbour
from bench.reply import Answer
from bench.servers import Running

Measures = dict[str, float]


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How much is asked. `output` is tokens an answer; `rounds` are requests a client, by number of clients."""

    name: str
    repetitions: int
    output: int
    rounds: dict[int, int]
    shared_clients: int
    prefix: int
    turns: int
    agents: int
    streams: int
    long_prompt: int


FULL: Final = Scale(
    name="full",
    repetitions=3,
    output=64,
    rounds={1: 4, 4: 2, 16: 1},
    shared_clients=16,
    prefix=823,  # words: with the template around it 831 tokens that all 16 prompts begin with
    turns=10,
    agents=4,
    streams=8,
    long_prompt=1450,  # words: about 1500 tokens with the question and the template
)
QUICK: Final = Scale(
    name="quick",
    repetitions=1,
    output=24,
    rounds={1: 2, 4: 1, 16: 1},
    shared_clients=4,
    prefix=823,
    turns=4,
    agents=2,
    streams=8,
    long_prompt=700,
)
"""Two or three minutes: whether everything works, and where things stand; the bars are for the full scale."""

RESULT: Final = 50
"""Words of a message in a conversation, and of what its instructions say beside the task: 6 times as many."""
SETTLE: Final = 0.3
"""Seconds for a busy neighbour to be running, or for streams to run evenly, before anything is measured."""

Scenario = Callable[[Running, Scale, str], Coroutine[None, None, Measures]]


async def warm_up(server: Running) -> float:
    """Lets caches, threads and buffers settle; returns how long the very first answer took, in seconds."""
    first = await ask(server.url, bodies.story(MODEL_ID, "warm up", output=1))
    await _stories(server, "warm up", count=16, rounds=1, output=12)
    return first.total


async def plain(server: Running, scale: Scale, seed: str, *, count: int) -> Measures:
    """`count` clients with prompts that have nothing in common."""
    load = await _stories(server, seed, count=count, rounds=scale.rounds[count], output=scale.output)
    return _measures(load) | {"input_tokens": quantile([a.input_tokens for a in load.answers], 0.5)}


async def streaming(server: Running, scale: Scale, seed: str) -> Measures:
    """What 16 streams cost a token in CPU time, of the process that sends them and of all, while all run."""
    running = await _running(server, seed, count=16, output=scale.output)
    start, before, front = time.perf_counter(), server.cpu, server.front_cpu
    await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    end, after, front_after = time.perf_counter(), server.cpu, server.front_cpu
    answers = await asyncio.gather(*running)
    tokens = sum(start < at <= end for answer in answers for at in answer.times)
    if not tokens:
        return {}
    measures = {"cpu_ms_token": (after - before) / tokens * 1e3}
    if server.has_front:
        measures["front_us_token"] = (front_after - front) / tokens * 1e6
    return measures


async def shared(server: Running, scale: Scale, seed: str) -> Measures:
    """Clients whose prompts begin with the same long text, all sent at once."""
    prefix = bodies.words(seed, scale.prefix)
    work = [
        [bodies.question(MODEL_ID, prefix, f"{seed}/{client}", output=scale.output)]
        for client in range(scale.shared_clients)
    ]
    return _measures(await clients(server.url, work))


async def agent(server: Running, scale: Scale, seed: str) -> Measures:
    """One conversation: each turn sends everything back with a new message."""
    return _conversations(await asyncio.gather(_converse(server, scale, seed, seed)))


async def agents(server: Running, scale: Scale, seed: str) -> Measures:
    """Several conversations at once with the same instructions."""
    talks = (_converse(server, scale, seed, f"{seed}/{number}") for number in range(scale.agents))
    return _conversations(await asyncio.gather(*talks))


async def long_prompt(server: Running, scale: Scale, seed: str) -> Measures:
    """A long prompt beside running streams: their gaps from when it is sent until its first piece of text."""
    running = await _running(server, seed, count=scale.streams, output=3 * scale.output)
    await asyncio.sleep(SETTLE)
    late = bodies.story(MODEL_ID, seed, output=scale.output, length=scale.long_prompt)
    new = await ask(server.url, late)
    answers = await asyncio.gather(*running)
    gaps = [gap for answer in answers for gap in answer.gaps_within(new.sent, new.times[0])]
    return {
        "first_s": new.first,
        "input_tokens": new.input_tokens,
        "gap_ms": quantile(gaps, 0.5) * 1e3,
        "gap_p95_ms": quantile(gaps, 0.95) * 1e3,
        "gap_max_ms": max(gaps) * 1e3,
    }


async def neighbour(server: Running, scale: Scale, seed: str) -> Measures:
    """One client, while another process wants the machine as well."""
    with busy_neighbour():
        await asyncio.sleep(SETTLE)
        return await plain(server, scale, seed, count=1)


async def sampled(server: Running, scale: Scale, seed: str) -> Measures:
    """16 clients greedily, then 16 with temperature 0.8 and top_p 0.95, and what the second costs more."""
    greedy = await _stories(server, f"{seed}/greedy", count=16, rounds=1, output=scale.output)
    drawn = await _stories(
        server, f"{seed}/drawn", count=16, rounds=1, output=scale.output, temperature=0.8, top_p=0.95
    )
    gaps = quantile(greedy.gaps, 0.5), quantile(drawn.gaps, 0.5)
    return _measures(drawn) | {"greedy_gap_ms": gaps[0] * 1e3, "slowdown": gaps[1] / gaps[0]}


SCENARIOS: Final[dict[str, Scenario]] = {
    "clients_1": partial(plain, count=1),
    "clients_4": partial(plain, count=4),
    "clients_16": partial(plain, count=16),
    "streaming": streaming,
    "sampled": sampled,
    "shared": shared,
    "agent": agent,
    "agents": agents,
    "long": long_prompt,
    "neighbour": neighbour,
}
"""In the order in which they run."""


async def _stories(
    server: Running, seed: str, *, count: int, rounds: int, output: int, **sampling: float
) -> Load:
    work: Sequence[Sequence[Body]] = [
        [
            bodies.story(MODEL_ID, f"{seed}/{client}/{number}", output=output) | sampling
            for number in range(rounds)
        ]
        for client in range(count)
    ]
    return await clients(server.url, work)


async def _running(server: Running, seed: str, *, count: int, output: int) -> list[asyncio.Task[Answer]]:
    """Streams that have all begun."""
    texts = [bodies.story(MODEL_ID, f"{seed}/{number}", output=output) for number in range(count)]
    streams = [Stream(server.url, body) for body in texts]
    running = [asyncio.create_task(stream.run()) for stream in streams]
    await asyncio.gather(*(stream.begun.wait() for stream in streams))
    return running


async def _converse(server: Running, scale: Scale, common: str, own: str) -> list[Answer]:
    instructions = bodies.AGENT + bodies.words(common, 6 * RESULT)
    history: list[Body] = []
    answers: list[Answer] = []
    for number in range(scale.turns):
        history.append(bodies.result(f"{own}/{number}", RESULT))
        answers.append(
            await ask(server.url, bodies.turn(MODEL_ID, instructions, history, output=scale.output))
        )
        history.append(bodies.said(answers[-1].text))
    return answers


def _conversations(talks: Sequence[list[Answer]]) -> Measures:
    """`reused` is how much of what the turn before had read and written was read from a cache."""
    pairs = [pair for answers in talks for pair in pairwise(answers)]
    known = sum(before.input_tokens + before.output_tokens for before, _ in pairs)
    load = Load(tuple(answer for answers in talks for answer in answers))
    return _measures(load) | {"reused": sum(after.cached_tokens for _, after in pairs) / known}


def _measures(load: Load) -> Measures:
    return {
        "total_s": load.seconds,
        "tokens_s": load.tokens_s,
        "first_s": load.first,
        "gap_ms": quantile(load.gaps, 0.5) * 1e3,
        "gap_p95_ms": quantile(load.gaps, 0.95) * 1e3,
        "cached_share": load.cached_share,
    }
