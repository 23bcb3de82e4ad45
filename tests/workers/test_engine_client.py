from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from b3node.config import ModelConfig
from b3node.engine.messages import Started, Step
from b3node.workers.engine_client import DOWN_RETRY_SECONDS, EngineClient
from b3node.workers.messages import EngineOrder
from b3node.workers.served_model import EngineLoad
from b3node.workers.timeouts import Timeouts
from tests.nodes import Answer, RunningFleet, running_fleet, slay, until
from tests.zoo.zoo import Zoo

WORDS = [b"on ", b"and ", b"on "]
DEATHS = [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT]


@pytest.fixture(scope="module")
def endless(zoo: Zoo) -> Path:
    """A model that never ends by itself, and is slow enough to be caught in the middle."""
    return zoo.scripted(WORDS, end=0, n_layer=64)


@pytest.fixture(scope="module")
def shared(endless: Path) -> Iterator[RunningFleet]:
    with running_fleet({"m": endless}) as running:
        yield running


@pytest.fixture
def node(shared: RunningFleet) -> RunningFleet:
    """A node whose engine is up, also after a test that killed it."""
    shared.ready("m")
    return shared


def gone(node: RunningFleet, engine: int) -> None:
    until(lambda: node.model("m").engine.pid != engine, "the loss is noticed")


def answers_again(node: RunningFleet, after: int) -> None:
    """The engine `after` is gone and replaced; meanwhile the node says when to come back, and then it
    serves.
    """
    gone(node, after)
    answer = node.post("m", max_output_tokens=2)
    while answer.status != 200:
        assert (answer.status, answer.code) == (503, "infer_backend_unavailable")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        answer = node.post("m", max_output_tokens=2)
    assert answer.text == "on and "


@pytest.mark.parametrize("death", DEATHS)
def test_an_idle_engine_that_dies_is_replaced(node: RunningFleet, death: signal.Signals) -> None:
    """However an engine ends, the front answers 503 with `Retry-After` until there is a new one."""
    engine = node.engine("m")
    slay(engine, death)

    answers_again(node, engine)


@pytest.mark.parametrize("death", DEATHS)
def test_a_stream_whose_engine_dies_ends_with_its_error(node: RunningFleet, death: signal.Signals) -> None:
    """Text so far stays; then come `response.failed`, one `error`, and the end."""
    engine = node.engine("m")
    with node.stream("m") as stream:
        said = stream.until("response.output_text.delta")["delta"]
        slay(engine, death)
        rest = list(stream)

    said += "".join(event["delta"] for event in rest[:-2])
    failed, error = rest[-2:]
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["output"][0]["content"][0]["text"] == said
    assert failed["response"]["usage"]["output_tokens"] >= 1
    assert error["type"] == "error"
    assert error["code"] == error["error"]["code"] == "infer_backend_unavailable"
    assert error["sequence_number"] == failed["sequence_number"] + 1
    answers_again(node, engine)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_whose_engine_dies_before_its_first_token_is_told_when_to_come_back(
    node: RunningFleet, stream: bool
) -> None:
    """Nothing was said yet, so it is a plain 503 with `Retry-After`, for streams too."""
    engine = node.engine("m")
    with ThreadPoolExecutor() as pool:
        os.kill(engine, signal.SIGSTOP)
        asked: Future[Answer] = pool.submit(node.post, "m", stream=stream)
        until(lambda: node.model("m").engine._live, "the request is with the engine")
        slay(engine)
        answer = asked.result()

    assert (answer.status, answer.code) == (503, "infer_backend_unavailable")
    assert int(answer.headers["retry-after"]) >= 1
    answers_again(node, engine)


