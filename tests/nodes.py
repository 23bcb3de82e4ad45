"""Real nodes on loopback, with real engines and prepare workers on tiny models; always cleaned up.

`node_process(...)` is `b3node serve` as a person starts it: a process of its own, told by its command line.
`running_fleet(...)` is the same node in a thread of this process, for tests that must reach into it: its
models, their process ids, how long it waits for them.

Both are an `Endpoint`: a URL that can be asked over plain HTTP.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import uvloop

from b3node import config as configuration
from b3node.api.app import create_app
from b3node.api.server import Server, Shutdown
from b3node.service import log
from b3node.service.node import Node
from b3node.workers.fleet import Fleet, FleetModel
from b3node.workers.timeouts import Timeouts

T = TypeVar("T")
TIMEOUTS = Timeouts(pause=0.0, crashes=1000)
"""A crashed child is started again at once, however often."""
PATIENT = 60.0
"""Seconds after which a test gives up; no test waits that long unless something is broken."""
_URL = re.compile(r"(http://\S+)  ")

# Children are killed here with signals that dump core; nobody reads those.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def until(holds: Callable[[], T | None], what: str) -> T:
    """What `holds` returns as soon as that is true; looks often. Raises `TimeoutError` that names `what`."""
    deadline = time.monotonic() + PATIENT
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.005)
    return value


class Answer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return str(self.json["error"]["code"])

    @property
    def text(self) -> str:
        return output_text(self.json)


def output_text(response: Mapping[str, Any]) -> str:
    """All text of a response object."""
    return "".join(part["text"] for item in response["output"] for part in item.get("content", []))


class Stream:
    """A streamed answer, read event by event."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.raw = bytearray()
        self._answer = answer

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while line := self._answer.readline():
            self.raw += line
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def until(self, kind: str) -> dict[str, Any]:
        """Reads up to the first event of that type."""
        for event in self:
            if event["type"] == kind:
                return event
        raise AssertionError(f"no {kind} in {self.status} {self.raw.decode()}")


class Endpoint:
    """Where a node listens."""

    url: str

    def get(self, path: str) -> Answer:
        return self._ask("GET", path, None)

    def post(self, model: str, input: object = "hi", **parameters: object) -> Answer:  # noqa: A002 - the wire's name
        """A whole answer; greedy unless `parameters` say otherwise."""
        return self._ask("POST", "/v1/infer/responses", _body(model, input, parameters))

    @contextmanager
    def stream(self, model: str, input: object = "hi", **parameters: object) -> Iterator[Stream]:  # noqa: A002 - the wire's name
        """A streamed answer; leaving the context leaves the node."""
        with self._connected() as connection:
            body = _body(model, input, {**parameters, "stream": True})
            connection.request("POST", "/v1/infer/responses", body, {"Content-Type": "application/json"})
            with connection.getresponse() as answer:
                yield Stream(answer)

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        with self._connected() as connection:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as answer:
                headers = {name.lower(): value for name, value in answer.getheaders()}
                return Answer(answer.status, headers, answer.read())

    @contextmanager
    def _connected(self) -> Iterator[http.client.HTTPConnection]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=PATIENT)
        try:
            yield connection
        finally:
            connection.close()


def _body(model: str, given: object, parameters: Mapping[str, object]) -> bytes:
    return json.dumps({"model": model, "input": given, "temperature": 0, **parameters}).encode()


# -- processes -----------------------------------------------------------------------------------------


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and is not waited for yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def children(pid: int) -> dict[str, int]:
    """The engine and prepare processes of a front, by their module's name and a running number."""
    found: dict[str, int] = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
        command = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        module = next((word.decode() for word in command if word.startswith(b"b3node.workers.")), "?")
        name = module.removeprefix("b3node.workers.").removesuffix("_process")
        found[f"{name} {sum(key.startswith(name) for key in found)}"] = int(child)
    return found


def slay(pid: int, number: int = signal.SIGKILL) -> None:
    """Sends a deadly signal, which takes effect even where the process is stopped."""
    os.kill(pid, number)
    if number != signal.SIGKILL:
        os.kill(pid, signal.SIGCONT)


