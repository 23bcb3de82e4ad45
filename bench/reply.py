"""What a server sent, as it arrived, to one answer: HTTP/1.1, server-sent events, tokens and their times.

Nothing is read while a load runs beyond noting when which bytes came, so that the client, which shares the
machine with the server, costs next to nothing; all of this runs afterwards. `Reply` is incremental
(`feed`, `finish`), and any chunking of the same bytes says the same, times aside.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

_DELTA: Final = "response.output_text.delta"
_LAST: Final = frozenset({"response.completed", "response.incomplete"})
_FAILED: Final = frozenset({"response.failed", "error"})
_SHOWN: Final = 300
"""Characters of a refusal that are kept."""

Arrivals = Iterable[tuple[float, bytes]]
"""When which bytes came, in order: seconds of one clock, what one read gave."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One streamed answer; times in seconds of the clock that `sent` is of.

    `times` has one entry for each piece of text, `failure` is empty unless the answer is of no use.
    """

    sent: float
    ended: float
    times: tuple[float, ...] = ()
    text: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    failure: str = ""

    @property
    def first(self) -> float:
        """Seconds from the request to the first piece of text."""
        return self.times[0] - self.sent

    @property
    def total(self) -> float:
        """Seconds from the request to the last byte."""
        return self.ended - self.sent

    @property
    def gaps(self) -> list[float]:
        """Seconds between neighbouring pieces of text."""
        return [late - early for early, late in zip(self.times, self.times[1:], strict=False)]

    def gaps_within(self, start: float, end: float) -> list[float]:
        """The gaps that overlap the time from `start` to `end`."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return [late - early for early, late in pairs if late > start and early < end]


class Reply:
    """An HTTP answer with an event stream; `feed` gives the events that bytes complete."""

    def __init__(self) -> None:
        self.status = 0
        self.refusal = b""
        """The body of an answer that is not a stream."""
        self._raw = bytearray()
        self._text = bytearray()
        self._chunked = False
        self._left = 0

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The events that `data` completes, in order."""
        self._raw += data
        if not self.status and not self._read_head():
            return []
        self._read_body()
        if self.status != 200:
            self.refusal += bytes(self._text)
            self._text.clear()
            return []
        return self._events()

    def finish(self) -> list[dict[str, Any]]:
        """The last event, where the connection ended without an empty line behind it."""
        self._text += b"\n"
        return self._events()

    def _read_head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._raw[:end]).lower()
        del self._raw[: end + 4]
        self.status = int(head.split(None, 2)[1])
        self._chunked = b"transfer-encoding: chunked" in head
        return True

    def _read_body(self) -> None:
        """Moves the body's bytes out of their framing (RFC 9112, section 7.1)."""
        if not self._chunked:
            self._text += self._raw
            self._raw.clear()
        while self._raw:
            if not self._left:
                size, end, _ = bytes(self._raw).partition(b"\r\n")
                if not end:
                    return
                del self._raw[: len(size) + 2]
                self._left = int(size.split(b";")[0] or b"0", 16) + 2
            part = self._raw[: self._left]
            self._text += part[: max(self._left - 2, 0)]
            self._left -= len(part)
            del self._raw[: len(part)]

    def _events(self) -> list[dict[str, Any]]:
        *lines, rest = bytes(self._text).split(b"\n")
        self._text[:] = rest
        data = (line[5:].strip() for line in lines if line.startswith(b"data:"))
        return [msgspec.json.decode(text) for text in data if text and text != b"[DONE]"]


def read(arrivals: Arrivals, *, sent: float) -> Answer:
    """The answer to a request that was sent at `sent`."""
    reply, times, pieces = Reply(), [], []
    last: dict[str, Any] = {}
    ended = sent
    for ended, data in arrivals:
        for event in reply.feed(data):
            if event.get("type") == _DELTA and event.get("delta"):
                times.append(ended)
                pieces.append(event["delta"])
            elif event.get("type") in _LAST | _FAILED:
                last = last or event
    for event in reply.finish():
        last = last or event
    usage = (last.get("response") or {}).get("usage") or {}
    return Answer(
        sent=sent,
        ended=ended,
        times=tuple(times),
        text="".join(pieces),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        cached_tokens=(usage.get("input_tokens_details") or {}).get("cached_tokens", 0),
        failure=_failure(reply, last, heard=bool(times)),
    )


def _failure(reply: Reply, last: dict[str, Any], *, heard: bool) -> str:
    """Why an answer is of no use; empty where it is."""
    if reply.status != 200:
        return f"{reply.status}: {reply.refusal.decode('utf-8', 'replace')[:_SHOWN]}"
    if last.get("type") not in _LAST:
        return f"the stream broke off: {msgspec.json.encode(last).decode()[:_SHOWN]}"
    return "" if heard else "not one piece of text"
