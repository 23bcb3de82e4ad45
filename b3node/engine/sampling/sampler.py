"""Draws tokens from rows of logits, exactly, without sorting the vocabulary and mostly without weighing it.

The numbers (one row of 151,936 logits, two shared cores): llama.cpp's own chain builds and sorts a candidate
array, which costs 0.5 to 1.5 ms greedy and up to 60 ms for `top_p` alone. An argmax over the row in place
costs 0.01 ms, and the exponentials of all logits with their sum 0.15 ms. So greedy is an argmax over a view.
Otherwise:

* Only the heavy tokens, a few hundred of them, are weighed. Light tokens share an upper bound of their
  weight. So a draw falls on a heavy token, or on the place of a light one, which is then accepted with its
  weight's share of that bound; if it is not, the draw is repeated. This is rejection sampling from all
  tokens, and exact.
* Such a draw that falls inside the nucleus is a draw from the nucleus. Most do, and mostly that is seen at
  once: the tokens above the drawn one weigh less than `top_p` of the heavy ones alone.
* If that does not decide, and for small `top_p`, all tokens are weighed and the nucleus is cut out. A token
  with p < (1 - top_p) / n_vocab is never in it: all such tokens together weigh less than 1 - top_p, so the
  others alone reach top_p. Only the others, mostly a few hundred, are sorted. If the logits are so flat that
  they are many, a histogram of the weights first finds where the nucleus ends.

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
"""Logits of one position, shape (n_vocab,), or of some tokens of it."""
WeightRow = npt.NDArray[np.float32]
"""Weights of tokens, as multiples of the heaviest one's."""
Places = npt.NDArray[np.intp]
"""Indices into a row."""
_NO_PLACES: Final[Places] = np.empty(0, dtype=np.intp)


class NoToken(IntEnum):
    """Result of a draw that gave no token; token ids are never negative."""

    BROKEN = -1
    """The row is not a distribution: it holds a NaN, or nothing finite."""
    DEAD_END = -2
    """The constraint allows no token of the vocabulary: the sequence ends, and nothing is wrong."""


_BLOCK_TOKENS: Final = 1024
"""Weights that are summed up as one block, so that a draw first finds its block."""
_MAX_SHARPNESS: Final = 1e9
"""Largest 1 / temperature."""
_MAX_LIGHT_WEIGHT: Final = 4.0
"""Bound of the weight of all light tokens together, as a multiple of the heaviest token's. A larger one makes
fewer tokens heavy and more draws rejected: of SmolLM2-135M's 49,152 tokens 20 to 740 are heavy, and two to
four draws are made for a token."""
_MIN_TOKENS_PER_HEAVY: Final = 4
"""Tokens of the vocabulary for one heavy token, at least, as estimated from a sample."""
_SAMPLE_STRIDE: Final = 16
"""One token in so many is in that sample."""
_64_BITS: Final = (1 << 64) - 1
_MAX_REJECTIONS: Final = 64
"""Rejected draws after which all tokens are weighed."""
_MAX_SORTED: Final = 2048
"""Candidates that are sorted at once; more are thinned out first (a sort of 150,000 costs 5 ms)."""
_NUCLEUS_TRIES: Final = 4
"""Draws before the nucleus is cut out, which costs as much as two to ten of them."""
_MIN_TRIED_TOP_P: Final = 0.5
"""Below this `top_p`, a draw from the whole row falls outside the nucleus too often to be tried."""


def greedy(row: LogitRow) -> int:
    """Returns the id of the largest logit (the lowest id among equals), or `NoToken.BROKEN`."""
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
    if top_p < _MIN_TRIED_TOP_P:
        return _draw_nucleus(relative(row, top, temperature), top_p, uniform)
    number = itertools.chain((uniform,), _further_numbers(uniform)).__next__
    weights = Weights(row, top, temperature)
    token = weights.draw(number)
    if top_p >= 1.0 or weights.weight_above(token) < top_p * weights.heavy:
        return token
    all_weights = relative(row, top, temperature)
    if _is_inside(all_weights, token, top_p * float(_blocks(all_weights)[-1])):
        return token
    return _draw_nucleus(all_weights, top_p, number())


def _further_numbers(uniform: float) -> Iterator[float]:
    """Yields further numbers that follow from the deciding one, so that a seed repeats its response.

    The generator is SplitMix64: seeding Python's own takes longer (0.02 ms) than a draw.
    """
    state = int(uniform * 2.0**64)
    while True:
        state = state + 0x9E3779B97F4A7C15 & _64_BITS
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _64_BITS
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _64_BITS
        yield (mixed ^ mixed >> 31) * 2.0**-64


