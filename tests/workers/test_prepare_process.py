from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from b3node.contract.request import Message, Request, TextPart
from b3node.errors import Refusal
from b3node.workers.frames import FrameReader, frame
from b3node.workers.messages import (
    PrepareCrashed,
    PrepareFailed,
    PrepareOrder,
    PrepareRequest,
    RequestRefused,
)
from b3node.workers.prepare_process import _answer, _work

ASK = PrepareRequest(Request(model="m", input=(Message("user", (TextPart("hi"),)),)), now=0.0, n_ctx=64)


class Failing:
    """A preparer that fails in a given way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def prepare(self, *_: object) -> None:
        raise self._error


def answer(error: Exception) -> object:
    return _answer(Failing(error), ASK)  # type: ignore[arg-type]  # stands in for a Preparer


def test_a_refusal_crosses_the_line_as_it_is() -> None:
    """Code, message and path go to the client."""
    refusal = Refusal("context_length_exceeded", "Too long.", param="input")

    assert answer(refusal) == RequestRefused("context_length_exceeded", "Too long.", "input")


def test_a_lack_of_memory_is_the_requests_fault() -> None:
    """The worker's memory is bounded by its parent, so a request that exceeds it asked for too much."""
    refused = answer(MemoryError())

    assert isinstance(refused, RequestRefused)
    assert (refused.code, refused.param) == ("invalid_request", "input")


def test_a_bug_is_told_with_its_trace_and_survived() -> None:
    """Anything else is a bug; the front logs it and gives the client only the request's id."""
    broke = answer(KeyError("lost"))

    assert isinstance(broke, PrepareCrashed)
    assert "KeyError: 'lost'" in broke.trace


def test_a_worker_imports_what_few_requests_need_behind_its_start() -> None:
    """The library of schemas is not there when it begins to load."""
    program = (
        "import sys, b3node.workers.prepare_process; print({'jsonschema', 'referencing'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "set()\n"


def test_a_worker_that_cannot_load_ends(tmp_path: Path) -> None:
    """It says why, and waits for nothing."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame(msgspec.msgpack.encode(PrepareOrder(str(tmp_path / "missing.gguf")))))
        loaded = threading.Event()
        _work(theirs, loaded)
        (failed,) = FrameReader().feed(ours.recv(65536))

        assert loaded.is_set()
        assert "there is no file" in msgspec.msgpack.decode(failed, type=PrepareFailed).reason


def test_a_worker_that_breaks_while_it_loads_ends() -> None:
    """After a message that is no order the child ends."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frame(b"\xc1"))
        loaded = threading.Event()
        with pytest.raises(msgspec.DecodeError):
            _work(theirs, loaded)

        assert loaded.is_set()
