"""The two servers, each started fresh for a repetition, there at the same time, and asked the same in turn.

b3node runs as `b3node serve` does without options. llama-server is set up as someone would who wants the
same service from it and knows it well:

    --parallel 16 --kv-unified --ctx-size 16384   the same slots and the same cells, shared by all slots
    --threads N                                   the same number as b3node takes: physical cores
    --no-ui --offline                             nothing that is not asked for

and its defaults for everything else, which are good ones: continuous batching, prompt cache (in slots and in
host memory), flash attention where it helps, batches of 2048 in steps of 512, short prompts before the long
ones. Neither gets an OpenMP setting from the environment: both choose for themselves.
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from b3node.embedded import MODEL_ID
from b3node.llama.settings import usable_cores
from bench import build
from bench.processes import cpu_seconds, memory_mb, tree

CELLS: Final = 16_384
"""Cells of the cache: what b3node takes by default for this model."""
SLOTS: Final = 16
EARLIER: Final = "earlier"
"""Name of the b3node of another checkout."""
LOAD_WITHIN: Final = 120.0
"""Seconds that a server may take to start."""
_POLL: Final = 0.02
_FOLDERS: Final = re.compile(r"(?<![^=])/.*/")
"""Where a path is, at the beginning of an argument or behind a sign of equality."""


class Plan(msgspec.Struct, frozen=True):
    """How a server is started. `ready` is the path that answers 200 once it serves."""

    name: str
    command: tuple[str, ...]
    ready: str
    environment: dict[str, str]

    @property
    def shown(self) -> list[str]:
        """The command without the folders of the machine at hand."""
        return [_FOLDERS.sub("", part) for part in self.command]


class Running(msgspec.Struct, frozen=True):
    """A server that serves. `start_s` is from its start until it said that it is ready."""

    name: str
    url: str
    pid: int
    start_s: float

    @property
    def has_front(self) -> bool:
        """Whether the process that clients talk to leaves the model to others."""
        return len(tree(self.pid)) > 1

    @property
    def front_cpu(self) -> float:
        """CPU seconds so far of the process that clients talk to."""
        return cpu_seconds(self.pid)

    @property
    def cpu(self) -> float:
        """CPU seconds so far of all its processes."""
        return sum(cpu_seconds(pid) for pid in tree(self.pid))

    @property
    def own_libraries(self) -> bool:
        """Whether it computes with the shared libraries of the installed llama-cpp-python."""
        return all(_own_libraries(pid) for pid in tree(self.pid))

    @property
    def memory_mb(self) -> float:
        """Memory of all its processes now."""
        return memory_mb(tree(self.pid))


class ServerError(Exception):
    """A server did not start."""


def b3node(model: Path) -> Plan:
    """b3node as it comes."""
    command = (sys.executable, "-m", "b3node.cli.main", "serve", "--model", f"{MODEL_ID}={model}")
    return Plan("b3node", command, "/readyz", environment())


def earlier(model: Path, checkout: Path) -> Plan:
    """b3node as another checkout has it, with the libraries of this environment."""
    command = (sys.executable, "-P", "-m", "b3node.cli.main", "serve", "--model", f"{MODEL_ID}={model}")
    return Plan(EARLIER, command, "/readyz", environment() | {"PYTHONPATH": str(checkout.resolve())})


def llama_server(model: Path) -> Plan:
    """llama-server with the same slots, cells and threads."""
    size = ("--parallel", str(SLOTS), "--kv-unified", "--ctx-size", str(CELLS))
    rest = ("--threads", str(usable_cores()), "--alias", MODEL_ID, "--no-ui", "--offline")
    command = (str(build.binary()), "--model", str(model), *size, *rest)
    return Plan("llama-server", command, "/health", environment() | {"LD_LIBRARY_PATH": build.library_path()})


def environment() -> dict[str, str]:
    """This process's environment without settings of OpenMP: defaults are compared."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}


@contextmanager
def serve(plan: Plan, log: Path) -> Iterator[Running]:
    """Starts a server on a free port, waits until it is ready, and ends it. Raises `ServerError`."""
    port = _free_port()
    began = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen(
            [*plan.command, "--host", "127.0.0.1", "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=plan.environment,
        )
    try:
        while not _is_ready(port, plan.ready):
            if process.poll() is not None or time.monotonic() - began > LOAD_WITHIN:
                raise ServerError(f"{plan.name} did not start; {log} says why")
            time.sleep(_POLL)
        yield Running(plan.name, f"http://127.0.0.1:{port}/v1", process.pid, time.monotonic() - began)
    finally:
        _end(process)


def _own_libraries(pid: int) -> bool:
    """Whether no llama.cpp but that of the installed llama-cpp-python is in a process."""
    folder = str(build.package_libraries())
    lines = Path(f"/proc/{pid}/maps").read_text("utf-8").splitlines()
    files = {line.split(None, 5)[5] for line in lines if "/" in line}
    native = [file for file in files if Path(file).name.startswith(("libllama.so", "libggml"))]
    return all(file.startswith(folder) for file in native)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_ready(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
