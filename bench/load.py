"""A small load generator for Responses endpoints: asyncio on bare sockets, so that it costs little CPU.

While a load runs it only notes when which bytes came; `reply` makes sense of them afterwards.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from bench.reply import Answer, read

Body = dict[str, Any]
PATIENCE: Final = 600.0
"""Seconds after which an answer is given up."""


class LoadError(Exception):
    """An answer failed: the load measured nothing."""


class Load(msgspec.Struct, frozen=True):
    """What several clients heard."""

    answers: tuple[Answer, ...]

    @property
    def seconds(self) -> float:
        """From the first request to the last byte."""
        return max(a.ended for a in self.answers) - min(a.sent for a in self.answers)

    @property
    def tokens(self) -> int:
        """Tokens generated."""
        return sum(a.output_tokens for a in self.answers)

    @property
    def tokens_s(self) -> float:
        """Tokens generated a second, prompts included."""
        return self.tokens / self.seconds

    @property
    def first(self) -> float:
        """Median seconds to the first piece of text."""
        return quantile([a.first for a in self.answers], 0.5)

    @property
    def gaps(self) -> list[float]:
        """Seconds between pieces of text, over all streams."""
        return [gap for a in self.answers for gap in a.gaps]

    @property
    def cached_share(self) -> float:
        """Prompt tokens that were not computed, of all prompt tokens."""
        return sum(a.cached_tokens for a in self.answers) / sum(a.input_tokens for a in self.answers)


def quantile(values: Iterable[float], share: float) -> float:
    """The value that `share` of all values do not exceed (nearest rank); 0.5 is the lower median.

    >>> quantile([4, 1, 3, 2], 0.5)
    2
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Stream(asyncio.Protocol):
    """One request with its streamed answer, on a connection of its own.

    `begun` is set when the first piece of text is there, so that a scenario can act beside a running stream.
    """

    def __init__(self, url: str, body: Body) -> None:
        self.begun = asyncio.Event()
        self._parts = urlsplit(url)
        self._payload = msgspec.json.encode({**body, "stream": True})
        self._arrivals: list[tuple[float, bytes]] = []
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sent = 0.0

    async def run(self) -> Answer:
        """Sends the request and waits for the end of its answer. Raises `LoadError` when it failed."""
        host, port = self._parts.hostname or "", self._parts.port or 80
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(PATIENCE):
                transport, _ = await loop.create_connection(lambda: self, host, port)
                self._sent = time.perf_counter()
                transport.write(self._head() + self._payload)
                await self._closed
        except (OSError, TimeoutError) as error:
            raise LoadError(repr(error)) from error
        finally:
            self.begun.set()
        answer = read(self._arrivals, sent=self._sent)
        if answer.failure:
            raise LoadError(answer.failure)
        return answer

    def _head(self) -> bytes:
        return (
            f"POST {self._parts.path}/responses HTTP/1.1\r\nHost: {self._parts.netloc}\r\n"
            "Content-Type: application/json\r\nAccept: text/event-stream\r\nConnection: close\r\n"
            f"Content-Length: {len(self._payload)}\r\n\r\n"
        ).encode()

    def data_received(self, data: bytes) -> None:
        """Part of asyncio's Protocol."""
        self._arrivals.append((time.perf_counter(), data))
        if not self.begun.is_set() and b".delta" in data:
            self.begun.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's Protocol."""
        del exc
        if not self._closed.done():
            self._closed.set_result(None)


async def ask(url: str, body: Body) -> Answer:
    """Streams one answer from the endpoint under `url` (`http://host:port/v1`). Raises `LoadError`."""
    return await Stream(url, body).run()


async def clients(url: str, work: Sequence[Sequence[Body]]) -> Load:
    """One client for each entry of `work`, all at once; each sends its bodies one after the other.

    Raises `LoadError` when an answer failed, once all clients are done.
    """
    results = await asyncio.gather(*(_client(url, bodies) for bodies in work), return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise LoadError(f"{len(failures)} of {len(work)} clients failed: {failures[0]}") from failures[0]
    return Load(tuple(a for result in results if not isinstance(result, BaseException) for a in result))


async def _client(url: str, bodies: Sequence[Body]) -> list[Answer]:
    return [await ask(url, body) for body in bodies]
