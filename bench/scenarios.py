"""What is asked of a server, and what is measured of its answers.

A scenario's `pieces` are an async generator of a running server, a scale and a seed: it does one piece of
work each time it is advanced, seconds long, so that several servers can be asked in turn, and gives the
piece's measures: numbers by name, where `_s` and `_ms` are durations, `tokens_s` is tokens a second with the
prompts included, `gap` is the median time between two pieces of text of a stream and `first` the median time
to its first one. The same seed asks the same of every server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Final

import msgspec

from b3node.embedded import MODEL_ID
from bench import bodies
from bench.bodies import Body
from bench.load import Load, Stream, ask, clients, quantile
from bench.pairs import Measures, in_turn
from bench.processes import busy_neighbour
from bench.reply import Answer
from bench.servers import Running


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Amounts. `output`: tokens an answer; `rounds`: how often each server is asked in a repetition."""

    name: str
    repetitions: int
    output: int
    rounds: dict[str, int]
    shared_clients: int
    prefix: int
    agents: int
    streams: int
    long_prompt: int


FULL: Final = Scale(
    name="full",
    repetitions=2,
    output=64,
    rounds={
        "clients_1": 6,
        "clients_4": 3,
        "clients_16": 2,
        "streaming": 1,
        "sampled": 4,
        "shared": 1,
        "agent": 10,
        "agents": 6,
        "long": 1,
        "neighbour": 4,
    },
    shared_clients=16,
    prefix=823,  # words: with the template around it 831 tokens that all 16 prompts begin with
    agents=4,
    streams=8,
    long_prompt=1450,  # words: about 1500 tokens with the question and the template
)
QUICK: Final = Scale(
    name="quick",
    repetitions=1,
    output=32,
    rounds={
        "clients_1": 4,
        "clients_4": 2,
        "clients_16": 1,
        "streaming": 1,
        "sampled": 1,
        "shared": 1,
        "agent": 4,
        "agents": 3,
        "long": 1,
        "neighbour": 2,
    },
    shared_clients=4,
    prefix=823,
    agents=2,
    streams=8,
    long_prompt=700,
)
"""Some three minutes: whether everything works, and where things stand; the bars are for the full scale."""

RESULT: Final = 50
"""Words of a message in a conversation, and of what its instructions say beside the task: 6 times as many."""
SETTLE: Final = 0.3
"""Seconds for a busy neighbour to be running, or for streams to run evenly, before anything is measured."""
PROMPT: Final = 48
"""Tokens of a story's prompt, in the embedded model's template: the raw loop computes as many."""
SAMPLING: Final[dict[str, Body]] = {"greedy": {}, "drawn": {"temperature": 0.8, "top_p": 0.95}}

Once = Callable[[Running, Scale, str], Coroutine[None, None, Measures]]
Pieces = Callable[[Running, Scale, str, int], AsyncIterator[Measures]]
"""The pieces of so many rounds."""


class Scenario(msgspec.Struct, frozen=True):
    """What is asked, of any server, and what is there beside it meanwhile.

    `raw` is the batch of the raw loop that is asked in turn with the servers; 0: none.
    """

    pieces: Pieces
    raw: int = 0
    beside: Callable[[], AbstractContextManager[None]] = nullcontext


async def warm_up(server: Running) -> float:
    """Lets caches, threads and buffers settle; returns how long the very first answer took, in seconds."""
    first = await ask(server.url, bodies.story(MODEL_ID, "warm up", output=1))
    await _stories(server, "warm up", count=16, output=12)
    return first.total


def repeated(once: Once) -> Pieces:
    """The same thing each round, with a seed of its own."""

    async def pieces(server: Running, scale: Scale, seed: str, rounds: int) -> AsyncIterator[Measures]:
        for number in range(rounds):
            yield await once(server, scale, f"{seed}/{number}")

    return pieces


async def plain(server: Running, scale: Scale, seed: str, *, count: int) -> Measures:
    """One request of each of `count` clients, all at once, with prompts that have nothing in common."""
    return _measures(await _stories(server, seed, count=count, output=scale.output))


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


def agent(server: Running, scale: Scale, seed: str, rounds: int) -> AsyncIterator[Measures]:
    """One conversation: each turn sends everything back with a new message."""
    return _conversations(server, scale, seed, rounds, count=1)


