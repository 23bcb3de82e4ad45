"""Measures the phases of a request: for `Server-Timing`, for `b3os.timing` and for the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec

from b3node.contract.response import Timing

Phase = Literal["read", "parse", "prepare", "queue", "prefill", "ttft", "model"]
"""Parts of a request, in the order in which they happen; the names are tokens (W3C Server Timing).

`read`: the body arrives. `parse`: it is decoded and checked. `prepare`: template and tokens. `queue`: the
wait for a slot. `prefill`: from the slot to the first token. These five do not overlap, so their sum is at
most the total. `ttft` (request head to first token) and `model` (submission to the engine until its last
output) span several of them.
"""


class Clock(msgspec.Struct, frozen=True):
    """Both clocks of a node, in seconds: `monotonic` for durations, `wall` for times since 1970."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class Stopwatch:
    """The durations of one request, in milliseconds; it starts when it is made, at the request's head."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._start = monotonic()
        self._phases: dict[Phase, float] = {}

    @property
    def elapsed(self) -> float:
        """Milliseconds since the request's head."""
        return (self._monotonic() - self._start) * 1000.0

    def set(self, phase: Phase, milliseconds: float) -> None:
        """Sets a phase; a negative duration, which only a rounding difference can bring, counts as 0."""
        self._phases[phase] = max(0.0, milliseconds)  # this way around it is never -0.0

    def get(self, phase: Phase) -> float | None:
        """Returns a phase's milliseconds, or None where it did not happen (yet)."""
        return self._phases.get(phase)

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Times the block as that phase, however it ends."""
        start = self.elapsed
        try:
            yield
        finally:
            self.set(phase, self.elapsed - start)

    def header(self, *, total: bool) -> str:
        """Returns the value of `Server-Timing`, in fixed point with one decimal.

        `total` is for answers whose size is known; a stream's head comes too early for it (contract).
        """
        entries = [f"{name};dur={spent:.1f}" for name, spent in self._phases.items()]
        if total:
            entries.append(f"total;dur={self.elapsed:.1f}")
        return ", ".join(entries)

    def fields(self) -> dict[str, object]:
        """Returns every phase and the total so far, named for a log line: `queue_ms`, `total_ms`."""
        known: dict[str, object] = {f"{name}_ms": _rounded(spent) for name, spent in self._phases.items()}
        return known | {"total_ms": _rounded(self.elapsed)}

    def of_stream(self) -> Timing:
        """Returns `b3os.timing` for a stream's last event."""
        return Timing(total_ms=_rounded(self.elapsed), ttft_ms=_rounded(self._phases.get("ttft", 0.0)))

    def of_body(self) -> Timing:
        """Returns `b3os.timing` for an answer without streaming."""
        return Timing(total_ms=_rounded(self.elapsed), model_ms=_rounded(self._phases.get("model", 0.0)))


def _rounded(milliseconds: float) -> float:
    return round(milliseconds, 1)
