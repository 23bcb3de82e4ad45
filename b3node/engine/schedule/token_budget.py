"""Chooses how many prompt tokens a step may compute, so that running streams keep their pace.

A step costs the time of its streams' tokens (`step_time`), and about the same again for each token of a
prompt; both are learnt from measured steps. The allowance of prompt tokens fits into the longest gap that a
single stream should see. The time that further streams cost each other comes on top, or prompts that come
together would crawl. Without running streams only cancellations and arrivals wait for a step, so the
allowance fits into `MAX_PROMPT_STEP_SECONDS`. Drafts are not bounded by time but by their cost (`cost`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from b3node.engine.schedule.step_time import StepTimes

NEWEST_WEIGHT: Final = 0.2
"""Weight of the newest step in the average time of a prompt token."""
MAX_PROMPT_STEP_SECONDS: Final = 0.5
"""The longest step of prompt tokens alone: a client that leaves is noticed after one step."""
MIN_PROMPT_TOKENS: Final = 16
"""Prompt tokens that a step may always compute, so that prompts are never starved by streams."""
FIRST_PROMPT_TOKENS: Final = 64
"""Prompt tokens of a step before any was measured: on a slow machine even these may take seconds."""


class MeasuredStep(NamedTuple):
    """The tokens of a step and its time."""

    prompt_tokens: int
    stream_tokens: int
    """Tokens of streams, drafts included."""
    seconds: float


class TokenBudget:
    """Learns step times; `observe` mutates it.

    Args:
        gap: seconds that a single stream may wait between two tokens, and any may because of prompts.
        largest: the most prompt tokens that a step can hold (the backend's batch size).
    """

    def __init__(self, *, gap: float, largest: int) -> None:
        self._gap = gap
        self._largest = largest
        self._step_times = StepTimes()
        self._prompt_token = 0.0
        """Average seconds of a prompt token; 0 before the first."""

    def observe(self, step: MeasuredStep) -> None:
        """Takes in a measured step."""
        prompt_tokens, stream_tokens, seconds = step
        if prompt_tokens == 0:
            if stream_tokens:
                self._step_times.observe(stream_tokens, seconds)
        elif prompt_tokens >= MIN_PROMPT_TOKENS:
            rest = max(seconds - self._step_times.seconds(stream_tokens), 0.0)
            self._prompt_token = _blend(self._prompt_token, rest / prompt_tokens)

    def allowance(self, *, streams: int) -> int:
        """Returns the prompt tokens that the next step may compute together with one of each of `streams`."""
        room = self._gap - self._step_times.seconds(1) if streams else MAX_PROMPT_STEP_SECONDS
        if self._prompt_token <= 0.0:
            return min(self._largest, FIRST_PROMPT_TOKENS)
        return max(MIN_PROMPT_TOKENS, min(self._largest, int(room / self._prompt_token)))

    def cost(self, streams: int, more: int) -> float:
        """Returns the cost of drafting `more` tokens, at least one; see `step_time.StepTimes.cost`."""
        return self._step_times.cost(streams, more)


def _blend(average: float, newest: float) -> float:
    return newest if average <= 0.0 else average + NEWEST_WEIGHT * (newest - average)
