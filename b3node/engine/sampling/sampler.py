"""Draws tokens from rows of logits, exactly, without sorting a vocabulary and mostly without weighing it.

Numbers (one row of 151,936, two shared cores): llama.cpp's own chain builds and sorts a candidate array
and costs 0.5 to 1.5 ms greedy and up to 60 ms for `top_p` alone; an argmax over the row in place costs
0.01 ms, and the exponentials of all logits with their sum 0.15 ms. So greedy is an argmax over a view, and else:

* Only the heavy tokens, a few hundred of them, are weighed. What no other token can weigh more than is known, so a
  draw falls on a heavy one, or on the place of another one, which then takes it with a chance of what it weighs of
  that; where it does not, the draw is made again. That is a draw from all tokens by rejection, and it is exact.
* Such a draw that falls inside the nucleus is a draw from the nucleus, and mostly it does, and it is seen at once:
  what is heavier weighs less than `top_p` of the heavy ones alone.
* Where that does not tell, and for small `top_p`, all tokens are weighed and the nucleus is cut out. A token with
  p < (1 - top_p) / n_vocab is never in it: all such tokens together weigh less than 1 - top_p, so the others alone
  reach top_p. Only the others, mostly a few hundred, are sorted; where logits are so flat that they are many, a
  histogram of the weights first finds where the nucleus ends.

A row that is not a distribution (a NaN, or nothing finite) gives `NoToken.BROKEN`: that sequence alone fails.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from b3node.engine.messages import Sampling

LogitRow = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]
_NONE: Final[Places] = np.empty(0, dtype=np.intp)


class NoToken(IntEnum):
    """A draw that is no token; token ids are never negative."""

    BROKEN = -1
    """The row is not a distribution: it holds a NaN, or nothing finite."""
    DEAD_END = -2
    """The constraint allows no token of the vocabulary: the sequence ends, and nothing is wrong."""


_BLOCK: Final = 1024
_SHARPEST: Final = 1e9
_LIGHT: Final = 4.0
"""What all light tokens can weigh together beside the heaviest token, at most. More makes fewer tokens heavy, and more
draws fall through: of SmolLM2-135M's 49,152 tokens 20 to 740 are heavy, and two to four draws are made of one."""
_HEAVY: Final = 4
"""At most one token in so many is heavy, as far as can be told from ..."""
_SAMPLE: Final = 16
"""... one token in so many."""
_64_BITS: Final = (1 << 64) - 1
_FALLS: Final = 64
"""Draws that may fall through before all tokens are weighed."""
_SORTABLE: Final = 2048
"""Candidates that are sorted at once; more are thinned out first (a sort of 150,000 costs 5 ms)."""
_TRIES: Final = 4
"""Draws before the nucleus is cut out, which costs as much as two to ten of them."""
_LIKELY: Final = 0.5
"""The `top_p` below which a draw from the whole row falls outside too often to be tried."""


def greedy(row: LogitRow) -> int:
    """The id of the largest logit (the lowest id among equals), or `NoToken.BROKEN`."""
    token = int(row.argmax())
    return token if math.isfinite(row[token]) else NoToken.BROKEN


def sample(row: LogitRow, sampling: Sampling, uniform: float) -> int:
    """Draws once from softmax(row / temperature), cut to the smallest set of mass `top_p`.

    Args:
        row: logits, shape (n_vocab,), float32, not changed.
        sampling: not greedy.
        uniform: in [0, 1); decides the draw.

    Returns:
        A token id, or `NoToken.BROKEN`.
    """
    temperature, top_p = sampling.temperature, sampling.top_p
    top = row.max()
    if not math.isfinite(top):
        return NoToken.BROKEN
    if top_p < _LIKELY:
        return _draw_nucleus(relative(row, top, temperature), top_p, uniform)
    number = itertools.chain((uniform,), _more(uniform)).__next__
    weights = Weights(row, top, temperature)
    token = weights.draw(number)
    if top_p >= 1.0 or weights.heavier(token) < top_p * weights.heavy:
        return token
    every = relative(row, top, temperature)
    if _is_inside(every, token, top_p * float(_blocks(every)[-1])):
        return token
    return _draw_nucleus(every, top_p, number())


