from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from b3node.contract.request import Message, Request, TextPart
from b3node.errors import BUSY_RETRY_SECONDS, Refusal
from b3node.prompt.prepared import Prepared
from b3node.workers import prepare_pool, supervisor
from b3node.workers.messages import PrepareCrashed, PrepareOrder
from b3node.workers.prepare_pool import PrepareError, PreparePool
from b3node.workers.timeouts import Timeouts
from tests.nodes import is_alive, slay
from tests.zoo.zoo import Zoo

HOLDS_UP = (
    "{%- set text = messages[-1]['content'] -%}"
    "{%- if text | length == 60 -%}{%- for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor -%}"
    "{%- elif text | length == 70 -%}{{ ('x' * (text | length * 100000000)) | length }}"
    "{%- endif -%}{{ text }}"
)
"""Writes its input, but never ends with 60 characters, and takes 7 GB for 70."""
NEVER_READY = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
ENDLESS, HUGE = "x" * 60, "x" * 70


def saying(text: str) -> Request:
    return Request(model="m", input=(Message("user", (TextPart(text),)),))


def text_of(prepared: Prepared) -> str:
    """Returns the text of a prompt of single bytes; the tiny models' first 256 tokens are the bytes."""
    return bytes(np.frombuffer(prepared.tokens, np.int32).tolist()).decode()


@asynccontextmanager
async def pool(path: Path, timeouts: Timeouts, size: int = 1) -> AsyncIterator[PreparePool]:
    workers = PreparePool("m", PrepareOrder(str(path)), size=size, timeouts=timeouts)
    workers.start()
    try:
        async with asyncio.timeout(60):
            await workers.settle()
            yield workers
    finally:
        await workers.stop()


async def soon(holds: Callable[[], object]) -> None:
    while not holds():  # noqa: ASYNC110 - the state is the child's
        await asyncio.sleep(0.005)


async def hold(pid: int | None) -> None:
    """Stops a process; returns once it stands still, which takes a while on a busy machine."""
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    await soon(lambda: stat.read_text("ascii").rpartition(")")[2].split()[0] == "T")


def run(main: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await main

    asyncio.run(bounded())


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker in an endless loop need not be waited for when its pool is stopped."""
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.05)


@pytest.fixture(scope="module")
def model(zoo: Zoo) -> Path:
    return zoo.scripted([b"Hello"], template=HOLDS_UP)


def test_a_worker_writes_and_tokenizes(model: Path) -> None:
    """A request comes back as the tokens of the template's text."""

    async def main() -> None:
        async with pool(model, Timeouts()) as workers:
            prepared = await workers.prepare(saying("Hello!"), 4096)
            assert text_of(prepared) == "Hello!"
            assert prepared.prompt_tokens == 6
            assert workers.traits
            assert (workers.traits.template, workers.traits.tools) == (True, "text")
        assert PreparePool("m", PrepareOrder(""), size=1).traits is None

    run(main())


def test_a_worker_that_is_killed_takes_only_its_request_with_it(model: Path) -> None:
    """Its request fails and may be sent again; the following one is served by the next
    worker.
    """

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0, pause=0.0)) as workers:
            first = workers.workers[0].pid
            doomed = asyncio.ensure_future(workers.prepare(saying(ENDLESS), 4096))
            waiting = asyncio.ensure_future(workers.prepare(saying("Hello!"), 4096))
            await soon(lambda: workers.workers[0]._answer)
            assert first is not None
            slay(first)
            with pytest.raises(Refusal) as caught:
                await doomed
            assert caught.value.code == "infer_backend_unavailable"
            assert caught.value.retry_after == 1
            assert text_of(await waiting) == "Hello!"
            assert workers.workers[0].pid != first

    run(main())


def test_a_request_that_ends_its_worker_again_is_refused(model: Path) -> None:
    """After the second time it is not tried any more; others are."""

    async def killed(workers: PreparePool, text: str) -> Refusal:
        asked = asyncio.ensure_future(workers.prepare(saying(text), 4096))
        await soon(lambda: workers.workers[0].ready.is_set() and workers.workers[0]._answer)
        pid = workers.workers[0].pid
        assert pid is not None
        slay(pid)
        with pytest.raises(Refusal) as caught:
            await asked
        return caught.value

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0, pause=0.0)) as workers:
            assert (await killed(workers, ENDLESS)).code == "infer_backend_unavailable"
            assert text_of(await workers.prepare(saying("Hello!"), 4096)) == "Hello!"
            assert (await killed(workers, ENDLESS)).code == "infer_backend_unavailable"
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying(ENDLESS), 4096)
            assert caught.value.code == "internal"
            assert text_of(await workers.prepare(saying("Hello!"), 4096)) == "Hello!"

    run(main())


