"""How long steps take, learnt from steps: one of a single token, and what further tokens of streams add to it.

A step of one token is mostly reading weights. A second one has to be computed beside it, by another way through llama.cpp,
and costs more than each further one does: of SmolLM2-135M (Q4_1, two virtual cores) a half to two thirds of a step, then
0.4 of one; on a GPU next to nothing. Machines differ, and their paces drift by a fifth within minutes, so further tokens
are known as shares of a single one as it was at the time.

What it was when the model was loaded would not do: the rest of the node starts on the same cores just then.
"""

from __future__ import annotations

from typing import Final

RATE: Final = 0.2
"""Weight of the newest step in the average of single ones."""
_LEARNT: Final = 0.1
"""Part of what a step tells otherwise than expected that is believed (normalized least mean squares)."""
_SECOND, _FURTHER = 0.5, 0.4
"""What is taken for true before anything was seen, and again, slowly, where nothing is seen for long and it is less."""
_FORGOTTEN: Final = 0.002
"""Part of the way back there at each single step: whoever takes drafts for too dear makes none to see that they are not."""
_ODD: Final = 0.5
"""Part of what was expected that a step may be believed to differ by; other processes do the rest."""


class Pace:
    """Learns in seconds; `observe` mutates it."""

    def __init__(self) -> None:
        self._one = 0.0
        self._second = _SECOND
        self._further = _FURTHER

    def observe(self, tokens: int, seconds: float) -> None:
        """Takes in a step that computed so many tokens of streams, one or more, and no prompt."""
        if self._one <= 0.0:
            self._one = seconds / self._share(tokens)
        elif tokens == 1:
            self._one += RATE * (seconds - self._one)
            self._second -= _FORGOTTEN * max(self._second - _SECOND, 0.0)
            self._further -= _FORGOTTEN * max(self._further - _FURTHER, 0.0)
        else:
            self._learn(tokens, seconds / self._one)

    def seconds(self, tokens: int) -> float:
        """How long a step of so many tokens of streams takes; 0 for none, and before anything was seen."""
        return self._one * self._share(tokens) if tokens else 0.0

    def prices(self, streams: int) -> tuple[float, float]:
        """What one more token for each of so many streams adds to their step, and each further one, in such steps."""
        now, doubled, tripled = (self._share(times * streams) for times in (1, 2, 3))
        return doubled / now - 1.0, (tripled - doubled) / now

    def _share(self, tokens: int) -> float:
        """A step of so many tokens, one or more, in steps of one."""
        return 1.0 if tokens == 1 else 1.0 + self._second + self._further * (tokens - 2)

    def _learn(self, tokens: int, share: float) -> None:
        expected, behind = self._share(tokens), tokens - 2
        odd = max(min(share - expected, _ODD * expected), -_ODD * expected)
        told = _LEARNT * odd / (1 + behind * behind)
        self._second = max(self._second + told, 0.0)
        self._further = max(self._further + told * behind, 0.0)