def _more(uniform: float) -> Iterator[float]:
    """Other numbers from the one that decides, so that a seed still repeats its response: SplitMix64.

    Python's own generator takes longer to be seeded (0.02 ms) than a draw takes.
    """
    state = int(uniform * 2.0**64)
    while True:
        state = state + 0x9E3779B97F4A7C15 & _64_BITS
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _64_BITS
        yield (mixed ^ mixed >> 31) * 2.0**-64


class Weights:
    """What the tokens of a row weigh beside the heaviest one, which has 1: those that are heavy, and no others.

    Attributes:
        places: the heavy tokens, ascending.
        each: what they weigh; 0 for those that are left out.
        heavy: what they weigh together.
        light: what all others can weigh together at most.
        cut: whether some are not drawn that may well come (`keep_heavier`), so that the sums are not those of all.

    Args:
        row: logits, not changed; the chances of light tokens are looked up in it.
        top: the largest of them, finite.
        temperature: above 0.
    """

    def __init__(self, row: LogitRow, top: np.float32, temperature: float) -> None:
        self._row, self._top, self._temperature = row, top, temperature
        self._sharpness = sharpness(temperature)
        self._edge = np.float32(top - max(math.log(row.size / _LIGHT), 0.0) / self._sharpness)
        self.places: Places = (row >= self._edge).nonzero()[0]
        if self.places.size * _HEAVY > row.size > _BLOCK:
            self._thin()
        each = row[self.places]
        each -= top
        each *= np.float32(self._sharpness)
        self.each: LogitRow = np.exp(each, out=each)
        # What is light is below the edge, and where that is the largest logit, at most the number below it.
        below = self._edge if self._edge < top else np.nextafter(top, np.float32(-np.inf))
        self._most = self._weight(below)
        self.light = self._most * row.size
        self._sum()
        self._left_out: list[Places] = []
        self.cut = False

    def _thin(self) -> None:
        """Raises the edge to where about one token in 2 `_HEAVY` is heavy."""
        some = self._row[::_SAMPLE]
        count = some.size // (2 * _HEAVY)
        self._edge = np.partition(some, -count)[-count]
        self.places = (self._row >= self._edge).nonzero()[0]

    def _sum(self) -> None:
        self._sums = self.each.cumsum(dtype=np.float64)
        self.heavy = float(self._sums[-1])

    def _weight(self, logit: np.float32) -> float:
        return math.exp((float(logit) - float(self._top)) * self._sharpness)

    def draw(self, number: Callable[[], float]) -> int:
        """A token, with the chance of its share in all of them; takes as many numbers in [0, 1) as it needs."""
        whole = self.heavy + self.light
        for _ in range(_FALLS):
            if (token := self._at(number() * whole)) >= 0:
                return token
        return places(self.every(), (number(),))[0]

    def _at(self, place: float) -> int:
        """The token at a place below `heavy` + `light`; -1 where none is."""
        if place < self.heavy:
            return int(self.places[self._sums.searchsorted(place, "right")])
        share, index = math.modf((place - self.heavy) / self._most)
        token = min(int(index), self._row.size - 1)
        logit = self._row[token]
        return token if logit < self._edge and share * self._most < self._weight(logit) else -1

    def heavier(self, token: int) -> float:
        """What weighs as much as `token` or more, without itself; infinite for a light token."""
        if self._row[token] < self._edge:
            return math.inf
        weight = self.each[self.places.searchsorted(token)]
        return float(self.each[self.each >= weight].sum(dtype=np.float64)) - float(weight)

    def leads(self, token: int, top_p: float) -> bool:
        """Whether `token` is in the nucleus whatever else is not allowed, as far as that is seen at once.

        With its weight w, and h of what is heavier and allowed, it is if h < top_p (h + w): all that is allowed
        weighs h + w at least. And h is at most what is heavier.
        """
        return self.heavier(token) * (1.0 - top_p) < top_p * self._weight(self._row[token])

    def every(self) -> LogitRow:
        """What every token weighs, the light ones too; 0 for those that are left out."""
        weights = relative(self._row, self._top, self._temperature)
        for tokens in self._left_out:
            weights[tokens] = 0.0
        return weights

    def leave_out(self, tokens: Places) -> None:
        """Draws these tokens no more, or hardly if they are light."""
        self._left_out.append(tokens)
        at = np.minimum(self.places.searchsorted(tokens), self.places.size - 1)
        self.each[at[self.places[at] == tokens]] = 0.0
        self._sum()

    def keep_heavier(self, token: int) -> None:
        """Draws only what is heavier than `token`, if that is heavy."""
        if self._row[token] >= self._edge:
            self.each[self.each <= self.each[self.places.searchsorted(token)]] = 0.0
            self.light, self.cut = 0.0, True
            self._sum()


