from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from b3node.api.app import create_app
from b3node.api.server import Server, Shutdown
from b3node.service.node import Node
from tests.api.serving import Line, Running, ask, frames, get, post, serving
from tests.service.fakes import FakeModel, Gate, Step, finished, said, started, token

ROOT = Path(__file__).parents[2]


def test_any_free_port_is_a_real_one() -> None:
    """Port 0 listens on a port of the system's choice and tells which."""
    with serving(FakeModel()) as node:
        assert node.port > 0
        assert ask(node, get("/healthz")).status == 200


def test_a_port_in_use_is_an_error_at_once() -> None:
    """The operator hears that the address is taken before anything is served."""
    node = Node("n1", [FakeModel()])
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        Server(create_app(node), node, port=taken.getsockname()[1])


def test_draining_lets_requests_finish_and_nobody_in() -> None:
    """After the first stop, readiness is gone within 0.1 s, new requests are refused, old ones finish."""
    gate = Gate()
    model = FakeModel([started(), token("a"), gate, token("b"), finished("stop", 2)], said("c"))
    with serving(model) as node, Line(node) as stream, Line(node) as kept:
        stream.send(post({"stream": True}))
        stream.head()
        assert gate.reached.wait(5)
        assert kept.ask(get("/readyz")).status == 200
        node.stop()
        while (ready := kept.ask(get("/readyz"))).status == 200:
            pass

        assert (ready.status, ready.json["status"]) == (503, "draining")
        refused = ask(node, post({}))  # on a connection that is opened only now
        assert (refused.status, refused.code) == (503, "node_unavailable")
        assert refused.headers["retry-after"] == "5"
        assert ask(node, get("/healthz")).status == 200
        assert not node.ended.wait(0.2)
        gate.open()
        assert b"response.completed" in b"".join(iter(stream.chunk, b""))
        assert node.ended.wait(2)


def test_a_drain_that_takes_too_long_ends_with_words() -> None:
    """When the time is up, streams end with their error event and bodies with 503; then the node is gone."""
    with serving(
        FakeModel([started(), token("a"), Gate()]), shutdown=Shutdown(drain_seconds=0.2, halt_seconds=1.0)
    ) as node:
        with Line(node) as stream, Line(node) as body:
            stream.send(post({"stream": True}))
            body.send(post({}))
            head = stream.head()
            node.wait_for_flights(2)
            node.stop()
            events = [json.loads(chunk.partition(b"data: ")[2]) for chunk in iter(stream.chunk, b"")]
            answer = body.answer()

        assert head[0] == 200
        assert [event["type"] for event in events[-2:]] == ["response.failed", "error"]
        assert events[-1]["code"] == "node_unavailable"
        assert (answer.status, answer.code) == (503, "node_unavailable")
        assert node.ended.wait(2)


def test_a_reader_that_stalls_does_not_hold_the_end_up() -> None:
    """A stream whose client does not read cannot be told; it is cut off when the goodbye is over."""
    model = FakeModel([started(), *[token("x" * 4_000)] * 4_000])
    with serving(model, shutdown=Shutdown(drain_seconds=0.1, halt_seconds=0.5), stall_seconds=60) as node:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", node.port))
        with connection:
            connection.sendall(post({"stream": True}))
            node.wait_for_flights(1)
            time.sleep(0.2)
            node.stop()

            assert node.ended.wait(4)
    assert model.generations[0].cancelled.wait(1)


def test_a_second_stop_does_not_wait() -> None:
    """Whoever asks twice gets the end within two seconds, and the engine is told."""
    model = FakeModel([started(), token("a"), Gate()])
    with serving(model, shutdown=Shutdown(drain_seconds=60.0)) as node, Line(node) as stream:
        stream.send(post({"stream": True}))
        stream.head()
        node.stop()
        assert not node.ended.wait(0.2)
        node.stop()

        assert node.ended.wait(2)
    assert model.generations[0].cancelled.is_set()


class Process(Running):
    """A node in a process of its own."""

    def __init__(self, drain_seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.api.node_process", str(drain_seconds)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def end(self) -> tuple[int, list[dict[str, object]]]:
        """The exit status and the log, once the process has ended."""
        _, log = self.process.communicate(timeout=5)
        return self.process.returncode, [json.loads(line) for line in log.splitlines()]


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    running = Process(request.param)
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.communicate()


@pytest.mark.parametrize("process", [0.3], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_exits_cleanly(process: Process, number: signal.Signals) -> None:
    """SIGTERM, or Ctrl-C, ends the node in order: the stream with its error, the process with 0."""
    assert ask(process, post({})).status == 200
    with Line(process) as stream:
        stream.send(post({"input": "slow", "stream": True}))
        stream.head()
        process.process.send_signal(number)
        last = list(iter(stream.chunk, b""))[-1]
    status, log = process.end()

    assert last.startswith(b"event: error\n")
    assert status == 0
    assert [line["event"] for line in log] == ["request", "draining", "drain_ended", "request"]


@pytest.mark.parametrize("process", [60.0], indirect=True)
def test_a_second_signal_ends_at_once(process: Process) -> None:
    """The second SIGTERM ends the process without waiting for the drain, whatever is in flight."""
    with Line(process) as stream:
        stream.send(post({"input": "slow", "stream": True}))
        stream.head()
        process.process.send_signal(signal.SIGTERM)
        while ask(process, get("/readyz")).status == 200:
            pass
        process.process.send_signal(signal.SIGTERM)
        status, _ = process.end()

    assert status == 0


@pytest.mark.parametrize("process", [1.0], indirect=True)
def test_a_node_that_is_asked_nothing_sleeps(process: Process) -> None:
    """Between requests, and between tokens, nothing wakes it: each look at nothing would cost as much as a
    token.
    """

    def naps() -> int:
        status = Path(f"/proc/{process.process.pid}/status").read_text()
        return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])

    ask(process, get("/healthz"))
    time.sleep(0.2)
    before = naps()
    time.sleep(0.5)
    assert naps() - before <= 1


def test_every_answer_has_a_date_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """`date` is made for the answer that bears it, also for one that never reaches a route."""
    days = iter(["first", "second", "third"])
    monkeypatch.setattr("b3node.api.server.formatdate", lambda **_: next(days))
    with serving(FakeModel()) as node, Line(node) as line:
        answers = [line.ask(get("/healthz")), line.ask(get("/healthz")), line.ask(b"no request\r\n\r\n")]
    assert [answer.headers["date"] for answer in answers] == ["first", "second", "third"]


def test_streams_of_a_drained_node_are_whole() -> None:
    """Eight streams that run when the node is stopped all come to their proper end."""
    gates = [Gate() for _ in range(8)]
    scripts: list[list[Step]] = [
        [started(), token("a"), gate, token("b"), finished("stop", 2)] for gate in gates
    ]
    with serving(FakeModel(*scripts, said("x"))) as node:
        lines = [Line(node) for _ in gates]
        for line in lines:
            line.send(post({"stream": True}))
        assert all(gate.reached.wait(5) for gate in gates)
        node.stop()
        for gate in gates:
            gate.open()
        ends = [frames(line.answer())[-1] for line in lines]
        for line in lines:
            line.__exit__()

    assert [end["type"] for end in ends] == ["response.completed"] * 8
    assert {end["response"]["output"][0]["content"][0]["text"] for end in ends} == {"ab"}
