"""How long steps take by how many tokens they compute, learnt from steps.

A step of one token is mostly reading weights. Further ones have to be computed beside it, by other ways through llama.cpp:
of SmolLM2-135M (Q4_1, two virtual cores) a second one adds 0.6 of a step, the next ones 0.4 each, a fifth one beside four
a quarter of what those take; on a GPU all of them add next to nothing. So nothing is assumed of the curve but that it
can be read between the sizes that were seen.

Machines drift by a fifth within minutes, steps become longer as sequences do, and other processes take what they take. So
two things are learnt: how long steps are at present, quickly, and how sizes compare with each other, slowly. What was
measured while a model is loaded would not do: the rest of the node starts on the same cores just then.
"""

from __future__ import annotations

from bisect import bisect, insort
from typing import Final

_MOST: Final = 64
"""Tokens of the largest step that is looked at."""
_SECOND, _FURTHER = 0.5, 0.4
"""What a second token and each further one add to a step of one before anything was seen."""
_PRESENT: Final = 0.3
"""Part of the news that is put down to how long steps are at present, and ..."""
_SIZE: Final = 0.1
"""... to how long such steps are."""
_ODD: Final = 0.5
"""A step is believed to be longer or shorter than expected by this part at most; the rest is what others did."""
_BACK: Final = 0.08
"""What it costs, in steps of one, that the step behind a draft has another size again: llama.cpp makes its graph anew."""
_FORGOTTEN: Final = 0.005
"""Part of the way back to what is taken for true at first, for sizes just above the one that is seen, where they seem
longer than that: whoever takes drafts for too dear makes none to see that they are not."""
_ABOVE: Final = 4
"""How many such sizes there are."""


class StepTimes:
    """Learns from seconds; `observe` mutates it."""

    def __init__(self) -> None:
        self._one = 0.0
        """Seconds of a step of one token at present, as far as sizes compare as they are thought to."""
        self._shares: dict[int, float] = {1: 1.0}
        """How long steps of the sizes that were seen are, in steps of one."""
        self._sizes = [1]

    def observe(self, tokens: int, seconds: float) -> None:
        """Takes in a step that computed so many tokens of streams, one or more, and nothing else."""
        if tokens > _MOST:
            return
        share = self._share(tokens)
        if self._one <= 0.0:
            self._one = seconds / share
        odd = max(min(seconds / (self._one * share) - 1.0, _ODD), -_ODD)
        self._one *= 1.0 + _PRESENT * odd
        if tokens > 1:
            if tokens not in self._shares:
                insort(self._sizes, tokens)
            self._shares[tokens] = share * (1.0 + _SIZE * odd)
        self._forget(tokens)

    def seconds(self, tokens: int) -> float:
        """How long a step of so many tokens of streams takes; 0 for none, and before anything was seen."""
        return self._one * self._share(tokens) if tokens else 0.0

    def cost(self, streams: int, more: int) -> float:
        """What `more` tokens of one of so many streams add to their step, in such steps and times the streams.

        That is in steps that this stream would have to itself: what it computes ahead should bring as many tokens.
        """
        now = self._share(streams)
        return streams * (self._share(streams + more) + _BACK - now) / now

    def _share(self, tokens: int) -> float:
        """A step of so many tokens, one or more, in steps of one: as seen, or between or behind sizes that were."""
        if (share := self._shares.get(tokens)) is not None:
            return share
        at = bisect(self._sizes, tokens)
        below = self._sizes[at - 1]
        if at == len(self._sizes):
            return self._shares[below] + _usual(tokens) - _usual(below)
        above = self._sizes[at]
        part = (tokens - below) / (above - below)
        return self._shares[below] * (1.0 - part) + self._shares[above] * part

    def _forget(self, tokens: int) -> None:
        here = self._share(tokens)
        for size in range(tokens + 1, tokens + 1 + _ABOVE):
            if (share := self._shares.get(size)) is not None:
                dear = share / here - _usual(size) / _usual(tokens)
                self._shares[size] = share - _FORGOTTEN * max(dear, 0.0) * here


def _usual(tokens: int) -> float:
    """A step of so many tokens, in steps of one, before anything was seen."""
    return 1.0 if tokens == 1 else 1.0 + _SECOND + _FURTHER * (tokens - 2)
