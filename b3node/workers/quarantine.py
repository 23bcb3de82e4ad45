"""Which requests are suspected of ending the processes that work on them, so that one that does cannot take a model down.

An engine that dies does not say why, and all that it was sent are under suspicion alike. Each is counted: how many
deaths it has been in since it was last answered. Whoever has been in two of them, and in more than any other of the last
one, is held guilty for a while and refused. Where several have been in as many, none is, but from then on only one of
them is let in at a time, so that the next death tells which.

Invariants: a request that is answered is suspected no longer; nobody is held guilty of a single death, nor of one that
another request explains as well; what is remembered is bounded, and forgotten after `SECONDS`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from hashlib import blake2b
from typing import Final, Literal, NamedTuple

import msgspec

from b3node.contract.request import Request
from b3node.errors import Refusal
from b3node.prompt.prepared import Prepared

GUILTY: Final = 2
"""Deaths that a request may have been in at most."""
SECONDS: Final = 600.0
"""How long a suspicion lasts, and how long a guilty request is refused: as long as crashes are counted together
(see `backoff`)."""
MOST: Final = 1024
"""Requests that are remembered; far more than an engine takes at once."""

Verdict = Literal["free", "later", "guilty"]
"""Of a request that is to be computed: it may, it may when another suspect is done, or not for a while."""


def digest(request: Request | Prepared) -> bytes:
    """What tells a request from others, before it is prepared or behind that: its content, whoever sent it."""
    return blake2b(msgspec.msgpack.encode(request), digest_size=16).digest()


def refused() -> Refusal:
    """The answer to a guilty request."""
    return Refusal(
        "internal",
        f"The model runtime died of this request repeatedly; it is refused for {SECONDS / 60:.0f} minutes.",
    )


class _Suspicion(NamedTuple):
    deaths: int
    until: float
    guilty: bool = False


_NONE: Final = _Suspicion(0, 0.0)


class Suspects:
    """What is known of requests, by their digests; times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, _Suspicion] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def verdict(self, request: bytes, computed: Collection[bytes], now: float) -> Verdict:
        """What is to become of a request, beside those that are being `computed`."""
        suspicion = self._of(request, now)
        if suspicion.guilty:
            return "guilty"
        others = (other for other in computed if other != request)
        if suspicion.deaths >= GUILTY and any(self._of(other, now).deaths >= GUILTY for other in others):
            return "later"
        return "free"

    def died(self, computed: Collection[bytes], now: float) -> bytes | None:
        """An engine died of something while it computed these. The one that is guilty from now on, if there is one."""
        deaths = {request: self._of(request, now).deaths + 1 for request in computed}
        most = max(deaths.values(), default=0)
        prime = [request for request, count in deaths.items() if count == most]
        guilty = prime[0] if most >= GUILTY and len(prime) == 1 else None
        for request, count in deaths.items():
            self._known[request] = _Suspicion(count, now + SECONDS, guilty=request == guilty)
            self._known.move_to_end(request)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return guilty

    def answered(self, request: bytes) -> None:
        """A request came to its end, and the engine lives."""
        self._known.pop(request, None)

    def _of(self, request: bytes, now: float) -> _Suspicion:
        suspicion = self._known.get(request, _NONE)
        return suspicion if suspicion.until > now else _NONE