def test_a_body_whose_engine_dies_is_a_plain_error(node: RunningFleet) -> None:
    """Without streaming nothing was sent yet, so the whole answer is the 503."""
    engine = node.engine("m")
    with ThreadPoolExecutor() as pool:
        asked: Future[Answer] = pool.submit(node.post, "m")
        until(lambda: node.model("m").engine._usual_step is not None, "tokens come")
        until(lambda: node.model("m").engine._live, "the request is with the engine")
        slay(engine)
        answer = asked.result()

    assert (answer.status, answer.code) == (503, "infer_backend_unavailable")
    answers_again(node, engine)


def test_an_engine_that_owes_nothing_may_be_silent(node: RunningFleet) -> None:
    """Once all is said, no silence is too long."""
    node.post("m", max_output_tokens=2)

    until(lambda: node.model("m").engine._step_due_since is None, "nothing is owed")


def test_a_probe_decodes_a_token(node: RunningFleet) -> None:
    """Readiness is proved by a real decode when none was seen lately."""
    client = node.model("m").engine
    client._last_token = float("-inf")

    assert node.call(client.probe(30.0))
    assert client._last_token > 0


def test_a_probe_fails_with_its_engine(node: RunningFleet) -> None:
    """An engine that is gone does not decode, and neither does one that hangs."""
    client = node.model("m").engine
    engine = node.engine("m")
    client._last_token = float("-inf")
    os.kill(engine, signal.SIGSTOP)

    assert not node.call(client.probe(0.1))
    slay(engine)
    assert not node.call(client.probe(30.0))
    answers_again(node, engine)


def test_an_engine_that_dies_again_and_again_is_given_up(endless: Path) -> None:
    """After so many crashes it stays down; the front lives on and says so."""
    with running_fleet({"m": endless}, timeouts=Timeouts(pause=0.0, crashes=2)) as node:
        first = node.engine("m")
        slay(first)
        until(lambda: node.model("m").engine.pid not in {first, None}, "it is started again")
        slay(node.engine("m"))
        until(lambda: node.model("m").state == "failed", "the engine is given up")

        answer = node.post("m")
        assert (answer.status, answer.headers["retry-after"]) == (503, str(DOWN_RETRY_SECONDS))
        assert node.get("/healthz").status == 200


@pytest.fixture(scope="module")
def impatient(endless: Path) -> Iterator[RunningFleet]:
    """A node that takes two seconds of silence for death; a busy machine may cause shorter ones."""
    with running_fleet({"m": endless}, timeouts=Timeouts(silence=2.0, pause=0.0, crashes=1000)) as running:
        yield running


def test_an_engine_that_hangs_is_killed(impatient: RunningFleet) -> None:
    """A stream that falls silent because its engine hangs ends with its error, and the engine is replaced."""
    engine = impatient.engine("m")
    with impatient.stream("m") as stream:
        stream.until("response.output_text.delta")
        os.kill(engine, signal.SIGSTOP)
        events = list(stream)

    assert [event["type"] for event in events[-2:]] == ["response.failed", "error"]
    assert events[-1]["code"] == "infer_backend_unavailable"
    answers_again(impatient, engine)


def test_an_engine_that_hangs_is_found_out_even_if_everybody_leaves(impatient: RunningFleet) -> None:
    """The engine owes a step for each message, whether or not a client waits for it."""
    engine = impatient.engine("m")
    with impatient.stream("m") as stream:
        stream.until("response.output_text.delta")
        os.kill(engine, signal.SIGSTOP)
    until(lambda: not impatient.model("m").engine._live, "the only client has left")

    answers_again(impatient, engine)


def test_a_request_that_hangs_engines_is_found_out_even_if_its_client_leaves(node: RunningFleet) -> None:
    """An engine computes requests without clients, too, and may die of them."""
    for _ in range(2):
        engine = node.engine("m")
        with node.stream("m", "hold on") as stream:
            stream.until("response.output_text.delta")
            os.kill(engine, signal.SIGSTOP)
        until(lambda: not node.model("m").engine._live, "the only client has left")
        slay(engine)
        gone(node, engine)
    node.ready("m")

    assert node.post("m", "hold on", max_output_tokens=2).code == "internal"
    assert node.post("m", "go on", max_output_tokens=2).text == "on and "