class Weights:
    """Weights of the heavy tokens of a row, as multiples of the heaviest one's, and a bound for all others.

    Attributes:
        places: the heavy tokens, ascending.
        each: their weights; 0 for excluded ones.
        heavy: the sum of their weights.
        light: upper bound of the sum of all other weights.
        truncated: whether `keep_heavier` took out tokens that are allowed, so that the sums are not those of
            all.

    Args:
        row: logits, not changed; read again for light tokens.
        top: the largest of them, finite.
        temperature: above 0.
    """

    def __init__(self, row: LogitRow, top: np.float32, temperature: float) -> None:
        self._row, self._top, self._temperature = row, top, temperature
        self._sharpness = sharpness(temperature)
        self._edge = np.float32(top - max(math.log(row.size / _MAX_LIGHT_WEIGHT), 0.0) / self._sharpness)
        self.places: Places = (row >= self._edge).nonzero()[0]
        if self.places.size * _MIN_TOKENS_PER_HEAVY > row.size > _BLOCK_TOKENS:
            self._thin()
        each = row[self.places]
        each -= top
        each *= np.float32(self._sharpness)
        self.each: WeightRow = np.exp(each, out=each)
        # A light token lies below the edge; if that is the largest logit, at the next lower float at most.
        below = self._edge if self._edge < top else np.nextafter(top, np.float32(-np.inf))
        self._most = self._weight(below)
        self.light = self._most * row.size
        self._sum()
        self._excluded: list[Places] = []
        self.truncated = False

    def _thin(self) -> None:
        """Raises the edge so that about one token in 2 `_MIN_TOKENS_PER_HEAVY` is heavy."""
        some = self._row[::_SAMPLE_STRIDE]
        count = some.size // (2 * _MIN_TOKENS_PER_HEAVY)
        self._edge = np.partition(some, -count)[-count]
        self.places = (self._row >= self._edge).nonzero()[0]

    def _sum(self) -> None:
        self._sums = self.each.cumsum(dtype=np.float64)
        self.heavy = float(self._sums[-1])

    def _weight(self, logit: np.float32) -> float:
        return math.exp((float(logit) - float(self._top)) * self._sharpness)

    def draw(self, number: Callable[[], float]) -> int:
        """Draws a token in proportion to its weight; takes as many numbers in [0, 1) as it needs."""
        whole = self.heavy + self.light
        for _ in range(_MAX_REJECTIONS):
            if (token := self._token_at(number() * whole)) is not None:
                return token
        return places(self.all_weights(), (number(),))[0]

    def _token_at(self, place: float) -> int | None:
        """Returns the token at a place below `heavy` + `light`; None if the draw is rejected."""
        if place < self.heavy:
            return int(self.places[self._sums.searchsorted(place, "right")])
        share, index = math.modf((place - self.heavy) / self._most)
        token = min(int(index), self._row.size - 1)
        logit = self._row[token]
        return token if logit < self._edge and share * self._most < self._weight(logit) else None

    def weight_above(self, token: int) -> float:
        """Returns the weight of the tokens at least as heavy as `token`, without it.

        Infinite for a light one.
        """
        if self._row[token] < self._edge:
            return math.inf
        weight = self.each[self.places.searchsorted(token)]
        return float(self.each[self.each >= weight].sum(dtype=np.float64)) - float(weight)

    def surely_in_nucleus(self, token: int, top_p: float) -> bool:
        """Returns whether the heavy tokens show that `token` is in the nucleus, whichever others are allowed.

        With its weight w, and h the weight of heavier allowed tokens, it is if h < top_p (h + w), since all
        allowed tokens weigh at least h + w. And h is at most the weight of all heavier tokens.
        """
        return self.weight_above(token) * (1.0 - top_p) < top_p * self._weight(self._row[token])

    def all_weights(self) -> WeightRow:
        """Returns the weight of every token, the light ones too; 0 for excluded ones."""
        weights = relative(self._row, self._top, self._temperature)
        for tokens in self._excluded:
            weights[tokens] = 0.0
        return weights

    def exclude(self, tokens: Places) -> None:
        """Excludes these tokens from further draws; light ones may still be drawn, though hardly ever."""
        self._excluded.append(tokens)
        at = np.minimum(self.places.searchsorted(tokens), self.places.size - 1)
        self.each[at[self.places[at] == tokens]] = 0.0
        self._sum()

    def keep_heavier(self, token: int) -> None:
        """Limits further draws to tokens heavier than `token`, if that is a heavy one."""
        if self._row[token] >= self._edge:
            self.each[self.each <= self.each[self.places.searchsorted(token)]] = 0.0
            self.light, self.truncated = 0.0, True
            self._sum()