def test_a_request_over_its_budget_is_refused_and_its_worker_replaced(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client gets an error about its input; the next request finds a new worker, which was started at
    once and not after the pause for crashes.
    """
    monkeypatch.setattr(prepare_pool, "_MAX_PAUSE_SECONDS", 3600.0)

    async def main() -> None:
        async with pool(model, Timeouts(prepare=1.0, pause=3600.0)) as workers:
            first = workers.workers[0].pid
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying(ENDLESS), 4096)
            assert (caught.value.code, caught.value.param) == ("invalid_request", "input")
            assert first is not None
            await soon(lambda: not is_alive(first))
            await soon(workers.workers[0].ready.is_set)

    run(main())


def test_a_request_that_the_machine_has_no_time_for_is_told_to_come_back(model: Path) -> None:
    """A worker that is not let compute says nothing about the input: the client gets 503 and when to try
    again, and the next one finds a new worker.
    """

    async def main() -> None:
        async with pool(model, Timeouts(prepare=0.4, pause=3600.0)) as workers:
            first = workers.workers[0].pid
            assert first is not None
            await hold(first)
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying("Hello!"), 4096)
            assert (caught.value.code, caught.value.retry_after) == (
                "capacity_unavailable",
                BUSY_RETRY_SECONDS,
            )
            assert text_of(await patiently(workers, "Hello!")) == "Hello!"
            assert workers.workers[0].pid != first

    run(main())


async def patiently(workers: PreparePool, text: str) -> Prepared:
    """A prompt, asked for again as long as the machine has no time for it."""
    while True:
        with suppress(Refusal):
            return await workers.prepare(saying(text), 4096)


def test_a_worker_that_waits_for_the_machine_is_waited_for(model: Path) -> None:
    """CPU time counts, however long the wait for it lasts."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=0.5, prepare_starved=1000.0)) as workers:
            first = workers.workers[0].pid
            assert first is not None
            await hold(first)
            asked = asyncio.ensure_future(workers.prepare(saying("Hello!"), 4096))
            await asyncio.sleep(1.0)
            os.kill(first, signal.SIGCONT)
            assert text_of(await asked) == "Hello!"
            assert workers.workers[0].pid == first

    run(main())


def test_where_nobody_knows_what_was_computed_the_clock_decides(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On such a system an endless request is its client's fault after a while, as ever."""
    monkeypatch.setattr(prepare_pool, "cpu_seconds", lambda _: None)

    async def main() -> None:
        async with pool(model, Timeouts(prepare=0.2)) as workers:
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying(ENDLESS), 4096)
            assert (caught.value.code, caught.value.param) == ("invalid_request", "input")

    run(main())


def test_a_probe_prepares_a_prompt(model: Path) -> None:
    """It asks a worker, unless one has just answered; a worker that does not answer fails it within its
    time.
    """

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0, pause=3600.0)) as workers:
            worker = workers.workers[0]
            assert await workers.probe(30.0, 4096)
            assert worker.pid is not None
            await hold(worker.pid)
            assert await workers.probe(0.1, 4096), "it has just answered"
            worker.answered = float("-inf")
            assert not await workers.probe(0.1, 4096)
            slay(worker.pid)
            await soon(lambda: not worker.ready.is_set())
            worker.answered = time.monotonic()
            assert not await workers.probe(0.1, 4096), "what has answered is gone"

    run(main())


def test_a_template_that_takes_only_some_requests_prepares_prompts(zoo: Zoo) -> None:
    """A refusal is an answer; a bug is none."""

    async def main() -> None:
        path = zoo.scripted(
            [b"Hello"], template="{{ messages[0]['content'] if messages[0]['content'] != 'Hello' }}"
        )
        async with pool(path, Timeouts(prepare=60.0)) as workers:
            assert await workers.probe(30.0, 4096)

        async with pool(path, Timeouts(prepare=60.0)) as workers:
            worker = workers.workers[0]
            assert worker.pid is not None
            await hold(worker.pid)
            probing = asyncio.ensure_future(workers.probe(30.0, 4096))
            await soon(lambda: worker._answer)
            worker._on_message(PrepareCrashed("Traceback ..."))
            assert not await probing
            os.kill(worker.pid, signal.SIGCONT)

    run(main())