def relative(row: LogitRow, top: np.float32, temperature: float) -> LogitRow:
    """The weight of each token beside one with the logit `top`."""
    weights: LogitRow = np.subtract(row, top)
    weights *= np.float32(sharpness(temperature))
    return np.exp(weights, out=weights)


def sharpness(temperature: float) -> float:
    """1 / `temperature`, bounded: below some 1e-9 only equal logits are drawn from, and floats overflow."""
    return min(1.0 / temperature, _SHARPEST)


def _draw_nucleus(weights: LogitRow, top_p: float, uniform: float) -> int:
    """A draw from the smallest set of most probable tokens whose mass is at least `top_p`."""
    blocks = _blocks(weights)
    total = float(blocks[-1])
    for _ in range(_TRIES if top_p >= _LIKELY else 0):
        token = _place(weights, blocks, uniform * total)
        if _is_inside(weights, token, top_p * total):
            return token
        # Another number from the one that decides, so that a seed still repeats its response.
        uniform = random.Random(uniform).random()  # noqa: S311 - repeatable on purpose
    candidates = np.flatnonzero(weights >= np.float32(total * (1.0 - top_p) / weights.size))
    mass = weights[candidates]
    inside = _nucleus(mass, top_p * total)
    return int(candidates[inside[places(mass[inside], (uniform,))[0]]])


def _is_inside(weights: LogitRow, token: int, wanted: float) -> bool:
    """Whether what comes before `token`, heaviest and then lowest id first, weighs less than `wanted`."""
    weight = weights[token]
    equals = np.count_nonzero(weights[:token] == weight)
    return bool(np.dot(weights, weights > weight) + float(weight) * equals < wanted)


def _nucleus(mass: LogitRow, wanted: float) -> Places:
    """The places of the fewest, heaviest entries that weigh at least `wanted` (of all, where none do)."""
    sure, doubtful = _split(mass, wanted) if mass.size > _SORTABLE else (_NONE, np.arange(mass.size))
    order = doubtful[np.argsort(-mass[doubtful], kind="stable")]
    missing = wanted - float(mass[sure].sum(dtype=np.float64))
    cumulative = np.cumsum(mass[order], dtype=np.float64)
    return np.concatenate((sure, order[: int(np.searchsorted(cumulative, missing)) + 1]))


def _split(mass: LogitRow, wanted: float) -> tuple[Places, Places]:
    """Places that are in the nucleus for sure, and those among which it ends.

    The upper half of a positive float's bits grows with its value, so it serves as the bin of a histogram
    with 128 bins an octave; the nucleus ends in the bin where the sum from the top reaches `wanted`.
    """
    bins = (mass.view(np.int32) >> 16).astype(np.int64)
    bins -= bins.min()
    from_top = np.cumsum(np.bincount(bins, weights=mass.astype(np.float64))[::-1])
    reached = min(int(np.searchsorted(from_top, wanted)), from_top.size - 1)
    last = from_top.size - 1 - reached
    return np.flatnonzero(bins > last), np.flatnonzero(bins == last)


def places(weights: LogitRow, uniforms: Sequence[float]) -> list[int]:
    """The places of independent draws proportional to `weights`, one a uniform number in [0, 1).

    Which block of 1024 first, then where in it.
    """
    blocks = _blocks(weights)
    return [_place(weights, blocks, uniform * float(blocks[-1])) for uniform in uniforms]


def _blocks(weights: LogitRow) -> npt.NDArray[np.float64]:
    """The sums up to the end of each block."""
    edges = np.arange(0, weights.size, _BLOCK)
    return np.cumsum(np.add.reduceat(weights, edges), dtype=np.float64)


def _place(weights: LogitRow, blocks: npt.NDArray[np.float64], target: float) -> int:
    """Where the sum of the weights passes `target`; `blocks` are the sums up to the end of each block."""
    block = min(int(np.searchsorted(blocks, target, side="right")), blocks.size - 1)
    before = blocks[block - 1] if block else 0.0
    within = weights[block * _BLOCK : (block + 1) * _BLOCK]
    place = int(np.searchsorted(np.cumsum(within, dtype=np.float64), target - before, side="right"))
    return block * _BLOCK + min(place, int(np.flatnonzero(within)[-1]))