def relative(row: LogitRow, top: np.float32, temperature: float) -> WeightRow:
    """Returns the weight of each token as a multiple of that of a token with the logit `top`."""
    weights: WeightRow = np.subtract(row, top)
    weights *= np.float32(sharpness(temperature))
    return np.exp(weights, out=weights)


def sharpness(temperature: float) -> float:
    """Returns 1 / `temperature`, bounded.

    Below some 1e-9 only equal logits are drawn from, and floats overflow.
    """
    return min(1.0 / temperature, _MAX_SHARPNESS)


def _draw_nucleus(weights: WeightRow, top_p: float, uniform: float) -> int:
    """Draws from the smallest set of most probable tokens whose mass is at least `top_p`."""
    blocks = _blocks(weights)
    total = float(blocks[-1])
    for _ in range(_NUCLEUS_TRIES if top_p >= _MIN_TRIED_TOP_P else 0):
        token = _place(weights, blocks, uniform * total)
        if _is_inside(weights, token, top_p * total):
            return token
        # The next number follows from the one that decides, so that a seed still repeats its response.
        uniform = random.Random(uniform).random()  # noqa: S311 - repeatable on purpose
    candidates = np.flatnonzero(weights >= np.float32(total * (1.0 - top_p) / weights.size))
    mass = weights[candidates]
    inside = _nucleus(mass, top_p * total)
    return int(candidates[inside[places(mass[inside], (uniform,))[0]]])


def _is_inside(weights: WeightRow, token: int, wanted: float) -> bool:
    """Returns whether the tokens before `token`, heaviest then lowest id first, weigh less than `wanted`."""
    weight = weights[token]
    equals = np.count_nonzero(weights[:token] == weight)
    return bool(np.dot(weights, weights > weight) + float(weight) * equals < wanted)


def _nucleus(mass: WeightRow, wanted: float) -> Places:
    """Returns the places of the fewest, heaviest entries that weigh at least `wanted`, or all of them."""
    sure, doubtful = _split(mass, wanted) if mass.size > _MAX_SORTED else (_NO_PLACES, np.arange(mass.size))
    order = doubtful[np.argsort(-mass[doubtful], kind="stable")]
    missing = wanted - float(mass[sure].sum(dtype=np.float64))
    cumulative = np.cumsum(mass[order], dtype=np.float64)
    return np.concatenate((sure, order[: int(np.searchsorted(cumulative, missing)) + 1]))


def _split(mass: WeightRow, wanted: float) -> tuple[Places, Places]:
    """Returns the places that are surely in the nucleus, and those among which it ends.

    The upper half of a positive float's bits grows with its value, so it serves as the bin of a histogram
    with 128 bins an octave. The nucleus ends in the bin in which the sum from the top reaches `wanted`.
    """
    bins = (mass.view(np.int32) >> 16).astype(np.int64)
    bins -= bins.min()
    from_top = np.cumsum(np.bincount(bins, weights=mass.astype(np.float64))[::-1])
    reached = min(int(np.searchsorted(from_top, wanted)), from_top.size - 1)
    last = from_top.size - 1 - reached
    return np.flatnonzero(bins > last), np.flatnonzero(bins == last)


def places(weights: WeightRow, uniforms: Sequence[float]) -> list[int]:
    """Returns the places of independent draws in proportion to `weights`.

    Each uniform number in [0, 1) gives one; it finds its block of `_BLOCK_TOKENS` first, then its place
    there.
    """
    blocks = _blocks(weights)
    return [_place(weights, blocks, uniform * float(blocks[-1])) for uniform in uniforms]


def _blocks(weights: WeightRow) -> npt.NDArray[np.float64]:
    """Returns the running sums at the end of each block."""
    edges = np.arange(0, weights.size, _BLOCK_TOKENS)
    return np.cumsum(np.add.reduceat(weights, edges), dtype=np.float64)


def _place(weights: WeightRow, blocks: npt.NDArray[np.float64], target: float) -> int:
    """Returns the place at which the running sum of the weights passes `target`.

    `blocks` are the sums of `_blocks`.
    """
    block = min(int(np.searchsorted(blocks, target, side="right")), blocks.size - 1)
    before = blocks[block - 1] if block else 0.0
    within = weights[block * _BLOCK_TOKENS : (block + 1) * _BLOCK_TOKENS]
    place = int(np.searchsorted(np.cumsum(within, dtype=np.float64), target - before, side="right"))
    return block * _BLOCK_TOKENS + min(place, int(np.flatnonzero(within)[-1]))
