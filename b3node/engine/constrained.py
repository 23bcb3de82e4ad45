"""Draws a token that a grammar allows, exactly as if everything else had been masked before the draw.

Asking llama.cpp about every token of a vocabulary of 150,000 costs 15 to 60 ms, about one of them 0.03 ms, and a
model that has been shown what is wanted mostly keeps to it. So a token is drawn first and asked about then.

* Greedy: the largest allowed logit is found by going down the logits.
* Otherwise tokens are drawn from all of the vocabulary, one after the other, until one is in the set that masking
  would have drawn from: allowed and, with `top_p`, in the nucleus of what is allowed. The first that is in a set
  has the distribution of a draw from that set, whatever the set is.
* Whether a token is in the nucleus (what is heavier weighs less than `top_p` of what is allowed) can mostly be told
  without asking about everything: as far as nothing is known, both weights lie between bounds (`Nucleus`).
* Where draws keep missing, or the bounds leave it open, the vocabulary is masked, narrowed down first if that helps.
* Where few tokens are refused and they are known, they are masked and the draw is as free as any.

Numbers come from the sequence's own generator, so a seed repeats a response. Where nothing is allowed the draw is a
`DEAD_END`; a row that is not a distribution is `BROKEN`, as without a constraint.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from b3node.engine.constraint import DEAD_END, Constraint, Ids
from b3node.engine.sampling import BROKEN, Places, Row, greedy, places, relative, sample, sharpness

_FIRST: Final = (32, 512, 4096)
"""Sizes of the first blocks that are asked about: 32 tokens cost 0.03 ms, 512 0.15 ms, 4096 0.8 ms."""
_BLOCK: Final = 4096
_DRAWS: Final = (1, 4, 27)
"""Draws from the whole vocabulary, then from what narrowing leaves of it, before it is masked."""


def draw(row: Row, constraint: Constraint, *, temperature: float, top_p: float, source: random.Random) -> int:
    """The next token of a constrained sequence, accepted by its constraint; or `BROKEN`, or `DEAD_END`.

    Args:
        row: logits, shape (n_vocab,), unchanged in the end.
        constraint: where the sequence stands; goes on with the token.
        temperature: 0 is greedy, like `top_p` 0.
        top_p: 0 to 1.
        source: advanced by as many numbers as it takes.
    """
    greedily = temperature <= 0.0 or top_p <= 0.0
    if (refused := constraint.refused()) is not None:
        token = _free(row, refused, 0.0 if greedily else temperature, top_p, source)
    elif greedily:
        token = _most_probable(row, constraint)
    else:
        token = _sampled(row, constraint, temperature, top_p, source)
    if token >= 0:
        constraint.accept(token)
    return token


def _free(row: Row, refused: Places, temperature: float, top_p: float, source: random.Random) -> int:
    """A draw from all but a few tokens."""
    kept, row[refused] = row[refused], -np.inf
    if temperature:
        token = sample(row, temperature=temperature, top_p=top_p, uniform=source.random())
    else:
        token = greedy(row)
    row[refused] = kept
    return token


def _most_probable(row: Row, constraint: Constraint) -> int:
    """The allowed token with the largest logit."""
    free = greedy(row)
    if free == BROKEN or _allowed(constraint, [free]):
        return free
    ids = _reach(row, constraint)
    for block in _descending(row[ids]):
        allowed = constraint.allows(ids[block])
        if allowed.any():
            return int(ids[block[allowed.argmax()]])
    return DEAD_END


def _sampled(
    row: Row, constraint: Constraint, temperature: float, top_p: float, source: random.Random
) -> int:
    """A draw from softmax(row / temperature) over the allowed tokens, cut to their nucleus."""
    if not np.isfinite(top := row.max()):
        return BROKEN
    weights = relative(row, top, temperature)
    nucleus = Nucleus(weights, constraint, top_p)
    ids: Ids | None = None
    for count in _DRAWS:
        drawn = places(weights, [source.random() for _ in range(count)])
        tokens = _allowed(constraint, drawn if ids is None else ids[drawn].tolist())
        for index, token in enumerate(tokens):
            if (inside := nucleus.holds(token)) is None:
                return _masked(row, _all_allowed(row, constraint), temperature, top_p, source, tokens[index:])
            if inside:
                return token
        if ids is None and (ids := constraint.narrow()) is not None:
            if not ids.size or not np.isfinite(top := row[ids].max()):
                return DEAD_END
            weights = relative(row[ids], top, temperature)
    return _masked(row, _all_allowed(row, constraint, ids), temperature, top_p, source)


def _masked(
    row: Row,
    ids: Ids,
    temperature: float,
    top_p: float,
    source: random.Random,
    drawn: Sequence[int] = (),
) -> int:
    """A draw from the nucleus of the allowed `ids`: the first of the `drawn` that is in it, else a new one."""
    if not ids.size or not np.isfinite(top := row[ids].max()):
        return DEAD_END
    weights = np.exp((row[ids].astype(np.float64) - top) * sharpness(temperature))
    order = np.argsort(-weights, kind="stable")
    cumulative = np.cumsum(weights[order])
    end = int(np.searchsorted(cumulative, min(top_p, 1.0) * cumulative[-1]))
    nucleus = ids[order[: end + 1]]
    for token in drawn:
        if (nucleus == token).any():
            return token
    place = int(np.searchsorted(cumulative, source.random() * cumulative[end], side="right"))
    return int(nucleus[min(place, end)])


class Nucleus:
    """What is known of the fewest allowed tokens that weigh `top_p` of all allowed ones.

    Goes down the weights in blocks, and no further than a question needs. Invariant: of the tokens asked about,
    `allowed` weighs what may come, `unknown` is the weight of what was not asked about.

    Args:
        weights: of each token beside the heaviest, which has 1.
        constraint: where the sequence stands; not changed.
        top_p: above 0; from 1 on, every allowed token is in the nucleus.
    """

    def __init__(self, weights: Row, constraint: Constraint, top_p: float) -> None:
        self._weights = weights
        self._constraint = constraint
        self._top_p = top_p
        self._blocks: Iterator[Ids] | None = None
        self._ids: Ids = np.empty(0, np.int32)
        self._allowed = np.zeros(1)
        """Weights of the allowed tokens among those asked about, summed up: before the first, before the second, ..."""
        self._unknown = 0.0

    def holds(self, token: int) -> bool | None:
        """Whether an allowed token is in it; None if only asking about most of the vocabulary could tell."""
        if self._top_p >= 1.0 or self._weights[token] >= 1.0:
            return True
        if self._blocks is None:
            self._unknown = float(self._weights.sum())
            self._blocks = self._heaviest()
        while (answer := self._known(token)) is None:
            block = next(self._blocks, None)
            if block is None:
                return None
            self._ask(block)
        return answer

    def _known(self, token: int) -> bool | None:
        """The answer, as far as it follows from what was asked."""
        least = float(self._allowed[-1])
        most = least + self._unknown
        at = np.flatnonzero(self._ids == token)
        if at.size and self._allowed[at[0]] < self._top_p * least:
            return True
        heavier = float(self._allowed[at[0]] if at.size else least)
        return False if heavier >= self._top_p * most else None

    def _ask(self, block: Ids) -> None:
        allowed = block[self._constraint.allows(block)]
        self._unknown = max(self._unknown - float(self._weights[block].sum(dtype=np.float64)), 0.0)
        sums = self._allowed[-1] + np.cumsum(self._weights[allowed], dtype=np.float64)
        self._ids = np.concatenate((self._ids, allowed))
        self._allowed = np.concatenate((self._allowed, sums))

    def _heaviest(self) -> Iterator[Ids]:
        """The first blocks of the tokens that can be in the nucleus where all tokens are allowed."""
        share = self._unknown * (1.0 - self._top_p) / self._weights.size
        heavy = np.flatnonzero(self._weights >= np.float32(share)).astype(np.int32)
        for block in itertools.islice(_descending(self._weights[heavy]), len(_FIRST)):
            yield heavy[block]


def _allowed(constraint: Constraint, tokens: list[int]) -> list[int]:
    """Those of the tokens that are allowed, in their order."""
    mask = constraint.allows(np.array(tokens, np.int32))
    return [token for token, allowed in zip(tokens, mask, strict=True) if allowed]


def _reach(row: Row, constraint: Constraint) -> Ids:
    """Tokens among which all allowed ones are."""
    narrowed = constraint.narrow()
    return np.arange(row.size, dtype=np.int32) if narrowed is None else narrowed


def _all_allowed(row: Row, constraint: Constraint, narrowed: Ids | None = None) -> Ids:
    """All allowed tokens; `narrowed` are tokens among which they are, if that is known."""
    ids = _reach(row, constraint) if narrowed is None else narrowed
    return ids[constraint.allows(ids)]


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
