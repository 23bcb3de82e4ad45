"""Pauses before the restarts of a child that crashes: longer each time, and at last no restart."""

from __future__ import annotations

from collections import deque
from typing import Final

MAX_PAUSE_SECONDS: Final = 60.0
"""Seconds between two starts at most: 1, 2, 4 ... 60."""
CRASH_WINDOW_SECONDS: Final = 600.0
"""Seconds within which crashes are counted together."""


class Backoff:
    """Counts crashes; times are seconds of a monotonic clock.

    Args:
        first: seconds before the first restart; each further one doubles them.
        longest: seconds between two starts at most.
        most: crashes within the window after which the child stays down; None for never, if tenants' input
            can crash it: they could take the node down with it.
    """

    def __init__(
        self, *, first: float = 1.0, longest: float = MAX_PAUSE_SECONDS, most: int | None = 5
    ) -> None:
        self._first = first
        self._longest = longest
        self._most = most
        self._crashes: deque[float] = deque(maxlen=most or 1)
        self._streak = 0

    def crashed(self, now: float, *, lived: float) -> float | None:
        """Returns the seconds to wait before the next start, None to stay down.

        `lived` is how long the child had been ready; one that served for as long as the window starts the
        count anew.
        """
        if lived >= CRASH_WINDOW_SECONDS:
            self._crashes.clear()
            self._streak = 0
        self._crashes.append(now)
        self._streak += 1
        if len(self._crashes) == self._most and now - self._crashes[0] <= CRASH_WINDOW_SECONDS:
            return None
        return float(min(self._first * 2.0 ** min(self._streak - 1, 16), self._longest))