class NodeProcess(Endpoint):
    """`b3node serve` as a child of the test."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.pid = process.pid
        self.said: list[str] = []
        self._heard = threading.Condition()
        self._reader = threading.Thread(target=self._read, name="stderr")
        self._reader.start()

    def started(self) -> None:
        """Returns once the node has announced its URL, and every model's first start is over."""
        self.url = self.line(lambda line: match[1] if (match := _URL.match(line)) else None)

    def line(self, wanted: Callable[[str], T | None]) -> T:
        """What `wanted` makes of the first line on stderr of which it makes anything."""
        found: list[T] = []

        def search() -> bool:
            found.extend(value for line in self.said if (value := wanted(line)) is not None)
            return bool(found) or not self._reader.is_alive()

        with self._heard:
            self._heard.wait_for(search, PATIENT)
        if not found:
            raise TimeoutError("\n".join(["the node did not say that, but:", *self.said]))
        return found[0]

    def logged(self, **fields: object) -> dict[str, Any]:
        """The log line with these fields, as soon as it is written."""

        def wanted(line: str) -> dict[str, Any] | None:
            record = json.loads(line) if line.startswith("{") else {}
            return record if fields.items() <= record.items() else None

        return self.line(wanted)

    def interrupt(self) -> None:
        """What Ctrl-C in a terminal does: SIGINT to the whole process group."""
        os.killpg(self.pid, signal.SIGINT)

    def end(self) -> int:
        """Ends the node as fast as it can in good order. The exit status."""
        for _ in range(2):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self._reader.join(PATIENT)
            print("\n".join(self.said))

    def wait(self) -> int:
        """Waits for the end of the process. The exit status."""
        return self.process.wait(PATIENT)

    def _read(self) -> None:
        if self.process.stderr is None:
            return
        with self.process.stderr as lines:
            for line in lines:
                with self._heard:
                    self.said.append(line.decode().rstrip("\n"))
                    self._heard.notify_all()
        with self._heard:
            self._heard.notify_all()


@contextmanager
def node_process(
    models: Mapping[str, Path] | None = None, *options: str, cwd: Path | None = None
) -> Iterator[NodeProcess]:
    """A node that serves `models`, on a free port, each with one thread; `options` are those of `serve`."""
    named = [word for name, path in (models or {}).items() for word in ("--model", f"{name}={path}")]
    command = [sys.executable, "-P", "-m", "b3node.cli.main", "serve", "--port", "0", "--threads", "1"]
    process = subprocess.Popen(
        [*command, *named, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
    )
    node = NodeProcess(process)
    try:
        node.started()
        yield node
    finally:
        node.end()


# -- a node in this process ----------------------------------------------------------------------------


class RunningFleet(Endpoint):
    """A node in a thread of this process."""

    def __init__(self, fleet: Fleet, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.fleet = fleet
        self.server = server
        self.url = f"http://127.0.0.1:{server.port}"
        self._loop = loop

    def model(self, name: str) -> FleetModel:
        return self.fleet.models[name]

    def engine(self, name: str) -> int:
        """The engine's process id, once it has one and is ready."""
        model = self.model(name)
        self.ready(name)
        return until(lambda: model.engine.pid, "an engine")

    def ready(self, name: str) -> None:
        """Returns once the model is ready."""
        until(lambda: self.model(name).state == "ready", f"{name} is ready")

    def call(self, work: Coroutine[object, object, T]) -> T:
        """Runs a coroutine in the node's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENT)


@contextmanager
def running_fleet(
    models: Mapping[str, Path | Mapping[str, object]], *, timeouts: Timeouts = TIMEOUTS, **options: Any
) -> Iterator[RunningFleet]:
    """A node that serves `models`, each with one thread; `options` are those of the file's top level.

    Yields once every model's first start is over.
    """
    tables = {
        name: {"path": str(model)} if isinstance(model, Path) else {**model} for name, model in models.items()
    }
    config = configuration.resolve({"models": tables, "threads": 1, **options})
    started: list[RunningFleet] = []
    settled = threading.Event()
    failures: list[BaseException] = []

    async def main() -> None:
        log.configure("off", lambda _line: None)
        fleet = Fleet(config, lambda _model, _share: None, timeouts)
        node = Node(config.node, fleet.models.values())
        server = Server(create_app(node), node, shutdown=Shutdown(drain_seconds=10.0, halt_seconds=1.0))
        fleet.start()
        serving = asyncio.create_task(server.run())
        try:
            await fleet.settle()
            started.append(RunningFleet(fleet, server, asyncio.get_running_loop()))
            settled.set()
            await serving
        finally:
            await fleet.stop()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(main())
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failures.append(error)
        finally:
            settled.set()

    # The kernel kills children when the thread that started them ends: this one outlives them.
    thread = threading.Thread(target=run, name="fleet")
    thread.start()
    if not settled.wait(PATIENT) or failures:
        raise RuntimeError(f"the fleet did not start: {failures}")
    running = started[0]
    try:
        yield running
    finally:
        for _ in range(2):
            running._loop.call_soon_threadsafe(running.server.stop)
        thread.join(PATIENT)
    if failures:
        raise failures[0]