def unstarted(timeouts: Timeouts) -> EngineClient:
    """Returns a client whose engine never starts; tests send it messages."""
    order = EngineOrder(ModelConfig(path="x.gguf", queue=1, queue_seconds=1.0))
    return EngineClient("m", order, progress=lambda _m, _s: None, timeouts=timeouts)


def step(seconds: float, *, running: int = 1) -> Step:
    return Step(started=(), tokens=(), finished=(), running=running, waiting=0, seconds=seconds)


def test_how_long_an_engine_may_be_silent_depends_on_its_usual_step() -> None:
    """The longest time until its first step; then some of its usual steps, within bounds."""
    client = unstarted(Timeouts(silence=10.0, silence_steps=20.0, silence_most=60.0))
    assert client._allowed_silence() == 60.0

    client._on_message(step(0.01))
    assert client._allowed_silence() == 10.0
    for _ in range(100):
        client._on_message(step(1.0))
    assert 19.0 < client._allowed_silence() < 20.0
    for _ in range(100):
        client._on_message(step(30.0))
    assert client._allowed_silence() == 60.0


def test_the_load_of_the_last_step_is_kept_until_the_engine_ends() -> None:
    """Nothing is known before the first step of an engine; tokens are counted over all engines."""
    client = unstarted(Timeouts())
    brought = msgspec.structs.replace(
        step(0.01, running=3),
        started=(Started(1, 0.0, cached_tokens=10), Started(2, 0.0, cached_tokens=20)),
        cells_used=50,
        prompt_tokens=20,
    )
    loads = [client.load]
    client._on_message(brought)
    loads.append(client.load)
    client._on_exit(again=True)
    loads.append(client.load)
    client._on_message(brought)
    loads.append(client.load)

    first, second = (
        EngineLoad(running=3, waiting=0, cells_used=50, prompt_tokens=20 * n, cached_tokens=30 * n)
        for n in (1, 2)
    )
    assert loads == [None, first, None, second]


def test_a_silence_is_looked_at_more_often_the_longer_it_is() -> None:
    """Never later than it could be too long by a tenth; and seldom while nothing is owed, or steps come."""
    client = unstarted(Timeouts(silence=100.0))
    assert client._next_check() == 50.0

    client._on_message(step(0.01))
    assert client._step_due_since is not None
    assert 45.0 < client._next_check() <= 50.0
    client._step_due_since -= 80.0
    assert 9.9 < client._next_check() <= 10.0
    client._step_due_since -= 1000.0
    assert client._next_check() == 10.0


def test_an_engine_that_runs_something_owes_a_step_to_nobody_too() -> None:
    """A client that has left is still being computed until the engine says that it is not."""
    client = unstarted(Timeouts())

    client._on_message(step(0.01))
    assert client._step_due_since is not None
    client._on_message(step(0.01, running=0))
    assert client._step_due_since is None


async def stands_still(client: EngineClient) -> list[str]:
    """Why the watchdog kills an engine that owes a step, when the front itself stands still for a while."""
    killed: list[str] = []
    client._child.kill = lambda reason, **_: killed.append(reason)  # type: ignore[method-assign]  # no child here
    client._on_message(step(0.01))
    client.state = "ready"
    watching = asyncio.create_task(client._watch())
    await asyncio.sleep(0)
    time.sleep(1.0)  # noqa: ASYNC251 - that is the point
    await asyncio.sleep(0.01)
    watching.cancel()
    return killed


def test_a_front_that_stood_still_does_not_blame_the_engine() -> None:
    """The engine's messages meanwhile are still unread, so its silence is not counted."""
    client = unstarted(Timeouts(silence=0.5, silence_most=0.5))

    assert asyncio.run(stands_still(client)) == []
