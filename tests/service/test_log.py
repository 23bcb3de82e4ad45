from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from b3node.errors import Refusal
from b3node.principal import LOCAL
from b3node.service import log
from b3node.service.record import Record
from b3node.service.timing import Stopwatch


@pytest.fixture
def lines() -> Iterator[list[str]]:
    written: list[str] = []
    log.configure("debug", written.append)
    yield written
    structlog.reset_defaults()


def record(**known: Any) -> Record:
    return Record(request_id="req_x", timing=Stopwatch(lambda: 1.0), method="POST", **known)


def test_a_request_is_one_line_of_json_with_what_is_known(lines: list[str]) -> None:
    """The line has the fields that were learned and none of those that were not."""
    log.request(record(status=200, model="m", output_tokens=3))
    (line,) = map(json.loads, lines)

    assert line["event"] == "request"
    assert line["request_id"] == "req_x"
    assert line["output_tokens"] == 3
    assert line["total_ms"] == 0.0
    assert "code" not in line
    assert line["ts"].endswith("Z")


@pytest.mark.parametrize(
    ("refusal", "level"),
    [
        (None, "info"),
        (Refusal("invalid_request", "no"), "info"),
        (Refusal("capacity_unavailable", "no", retry_after=2), "warning"),
        (Refusal("internal", "no"), "error"),
    ],
)
def test_the_level_says_whose_fault_it_was(lines: list[str], refusal: Refusal | None, level: str) -> None:
    """A client's mistake is information, a node that cannot serve a warning, a bug an error."""
    entry = record(status=200)
    if refusal is not None:
        entry.refuse(refusal)
    log.request(entry)

    assert json.loads(lines[0])["level"] == level


@pytest.mark.parametrize("route", ["/healthz", "/readyz"])
def test_probes_that_succeed_are_not_logged(lines: list[str], route: str) -> None:
    """They come every few seconds; one that fails is a line like any other."""
    log.request(record(route=route, status=200))
    log.request(record(route=route, status=503))

    assert [json.loads(line)["status"] for line in lines] == [503]


def test_the_principal_is_no_field_of_the_line(lines: list[str]) -> None:
    """A node without keys has one; a line says nothing by naming it."""
    log.request(record(principal=LOCAL))

    assert "principal" not in json.loads(lines[0])


@pytest.mark.parametrize(
    "evil", ["\n", "\r", "\x1b[2J", "\x7f", "\x85", "\x9b31m", "\u2028", "\u2029", "\u202e"]
)
def test_no_client_text_can_break_a_line_or_move_a_cursor(lines: list[str], evil: str) -> None:
    """Control characters, line separators and text direction overrides are escaped."""
    log.request(record(model=f"a{evil}b"))

    assert len(lines) == 1
    assert lines[0].isascii()
    assert lines[0].isprintable()
    assert json.loads(lines[0])["model"] == f"a{evil}b"


def test_fields_are_cut(lines: list[str]) -> None:
    """A field has at most 256 characters, however long the client's text was."""
    log.request(record(model="m" * 10_000))

    assert json.loads(lines[0])["model"] == "m" * log.MAX_FIELD_CHARS


@pytest.mark.parametrize(
    "secret",
    [
        "b3os_sk_" + "a" * 32 + "_2063xsz",
        "b3os_pat_" + "a" * 32 + "_03ddbsa",
        "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    ],
)
def test_credentials_are_redacted(lines: list[str], secret: str) -> None:
    """A key or a token that a client puts in the wrong place does not reach the log."""
    log.request(record(model=f"x {secret} y"))

    assert json.loads(lines[0])["model"] == "x [redacted] y"


def test_a_bug_has_its_traceback(lines: list[str]) -> None:
    """The line of a bug ends with the exception that caused it, however deep the stack."""

    def deep(level: int) -> None:
        if level == 0:
            raise ZeroDivisionError("cause")
        deep(level - 1)

    with pytest.raises(ZeroDivisionError) as caught:
        deep(400)
    log.bug(record(), caught.value)
    line = json.loads(lines[0])

    assert line["level"] == "error"
    assert line["request_id"] == "req_x"
    assert line["exception"].endswith("ZeroDivisionError: cause")
    assert len(line["exception"]) <= log.MAX_TRACE_CHARS


def test_off_writes_nothing() -> None:
    """With the level off, not even a bug is written."""
    written: list[str] = []
    log.configure("off", written.append)
    log.bug(record(), ValueError("x"))
    log.event("started")
    structlog.reset_defaults()

    assert written == []


class Stuck(io.StringIO):
    """A pipe that nobody reads, until somebody does."""

    def __init__(self) -> None:
        super().__init__()
        self.unstuck = threading.Event()

    def write(self, text: str) -> int:
        self.unstuck.wait(5)
        return super().write(text)


def test_a_pipe_that_nobody_reads_stops_nobody() -> None:
    """Lines are queued without waiting; what does not fit is dropped, and the drop is told."""
    pipe = Stuck()
    sink = log.LineWriter(pipe, capacity=4)
    for number in range(50):
        sink(str(number))
    pipe.unstuck.set()
    sink.close()
    written = pipe.getvalue().splitlines()

    assert len(written) < 50
    assert (
        sum(json.loads(line)["count"] for line in written if "dropped" in line)
        + sum(line.isdigit() for line in written)
        == 50
    )


def test_closing_writes_what_is_queued() -> None:
    """Nothing that was queued is lost by an orderly end."""
    file = io.StringIO()
    sink = log.LineWriter(file)
    for number in range(100):
        sink(str(number))
    sink.close()

    assert file.getvalue().split() == [str(number) for number in range(100)]
