"""Estimates how long a step takes by the tokens of streams that it computes; learns from measured steps.

A step of one token is mostly reading weights. Further tokens cost computation, in other kernels of llama.cpp.
With SmolLM2-135M (Q4_1, two virtual cores) a second one adds 0.6 of a step, the next ones 0.4 each, and a
fifth next to four a quarter of the time of those four; on a GPU all of them add next to nothing. So the curve
is only assumed to be readable between the sizes that were seen.

Machines drift by a fifth within minutes, steps become longer as sequences do, and other processes take their
share. So two things are learnt: the present length of a step, quickly, and how sizes compare with each other,
slowly once a size was seen a few times. A measurement at the load of a model was wrong by half: the rest of
the node starts on the same cores then.

Drafts are rare where they cost much, so the first steps of a size must count for much and be forgotten
slowly. With one constant rate of 0.1 and a decay of 0.005 a step, one core that multiplies rows singly was
taken to do a second token for 0.7 of a step where it took 1.5, and drafts for it cost more than they gained.
"""

from __future__ import annotations

from bisect import bisect, insort
from typing import Final

MAX_TOKENS: Final = 64
"""Tokens of the largest step that is learnt from."""
SECOND_TOKEN_STEPS, FURTHER_TOKEN_STEPS = 0.5, 0.4
"""The prior: the cost of a second token and of each further one, in steps of one token."""
LENGTH_RATE: Final = 0.3
"""Part of an observed deviation by which the present length of a step moves."""
MIN_SHAPE_RATE: Final = 0.1
"""Part of it by which the estimate for this size moves; more for the first steps of a size, which are
averaged.
"""
MAX_OUTLIER_RATIO: Final = 0.5
"""The largest excess that is learnt from, as a part of the expected time; the rest of it is put down to other
processes. Nothing makes a step much shorter by accident, so a shorter one counts nearly whole."""
MAX_DROP_RATIO: Final = 0.9
"""The largest deviation downwards: no size takes no time."""
REBUILD_STEPS: Final = 0.08
"""Cost of a change of size after a draft, in steps of one token: llama.cpp builds its graph anew."""
PRIOR_RATE: Final = 0.0007
"""Decay of the estimates for slightly larger sizes toward the prior at each step. Without it an estimate that
is too high is never corrected, because no draft is tried."""
DECAYED_SIZES: Final = 4
"""How many such sizes there are."""


class StepTimes:
    """Learns from seconds; `observe` mutates it."""

    def __init__(self) -> None:
        self._one_token = 0.0
        """Seconds of a step of one token at present; 0 before the first step."""
        self._shares: dict[int, float] = {1: 1.0}
        """Length of a step of each size that was seen, in steps of one token."""
        self._counts: dict[int, int] = {}
        """Number of steps of each such size, but for that of one token."""
        self._sizes = [1]

    def observe(self, tokens: int, seconds: float) -> None:
        """Takes in a step that computed `tokens` of streams, one or more, and nothing else."""
        if tokens > MAX_TOKENS:
            return
        share = self._share(tokens)
        if self._one_token <= 0.0:
            self._one_token = seconds / share
        deviation = seconds / (self._one_token * share) - 1.0
        deviation = max(min(deviation, MAX_OUTLIER_RATIO), -MAX_DROP_RATIO)
        self._one_token *= 1.0 + LENGTH_RATE * deviation
        if tokens > 1:
            if tokens not in self._shares:
                insort(self._sizes, tokens)
            count = self._counts[tokens] = self._counts.get(tokens, 0) + 1
            self._shares[tokens] = share * (1.0 + max(MIN_SHAPE_RATE, 1.0 / count) * deviation)
        self._decay_above(tokens)

    def seconds(self, tokens: int) -> float:
        """Returns how long a step of `tokens` of streams takes; 0 for none, and before the first step."""
        return self._one_token * self._share(tokens) if tokens else 0.0

    def cost(self, streams: int, more: int) -> float:
        """Returns the cost of drafting `more` tokens for one of `streams`.

        In units of that stream's share of a step: a draft pays if it yields more accepted tokens than this.
        """
        now = self._share(streams)
        return streams * (self._share(streams + more) + REBUILD_STEPS - now) / now

    def _share(self, tokens: int) -> float:
        """Returns the length of a step in steps of one token: as seen, or from the nearest seen sizes.

        Above all of them a token costs as much as those seen did on average, but at most the prior: large
        steps may run in better kernels, and are never tried where they are thought too long.
        """
        if (share := self._shares.get(tokens)) is not None:
            return share
        at = bisect(self._sizes, tokens)
        below = self._sizes[at - 1]
        if at == len(self._sizes):
            if below == 1:
                return _prior(tokens)
            seen = max(self._shares[below] - 1.0, 0.0) / (below - 1)
            return self._shares[below] + min(seen, FURTHER_TOKEN_STEPS) * (tokens - below)
        above = self._sizes[at]
        part = (tokens - below) / (above - below)
        return self._shares[below] * (1.0 - part) + self._shares[above] * part

    def _decay_above(self, tokens: int) -> None:
        """Moves the estimates for sizes just above `tokens` toward the prior where they exceed it."""
        here = self._share(tokens)
        for size in range(tokens + 1, tokens + 1 + DECAYED_SIZES):
            if (share := self._shares.get(size)) is not None:
                excess = share / here - _prior(size) / _prior(tokens)
                self._shares[size] = share - PRIOR_RATE * max(excess, 0.0) * here


def _prior(tokens: int) -> float:
    """Returns the length of a step in steps of one token, before any was seen."""
    return 1.0 if tokens == 1 else 1.0 + SECOND_TOKEN_STEPS + FURTHER_TOKEN_STEPS * (tokens - 2)
