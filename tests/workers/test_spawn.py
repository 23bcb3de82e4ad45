from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from b3node.workers import spawn as spawning
from b3node.workers.spawn import spawn, spawn_ahead
from b3node.workers.startup import prestart
from tests.nodes import NodeProcess, children, is_alive, node_process, until
from tests.zoo.zoo import Zoo


@pytest.fixture(scope="module")
def endless(zoo: Zoo) -> Path:
    """A model that never ends by itself, and is slow enough to be caught in the middle."""
    return zoo.scripted([b"on ", b"and ", b"on "], end=0, n_layer=64)


@pytest.fixture
def node(endless: Path) -> Iterator[NodeProcess]:
    with node_process({"m": endless}) as running:
        yield running


@pytest.fixture(scope="module")
def shared(endless: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A node that no test ends, started where files lie that are called like modules."""
    folder = tmp_path_factory.mktemp("here")
    for name in ("numpy", "msgspec", "select", "json"):
        (folder / f"{name}.py").write_text("raise SystemExit('not this one')")
    with node_process({"m": endless}, cwd=folder) as running:
        yield running


def test_children_die_with_their_parent(node: NodeProcess) -> None:
    """A front that is killed leaves no process: neither an engine in the middle of a stream, nor a child that
    hangs and cannot see that its socket closed.
    """
    pids = children(node.pid)
    assert sorted(pids) == ["engine 0", "prepare 0"]
    with node.stream("m") as stream:
        stream.until("response.output_text.delta")
        os.kill(pids["prepare 0"], signal.SIGSTOP)
        node.process.kill()
        node.process.wait()

    until(lambda: not any(map(is_alive, pids.values())), "every child is gone")


def test_an_interrupt_drains(node: NodeProcess) -> None:
    """Ctrl-C reaches the front alone: requests in flight are finished, new ones are refused, and all
    processes end, without a traceback.
    """
    pids = children(node.pid)
    with node.stream("m", max_output_tokens=300) as stream:
        stream.until("response.output_text.delta")
        os.kill(
            pids["engine 0"], signal.SIGSTOP
        )  # so that it is under way for as long as this test looks at it
        node.interrupt()
        node.logged(event="draining", in_flight=1)
        refused = node.post("m")
        assert (refused.status, refused.code) == (503, "node_unavailable")
        assert int(refused.headers["retry-after"]) >= 1
        assert node.get("/readyz").json["status"] == "draining"
        os.kill(pids["engine 0"], signal.SIGCONT)
        last = list(stream)[-1]

    assert last["type"] == "response.incomplete"
    assert last["response"]["usage"]["output_tokens"] == 300
    assert node.wait() == 0
    assert not any(map(is_alive, pids.values()))
    assert "Traceback" not in "\n".join(node.said)


def test_a_second_interrupt_ends_everything_at_once(node: NodeProcess) -> None:
    """The stream ends with its error, the children end, and there is no traceback."""
    pids = children(node.pid)
    with node.stream("m") as stream:
        stream.until("response.output_text.delta")
        node.interrupt()
        node.logged(event="draining")
        node.interrupt()
        assert node.wait() == 0

    assert not any(map(is_alive, pids.values()))
    assert "Traceback" not in "\n".join(node.said)


def test_children_ignore_what_lies_where_the_node_was_started(shared: NodeProcess) -> None:
    """A directory with files that are called like modules cannot change what children import."""
    assert shared.post("m", max_output_tokens=2).text == "on and "


def test_the_front_does_not_load_the_library(shared: NodeProcess) -> None:
    """llama.cpp aborts its process on several hundred occasions, so it is in the engine and not in the
    front.
    """
    engine = children(shared.pid)["engine 0"]

    assert "libllama" in Path(f"/proc/{engine}/maps").read_text("utf-8")
    assert "libllama" not in Path(f"/proc/{shared.pid}/maps").read_text("utf-8")


def test_a_child_has_its_end_of_the_line_and_no_other_descriptor(shared: NodeProcess) -> None:
    """Neither the listener nor a client's connection is in a child's hands."""
    with shared.stream("m") as stream:
        stream.until("response.output_text.delta")
        for pid in children(shared.pid).values():
            held = {str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}
            assert sum(target.startswith("socket:") for target in held) == 1


def test_a_child_without_its_parent_does_not_start() -> None:
    """If the parent dies before its child is tied to it, the child ends by itself."""
    script = "import sys; from b3node.workers.spawn import inherit; inherit(sys.argv); print('goes on')"
    command = [sys.executable, "-P", "-c", script]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        said = [
            subprocess.run(
                [*command, str(theirs.fileno()), str(parent)],
                pass_fds=[theirs.fileno()],
                capture_output=True,
                check=True,
            ).stdout
            for parent in (os.getpid(), os.getpid() + 1)
        ]

    assert said == [b"goes on\n", b""]


def test_a_child_that_was_started_ahead_is_handed_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `spawn` takes it, the next one starts another; other variables are another child."""
    monkeypatch.setattr(spawning, "_ahead", {})
    spawn_ahead("b3node.workers.prepare_process")
    (ready,) = (process.pid for process, _ in spawning._ahead.values())
    started = [
        spawn("b3node.workers.prepare_process", environment={"B": "3"}),
        spawn("b3node.workers.prepare_process"),
        spawn("b3node.workers.prepare_process"),
    ]
    for process, sock in started:
        sock.close()
        process.kill()
        process.wait()

    assert [process.pid == ready for process, _ in started] == [False, True, False]


def test_children_that_were_not_taken_end_with_the_context() -> None:
    """A command that is refused leaves no process."""
    with prestart():
        pids = [process.pid for process, _ in spawning._ahead.values()]

    assert len(pids) == 2
    assert not any(map(is_alive, pids))
    assert not spawning._ahead
