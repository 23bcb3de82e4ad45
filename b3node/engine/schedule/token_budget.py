"""Chooses how many tokens a step may compute beside one of each stream, so that running streams keep their pace.

A step costs what its streams' tokens do (`pace`) and, for each token of a prompt, about the same again: both are learnt
from measured steps. The allowance of prompt tokens is what fits into the longest gap that a stream should see that runs
beside them alone; what more streams cost each other comes on top, or prompts that come together would crawl. Without running streams only cancellation and arrivals wait for a step, so the allowance is what fits into `MAX_PROMPT_STEP_SECONDS` seconds.
What streams may compute ahead of what they said is not bounded by time but by what it costs (`cost`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from b3node.engine.schedule.step_time import StepTimes

_RATE: Final = 0.2
"""Weight of the newest step in the average of prompt tokens."""
MAX_PROMPT_STEP_SECONDS: Final = 0.5
"""Seconds that a step of prompt tokens alone may take: a client that leaves is noticed after one step."""
MIN_PROMPT_TOKENS: Final = 16
"""Prompt tokens a step always may compute, so that prompts are never starved by streams."""
FIRST_PROMPT_TOKENS: Final = 64
"""Prompt tokens of a step before anything was measured: on a slow machine even these may take seconds."""


class MeasuredStep(NamedTuple):
    """A step: tokens of prompts, tokens of streams, what they compute ahead included, and how long it took."""

    prompt_tokens: int
    stream_tokens: int
    seconds: float


class TokenBudget:
    """Learns step times (seconds); `observe` mutates it.

    Args:
        gap: seconds that a single stream may wait between two tokens, and any may because of prompts.
        largest: the most prompt tokens that a step can hold (the backend's batch size).
    """

    def __init__(self, *, gap: float, largest: int) -> None:
        self._gap = gap
        self._largest = largest
        self._pace = StepTimes()
        self._per_token = 0.0

    def observe(self, step: MeasuredStep) -> None:
        """Takes in a measured step."""
        prompt_tokens, stream_tokens, seconds = step
        if prompt_tokens == 0:
            if stream_tokens:
                self._pace.observe(stream_tokens, seconds)
        elif prompt_tokens >= MIN_PROMPT_TOKENS:
            rest = max(seconds - self._pace.seconds(stream_tokens), 0.0)
            self._per_token = _blend(self._per_token, rest / prompt_tokens)

    def allowance(self, *, streams: int) -> int:
        """Prompt tokens the next step may compute beside `streams` running ones."""
        room = self._gap - self._pace.seconds(1) if streams else MAX_PROMPT_STEP_SECONDS
        if self._per_token <= 0.0:
            return min(self._largest, FIRST_PROMPT_TOKENS)
        return max(MIN_PROMPT_TOKENS, min(self._largest, int(room / self._per_token)))

    def cost(self, streams: int, more: int) -> float:
        """What `more` tokens of one of `streams`, at least one, cost; see `engine.schedule.step_time.StepTimes.cost`."""
        return self._pace.cost(streams, more)


def _blend(average: float, newest: float) -> float:
    return newest if average <= 0.0 else average + _RATE * (newest - average)
