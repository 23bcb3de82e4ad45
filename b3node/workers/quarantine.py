"""Quarantine of requests that end the processes that compute them, lest one of them takes a model down.

An engine that dies gives no reason, so all requests that it computed are suspects alike. For each, the deaths
that it was in since it was last answered are counted. A request that was in two of them, and in more than any
other of the last one, is refused for a while. If several were in as many, none is refused, but only one of
them is admitted at a time, so that the next death tells them apart.

Invariants: an answer clears a request; no request is refused for a single death, nor for one that another
request explains as well; the number of requests remembered is bounded, and each is forgotten after
`QUARANTINE_SECONDS`.
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

QUARANTINE_DEATHS: Final = 2
"""Deaths of processes after which a request is a suspect."""
QUARANTINE_SECONDS: Final = 600.0
"""Seconds that a death is held against a request, and that it is refused: as long as crashes are counted
together (see `backoff`)."""
MAX_REQUESTS: Final = 1024
"""Requests that are remembered; far more than an engine computes at once."""

Verdict = Literal["admit", "later", "refuse"]
"""Of a request: admit it, admit it once another suspect has ended, or refuse it for a while."""


def digest(request: Request | Prepared) -> bytes:
    """Returns the identity of a request, before or after it is prepared: its content, of any client."""
    return blake2b(msgspec.msgpack.encode(request), digest_size=16).digest()


def refused() -> Refusal:
    """Returns the answer to a request in quarantine."""
    minutes = QUARANTINE_SECONDS / 60
    return Refusal(
        "internal",
        f"The model runtime died of this request repeatedly; it is refused for {minutes:.0f} minutes.",
    )


class _DeathRecord(NamedTuple):
    """The deaths of a request, forgotten at `until`."""

    deaths: int
    until: float
    refused: bool = False


_NO_DEATHS: Final = _DeathRecord(0, 0.0)


class Quarantine:
    """Deaths by the digests of requests; times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._records: OrderedDict[bytes, _DeathRecord] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def verdict(self, request: bytes, computing: Collection[bytes], now: float) -> Verdict:
        """Returns the verdict on a request, given those that are `computing`."""
        record = self._record(request, now)
        if record.refused:
            return "refuse"
        others = (other for other in computing if other != request)
        if record.deaths >= QUARANTINE_DEATHS and any(
            self._record(other, now).deaths >= QUARANTINE_DEATHS for other in others
        ):
            return "later"
        return "admit"

    def record_death(self, computing: Collection[bytes], now: float) -> bytes | None:
        """Counts a process's death for the requests that it was computing.

        Returns the one that is refused from now on, if any.
        """
        deaths = {request: self._record(request, now).deaths + 1 for request in computing}
        most = max(deaths.values(), default=0)
        suspects = [request for request, count in deaths.items() if count == most]
        culprit = suspects[0] if most >= QUARANTINE_DEATHS and len(suspects) == 1 else None
        for request, count in deaths.items():
            self._records[request] = _DeathRecord(count, now + QUARANTINE_SECONDS, refused=request == culprit)
            self._records.move_to_end(request)
        while len(self._records) > MAX_REQUESTS:
            self._records.popitem(last=False)
        return culprit

    def clear(self, request: bytes) -> None:
        """Forgets the deaths of a request: it was answered."""
        self._records.pop(request, None)

    def _record(self, request: bytes, now: float) -> _DeathRecord:
        record = self._records.get(request, _NO_DEATHS)
        return record if record.until > now else _NO_DEATHS
