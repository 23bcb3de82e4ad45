"""Draws a token that a grammar allows, exactly as if everything else had been masked before the draw.

Asking llama.cpp about every token of a vocabulary of 150,000 costs 15 to 60 ms, about one of them 0.03 ms, and
a model that has been shown what is wanted mostly keeps to it. So a token is drawn first and asked about then:

* Greedy: the largest allowed logit is found by going down the logits.
* Temperature alone: a free draw that is allowed is kept; one that is refused is replaced by a draw from what is
  allowed. With A the allowed share, a token t comes with p(t) + (1 - A) p(t) / A = p(t) / A: what masking gives.
  The second draw takes the largest of logit / temperature + Gumbel noise among the allowed, by going down those.
* With `top_p` the nucleus is the fewest allowed tokens that weigh `top_p` of all allowed ones. Going down the
  probabilities, what is not asked about yet may or may not be allowed, so the nucleus' weight lies between two
  bounds; as soon as both lead to the same token, that is the one, and nothing more is asked.

Only where the first try misses does the constraint narrow the vocabulary down. Numbers come from the sequence's
own generator, so a seed repeats a response. Where nothing is allowed the draw is `BROKEN`, as for a row that is
not a distribution: that sequence fails, and no other.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from b3node.engine.constraint import Constraint, Ids
from b3node.engine.sampling import BROKEN, Places, Row, greedy, sample

Weights = npt.NDArray[np.float64]

_FIRST: Final = (32, 512)
"""Sizes of the first blocks that are asked about: 32 tokens cost 0.03 ms, 512 0.15 ms."""
_BLOCK: Final = 4096


def draw(row: Row, constraint: Constraint, *, temperature: float, top_p: float, source: random.Random) -> int:
    """The next token of a constrained sequence, accepted by its constraint; or `BROKEN`.

    Args:
        row: logits, shape (n_vocab,), not changed.
        constraint: where the sequence stands; goes on with the token.
        temperature: 0 is greedy, like `top_p` 0.
        top_p: 0 to 1.
        source: advanced by as many numbers as it takes.
    """
    if temperature <= 0.0 or top_p <= 0.0:
        token = _most_probable(row, constraint)
    elif top_p >= 1.0:
        token = _any(row, constraint, temperature, source)
    else:
        token = _nucleus(row, constraint, temperature, top_p, source.random())
    if token != BROKEN:
        constraint.accept(token)
    return token


def _most_probable(row: Row, constraint: Constraint) -> int:
    """The allowed token with the largest logit."""
    free = greedy(row)
    if free == BROKEN or _allowed(constraint, free):
        return free
    ids = _reach(row, constraint)
    return _first_allowed(row[ids], ids, constraint)


def _any(row: Row, constraint: Constraint, temperature: float, source: random.Random) -> int:
    """A draw from softmax(row / temperature) over the allowed tokens."""
    free = sample(row, temperature=temperature, top_p=1.0, uniform=source.random())
    if free == BROKEN or _allowed(constraint, free):
        return free
    ids = _reach(row, constraint)
    noise = np.random.default_rng(source.getrandbits(64)).standard_exponential(ids.size)
    return _first_allowed(row[ids].astype(np.float64) / temperature - np.log(noise), ids, constraint)


def _allowed(constraint: Constraint, token: int) -> bool:
    return bool(constraint.allows(np.array([token], np.int32))[0])


def _reach(row: Row, constraint: Constraint) -> Ids:
    """Tokens among which all allowed ones are."""
    narrowed = constraint.narrow()
    return np.arange(row.size, dtype=np.int32) if narrowed is None else narrowed


def _first_allowed(keys: npt.NDArray[np.floating], ids: Ids, constraint: Constraint) -> int:
    """The allowed one of `ids` with the largest key; `BROKEN` where none is allowed and possible."""
    for block in _descending(keys):
        allowed = constraint.allows(ids[block])
        if allowed.any():
            return int(ids[block[allowed.argmax()]])
    return BROKEN


def _descending(keys: npt.NDArray[np.floating]) -> Iterator[Places]:
    """The places of all keys above -inf, largest first, in blocks that grow; only what is taken is sorted."""
    rest = np.flatnonzero(keys > -np.inf)
    for size in _FIRST:
        if rest.size > 2 * size:
            order = np.argpartition(keys[rest], rest.size - size)
            top, rest = rest[order[-size:]], rest[order[:-size]]
            yield top[np.argsort(-keys[top], kind="stable")]
    rest = rest[np.argsort(-keys[rest], kind="stable")]
    for start in range(0, rest.size, _BLOCK):
        yield rest[start : start + _BLOCK]


def _nucleus(row: Row, constraint: Constraint, temperature: float, top_p: float, uniform: float) -> int:
    """A draw from the fewest allowed tokens that weigh `top_p` of what is allowed.

    First only among tokens that can be in the nucleus if all are allowed; then among all, from the top, each
    time weighed against the largest that is left: beside a refused one the allowed may weigh nothing.
    """
    if not np.isfinite(top := row.max()):
        return BROKEN
    weights = np.subtract(row, top)
    weights *= np.float32(1.0 / temperature)
    np.exp(weights, out=weights)
    total = float(weights.sum())
    heavy = np.flatnonzero(weights >= np.float32(total * (1.0 - top_p) / row.size))
    inside = weights[heavy].astype(np.float64)
    outside = max(total - float(inside.sum()), 0.0)
    token = _walk(inside, heavy.astype(np.int32), outside, constraint, top_p, uniform)
    if token != BROKEN:
        return token
    ids = _reach(row, constraint)
    while ids.size and np.isfinite(top := row[ids].max()):
        weights = np.exp((row[ids].astype(np.float64) - top) / temperature)
        possible = weights > 0.0
        token = _walk(weights[possible], ids[possible], 0.0, constraint, top_p, uniform)
        if token != BROKEN:
            return token
        ids = ids[~possible]
    return BROKEN


def _walk(
    weights: Weights, ids: Ids, outside: float, constraint: Constraint, top_p: float, uniform: float
) -> int:
    """Asks about `ids` from the heaviest down until the draw is settled; `BROKEN` where it never is.

    `outside` is the weight of tokens that are not among `ids`.
    """
    untested, left = float(weights.sum()), ids.size
    allowed_ids, allowed_weights = np.empty(0, np.int32), np.empty(0)
    for block in _descending(weights):
        left -= block.size
        untested = max(untested - float(weights[block].sum()), 0.0) if left else 0.0
        allowed = block[constraint.allows(ids[block])]
        allowed_ids = np.concatenate((allowed_ids, ids[allowed]))
        allowed_weights = np.concatenate((allowed_weights, weights[allowed]))
        place = _settled(allowed_weights, untested + outside, top_p, uniform)
        if place >= 0:
            return int(allowed_ids[place])
    return BROKEN


def _settled(weights: Weights, unknown: float, top_p: float, uniform: float) -> int:
    """The place of the draw, if it is the same whatever part of the `unknown` weight is allowed; else -1.

    `weights` are those of allowed tokens, heaviest first, each at least as heavy as any unknown one.
    """
    if not weights.size:
        return -1
    cumulative = np.cumsum(weights)
    known = cumulative[-1]
    bounds = np.array([top_p * known, top_p * (known + unknown)])
    if bounds[1] > known:
        return -1
    ends = np.searchsorted(cumulative, bounds)
    drawn = np.searchsorted(cumulative, uniform * cumulative[ends], side="right")
    least, most = np.minimum(drawn, ends)
    return int(least) if least == most else -1