def agents(server: Running, scale: Scale, seed: str, rounds: int) -> AsyncIterator[Measures]:
    """Several conversations with the same instructions, a turn of each at once, then the next of each."""
    return _conversations(server, scale, seed, rounds, count=scale.agents)


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


async def sampled(server: Running, scale: Scale, seed: str, rounds: int) -> AsyncIterator[Measures]:
    """16 clients greedy and 16 with temperature 0.8 and top_p 0.95, in turn, and the cost of the second."""
    for number in range(rounds):
        loads = {
            kind: await _stories(
                server, f"{seed}/{number}/{kind}", count=16, output=scale.output, sampling=SAMPLING[kind]
            )
            for kind in in_turn(tuple(SAMPLING), number)
        }
        greedy, drawn = (quantile(loads[kind].gaps, 0.5) for kind in SAMPLING)
        yield _measures(loads["drawn"]) | {"greedy_gap_ms": greedy * 1e3, "slowdown": drawn / greedy}


@contextmanager
def settled_neighbour() -> Iterator[None]:
    """Another process that wants the machine as well, and is at it."""
    with busy_neighbour():
        time.sleep(SETTLE)
        yield


SCENARIOS: Final[dict[str, Scenario]] = {
    "clients_1": Scenario(repeated(partial(plain, count=1)), raw=1),
    "clients_4": Scenario(repeated(partial(plain, count=4)), raw=4),
    "clients_16": Scenario(repeated(partial(plain, count=16)), raw=16),
    "streaming": Scenario(repeated(streaming)),
    "sampled": Scenario(sampled),
    "shared": Scenario(repeated(shared)),
    "agent": Scenario(agent),
    "agents": Scenario(agents),
    "long": Scenario(repeated(long_prompt)),
    "neighbour": Scenario(repeated(partial(plain, count=1)), beside=settled_neighbour),
}
"""In the order in which they run."""


async def _stories(
    server: Running, seed: str, *, count: int, output: int, sampling: Body | None = None
) -> Load:
    stories = [bodies.story(MODEL_ID, f"{seed}/{client}", output=output) for client in range(count)]
    return await clients(server.url, [[story | (sampling or {})] for story in stories])


async def _running(server: Running, seed: str, *, count: int, output: int) -> list[asyncio.Task[Answer]]:
    """Streams that have all begun."""
    texts = [bodies.story(MODEL_ID, f"{seed}/{number}", output=output) for number in range(count)]
    streams = [Stream(server.url, body) for body in texts]
    running = [asyncio.create_task(stream.run()) for stream in streams]
    await asyncio.gather(*(stream.begun.wait() for stream in streams))
    return running


async def _conversations(
    server: Running, scale: Scale, seed: str, rounds: int, *, count: int
) -> AsyncIterator[Measures]:
    """A piece is a turn; behind the last one come the measures of the whole, for no work.

    These are `total_s`, the time that all turns took, and `reused`, how much of what the turn before had read
    and written was read from a cache.
    """
    instructions = bodies.AGENT + bodies.words(seed, 6 * RESULT)
    histories: list[list[Body]] = [[] for _ in range(count)]
    turns: list[Load] = []
    for number in range(rounds):
        for who, history in enumerate(histories):
            history.append(bodies.result(f"{seed}/{who}/{number}", RESULT))
        work = [[bodies.turn(MODEL_ID, instructions, history, output=scale.output)] for history in histories]
        turns.append(await clients(server.url, work))
        for history, answer in zip(histories, turns[-1].answers, strict=True):
            history.append(bodies.said(answer.text))
        measures = _measures(turns[-1])
        yield {"turn_s": measures.pop("total_s")} | measures
    yield {"total_s": sum(turn.seconds for turn in turns), "reused": _reused(turns)}


def _reused(turns: Sequence[Load]) -> float:
    pairs = [pair for one, other in pairwise(turns) for pair in zip(one.answers, other.answers, strict=True)]
    known = sum(before.input_tokens + before.output_tokens for before, _ in pairs)
    return sum(after.cached_tokens for _, after in pairs) / known


def _measures(load: Load) -> Measures:
    return {
        "total_s": load.seconds,
        "tokens_s": load.tokens_s,
        "first_s": load.first,
        "gap_ms": quantile(load.gaps, 0.5) * 1e3,
        "gap_p95_ms": quantile(load.gaps, 0.95) * 1e3,
        "cached_share": load.cached_share,
    }
