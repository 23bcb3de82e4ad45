"""Draws tokens from rows of logits, exactly, without sorting a vocabulary.

Numbers (one row of 151,936, two shared cores): llama.cpp's own chain builds and sorts a candidate array
and costs 0.5 to 1.5 ms greedy and up to 60 ms for `top_p` alone; an argmax over the row in place costs
0.01 ms. So greedy is an argmax over a view, and a nucleus is cut out before anything is sorted:

* A draw from the whole row that falls inside the nucleus is a draw from the nucleus, and whether it does is one sum
  over what is heavier. One that falls outside is drawn again: one in twenty does at a `top_p` of 0.95.
* After a few of those, and for small `top_p`, the nucleus is cut out. A token with p < (1 - top_p) / n_vocab is never
  in it: all such tokens together weigh less than 1 - top_p, so the others alone reach top_p. Only the others, mostly
  a few hundred, are sorted; where logits are so flat that they are many, a histogram of the weights first finds
  where the nucleus ends.
* Without a nucleus the draw inverts the cumulative sum in two levels: blocks first, then one block.

A row that is not a distribution (a NaN, or nothing finite) gives `BROKEN`: that sequence alone fails.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Row = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]
_NONE: Final[Places] = np.empty(0, dtype=np.intp)
BROKEN: Final = -1
_BLOCK: Final = 1024
_SHARPEST: Final = 1e9
_SORTABLE: Final = 2048
"""Candidates that are sorted at once; more are thinned out first (a sort of 150,000 costs 5 ms)."""
_TRIES: Final = 4
"""Draws before the nucleus is cut out, which costs as much as two to ten of them."""
_LIKELY: Final = 0.5
"""The `top_p` below which a draw from the whole row falls outside too often to be tried."""


def greedy(row: Row) -> int:
    """The id of the largest logit (the lowest id among equals), or `BROKEN`."""
    token = int(row.argmax())
    return token if math.isfinite(row[token]) else BROKEN


def sample(row: Row, *, temperature: float, top_p: float, uniform: float) -> int:
    """One draw from softmax(row / temperature), cut to the smallest set of mass `top_p`.

    `row` has shape (n_vocab,), float32, and is not changed; `temperature` > 0; 0 < `top_p` <= 1;
    `uniform` in [0, 1) decides the draw. Returns a token id or `BROKEN`.
    """
    top = row.max()
    if not np.isfinite(top):
        return BROKEN
    weights = relative(row, top, temperature)
    if top_p < 1.0:
        return _draw_nucleus(weights, top_p, uniform)
    return places(weights, (uniform,))[0]


def relative(row: Row, top: np.float32, temperature: float) -> Row:
    """The weight of each token beside one with the logit `top`."""
    weights: Row = np.subtract(row, top)
    weights *= np.float32(sharpness(temperature))
    return np.exp(weights, out=weights)


def sharpness(temperature: float) -> float:
    """1 / `temperature`, bounded: below some 1e-9 only equal logits are drawn from, and floats overflow."""
    return min(1.0 / temperature, _SHARPEST)


def _draw_nucleus(weights: Row, top_p: float, uniform: float) -> int:
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


def _is_inside(weights: Row, token: int, wanted: float) -> bool:
    """Whether what comes before `token`, heaviest and then lowest id first, weighs less than `wanted`."""
    weight = weights[token]
    equals = np.count_nonzero(weights[:token] == weight)
    return bool(np.dot(weights, weights > weight) + float(weight) * equals < wanted)


def _nucleus(mass: Row, wanted: float) -> Places:
    """The places of the fewest, heaviest entries that weigh at least `wanted` (of all, where none do)."""
    sure, doubtful = _split(mass, wanted) if mass.size > _SORTABLE else (_NONE, np.arange(mass.size))
    order = doubtful[np.argsort(-mass[doubtful], kind="stable")]
    missing = wanted - float(mass[sure].sum(dtype=np.float64))
    cumulative = np.cumsum(mass[order], dtype=np.float64)
    return np.concatenate((sure, order[: int(np.searchsorted(cumulative, missing)) + 1]))


def _split(mass: Row, wanted: float) -> tuple[Places, Places]:
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


def places(weights: Row, uniforms: Sequence[float]) -> list[int]:
    """The places of independent draws proportional to `weights`, one a uniform number in [0, 1).

    Which block of 1024 first, then where in it.
    """
    blocks = _blocks(weights)
    return [_place(weights, blocks, uniform * float(blocks[-1])) for uniform in uniforms]


def _blocks(weights: Row) -> npt.NDArray[np.float64]:
    """The sums up to the end of each block."""
    edges = np.arange(0, weights.size, _BLOCK)
    return np.cumsum(np.add.reduceat(weights, edges), dtype=np.float64)


def _place(weights: Row, blocks: npt.NDArray[np.float64], target: float) -> int:
    """Where the sum of the weights passes `target`; `blocks` are the sums up to the end of each block."""
    block = min(int(np.searchsorted(blocks, target, side="right")), blocks.size - 1)
    before = blocks[block - 1] if block else 0.0
    within = weights[block * _BLOCK : (block + 1) * _BLOCK]
    place = int(np.searchsorted(np.cumsum(within, dtype=np.float64), target - before, side="right"))
    return block * _BLOCK + min(place, int(np.flatnonzero(within)[-1]))
