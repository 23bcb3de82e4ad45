"""Chooses how many prompt tokens a step may compute, so that running streams keep their pace.

A step costs about `base + per_token * prompt tokens`. Both are learnt from measured steps (exponential
averages; the base as the cost of a step without prompt tokens), and the allowance is what fits into the
longest gap that a running stream should see. Without running streams only cancellation and arrivals wait
for a step, so the allowance is what fits into `ALONE` seconds.
"""

from __future__ import annotations

from typing import Final

_RATE: Final = 0.2
"""Weight of the newest step in the averages."""
ALONE: Final = 0.5
"""Seconds that a step of prompt tokens alone may take: a client that leaves is noticed after one step."""
SMALLEST: Final = 16
"""Prompt tokens a step always may compute, so that prompts are never starved by streams."""
UNKNOWN: Final = 64
"""Prompt tokens of a step before anything was measured: on a slow machine even these may take seconds."""


class Governor:
    """Learns step times (seconds) and gives the allowance of the next step (tokens).

    Args:
        gap: seconds that a running stream may wait between two tokens.
        largest: the most prompt tokens that a step can hold (the backend's batch size).
    """

    def __init__(self, *, gap: float, largest: int) -> None:
        self._gap = gap
        self._largest = largest
        self._base = 0.0
        self._per_token = 0.0

    def observe(self, *, prompt_tokens: int, streams: int, seconds: float) -> None:
        """Takes in a measured step that computed `prompt_tokens` beside `streams` single tokens."""
        if prompt_tokens == 0:
            self._base = _blend(self._base, seconds) if streams else self._base
        elif prompt_tokens >= SMALLEST:
            rest = max(seconds - (self._base if streams else 0.0), 0.0)
            self._per_token = _blend(self._per_token, rest / prompt_tokens)

    def allowance(self, *, streams: int) -> int:
        """Prompt tokens the next step may compute beside `streams` running ones."""
        room = self._gap - self._base if streams else ALONE
        if self._per_token <= 0.0:
            return min(self._largest, UNKNOWN)
        return max(SMALLEST, min(self._largest, int(room / self._per_token)))


def _blend(average: float, newest: float) -> float:
    return newest if average <= 0.0 else average + _RATE * (newest - average)