def test_a_large_request_has_a_larger_budget(model: Path) -> None:
    """Every megabyte adds time, in any part of the request."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=0.0, prepare_megabyte=60_000.0)) as workers:
            assert text_of(await workers.prepare(saying("Hello! " * 100), 4096)) == "Hello! " * 100

    run(main())


def test_a_request_over_the_memory_is_refused(model: Path) -> None:
    """A worker's memory is bounded, so a request that needs more fails alone, and the worker goes on."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0)) as workers:
            first = workers.workers[0].pid
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying(HUGE), 4096)
            assert (caught.value.code, caught.value.param) == ("invalid_request", "input")
            assert text_of(await workers.prepare(saying("Hello!"), 4096)) == "Hello!"
            assert workers.workers[0].pid == first

    run(main())


def test_a_client_that_leaves_does_not_free_a_busy_worker(model: Path) -> None:
    """The next request waits until the worker has answered, so no client gets another one's prompt."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0, pause=0.0)) as workers:
            first = workers.workers[0].pid
            left = asyncio.ensure_future(workers.prepare(saying(ENDLESS), 4096))
            await soon(lambda: workers.workers[0]._answer)
            left.cancel()
            waiting = asyncio.ensure_future(workers.prepare(saying("Hello!"), 4096))
            await asyncio.sleep(0.05)
            assert not waiting.done()
            assert first is not None
            slay(first)
            assert text_of(await waiting) == "Hello!"

    run(main())


def test_waiting_for_a_worker_is_bounded(model: Path) -> None:
    """A request that finds no worker in time is answered with a time to come back."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0, worker=0.1)) as workers:
            busy = asyncio.ensure_future(workers.prepare(saying(ENDLESS), 4096))
            await soon(lambda: workers.workers[0]._answer)
            with pytest.raises(Refusal) as caught:
                await workers.prepare(saying("Hello!"), 4096)
            assert (caught.value.code, caught.value.retry_after) == (
                "capacity_unavailable",
                BUSY_RETRY_SECONDS,
            )
            busy.cancel()

    run(main())


def test_two_workers_prepare_side_by_side(model: Path) -> None:
    """A request that takes long holds up its own worker only."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0), size=2) as workers:
            busy = asyncio.ensure_future(workers.prepare(saying(ENDLESS), 4096))
            assert text_of(await workers.prepare(saying("Hello!"), 4096)) == "Hello!"
            assert not busy.done()
            busy.cancel()

    run(main())


def test_a_template_that_does_not_compile_fails_the_model(zoo: Zoo) -> None:
    """The worker says so, and is not started again: it would say the same."""

    async def main() -> None:
        path = zoo.scripted([b"Hello"], template="{% if %}")
        async with pool(path, Timeouts()) as workers:
            keeping = workers.workers[0]._child._task
            assert workers.failed
            assert keeping is not None
            await asyncio.wait([keeping])

    run(main())


def test_a_template_that_does_not_end_fails_the_model(zoo: Zoo) -> None:
    """One that never comes to an end when it is tried is noticed, and does not keep the node from
    starting.
    """

    async def main() -> None:
        path = zoo.scripted([b"Hello"], template=NEVER_READY)
        async with pool(path, Timeouts(prepare_load=2.0)) as workers:
            assert workers.failed

    run(main())


def test_a_bug_in_preparing_is_told_as_one(model: Path) -> None:
    """A worker's report of a bug is raised, for the log; it costs one request and not the worker."""

    async def main() -> None:
        async with pool(model, Timeouts(prepare=60.0)) as workers:
            asked = asyncio.ensure_future(workers.prepare(saying(ENDLESS), 4096))
            await soon(lambda: workers.workers[0]._answer)
            workers.workers[0]._on_message(PrepareCrashed("Traceback ..."))
            with pytest.raises(PrepareError, match="Traceback"):
                await asked

    run(main())
