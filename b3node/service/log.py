"""The log: one JSON object a line on stderr, one for every request and one for every bug.

No line has a prompt, an output or a credential; a client's text is cut and escaped, so it can neither forge a
line nor move a terminal's cursor. A thread writes the lines from a bounded queue, because a pipe without a
reader must not stop the event loop; lines that do not fit are dropped and counted.
"""

from __future__ import annotations

import atexit
import json
import queue
import re
import sys
import threading
from collections.abc import Callable, MutableMapping
from typing import IO, Any, Final, Literal

import structlog

from b3node.errors import HTTP
from b3node.service.record import Record

Level = Literal["debug", "info", "warning", "error", "off"]

MAX_FIELD_CHARS: Final = 256
"""Characters of a field; the rest is cut off."""

MAX_TRACE_CHARS: Final = 8192
"""Characters of a traceback, counted from its end, where the cause stands."""

_MAX_QUEUED_LINES: Final = 1024

_LEVELS: Final[dict[Level, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 50}
"""Standard levels; no line is critical, so that level is "off"."""

_PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Routes that are asked every few seconds."""

_CREDENTIAL: Final = re.compile(r"b3os_(?:sk|pat)_\w+|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+")
"""An API key or CLI token, or a JWT."""

_logger: Final = structlog.stdlib.get_logger("b3node")

Write = Callable[[str], None]


class LineWriter:
    """A bounded queue of lines and the daemon thread that writes them. Calls never block."""

    def __init__(self, file: IO[str], capacity: int = _MAX_QUEUED_LINES) -> None:
        self._file = file
        self._queue: queue.Queue[str | None] = queue.Queue(capacity)
        self._dropped = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def __call__(self, line: str) -> None:
        """Queues a line, or drops it when the queue is full."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def close(self, timeout: float = 1.0) -> None:
        """Writes the queued lines, as far as `timeout` seconds allow."""
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        while (line := self._queue.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            if dropped:
                self._file.write(json.dumps({"event": "log_lines_dropped", "count": dropped}) + "\n")
            self._file.write(line + "\n")
            self._file.flush()


def configure(level: Level, write: Write | None = None) -> None:
    """Sets up logging for this process.

    Args:
        level: lines below it are not made; "off" makes none.
        write: is called with each line, without its end; by default a `LineWriter` on stderr.
    """
    output: Write = _to_stderr() if write is None else write
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
            structlog.processors.format_exc_info,
            _bound,
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _StructlogOutput(output),
        cache_logger_on_first_use=False,
    )


def _to_stderr() -> LineWriter:
    lines = LineWriter(sys.stderr)
    atexit.register(lines.close)  # the last lines are those of the end
    return lines


def request(record: Record) -> None:
    """Writes the one line of a finished request; none for a probe that succeeded.

    The level is error for a bug, warning where the node could not serve the request, else info.
    """
    if record.route in _PROBES and record.status == 200:
        return
    if record.code == "internal":
        _logger.error("request", **record.fields())
    elif record.code is not None and HTTP[record.code][0] >= 500:
        _logger.warning("request", **record.fields())
    else:
        _logger.info("request", **record.fields())


def bug(record: Record, error: BaseException) -> None:
    """Writes the traceback of a request's internal error; the request's own line, by its id, has the rest."""
    _logger.error("bug", request_id=record.request_id, exc_info=error)


def event(name: str, **fields: object) -> None:
    """Writes a line about the node itself."""
    _logger.info(name, **fields)


class _StructlogOutput:
    """Passes rendered lines from structlog to a `Write`."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def msg(self, line: str) -> None:
        self._write(line)

    debug = info = warning = error = critical = exception = msg


def _bound(_logger: object, _method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in fields.items():
        if isinstance(value, str):
            text = _CREDENTIAL.sub("[redacted]", value)
            fields[name] = text[-MAX_TRACE_CHARS:] if name == "exception" else text[:MAX_FIELD_CHARS]
    return fields


def _render(_logger: object, _method: str, fields: MutableMapping[str, Any]) -> str:
    # ASCII only: JSON escapes control characters by itself, but neither U+2028 nor U+009B, nor DEL at all.
    return json.dumps(fields, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")
