"""Draws a token that a grammar allows, exactly as if all other tokens had been masked before the draw.

Asking llama.cpp about every token of a vocabulary of 150,000 costs 15 to 60 ms, about one token 0.03 ms, and
a model whose prompt shows the format mostly keeps to it. So a token is drawn first and then checked:

* Greedy: the largest allowed logit is found by going down the logits.
* Otherwise tokens are drawn from the whole vocabulary, one after the other, until one is in the set that
  masking would have drawn from: allowed and, with `top_p`, in the nucleus of the allowed tokens. The first
  draw that falls into a set has the distribution of a draw from that set, whichever set it is. Leaving out
  tokens known to be outside changes only how soon one comes. So after a refusal the heaviest tokens are
  checked at once and the refused ones left out: the model's favourite refused tokens are mostly among them.
* Whether a token is in the nucleus (the heavier tokens weigh less than `top_p` of the allowed ones) mostly
  follows without checking every token: as long as some are unchecked, both weights have bounds (`Nucleus`).
* If draws keep missing, the candidates are narrowed if that helps, and more are checked at once. If that
  fails, or the bounds do not decide, the whole vocabulary is masked.
* If the refused tokens are few and known, they are masked and the draw is as fast as a free one.

Random numbers come from the sequence's own generator, so a seed repeats a response. If no token is allowed
the draw is a `NoToken.DEAD_END`; a row that is not a distribution is `NoToken.BROKEN`, as without a
constraint.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import abc
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from b3node.engine.messages import Sampling
from b3node.engine.sampling.constraint import Constraint, Mask, TokenIds
from b3node.engine.sampling.sampler import (
    LogitRow,
    NoToken,
    Places,
    WeightRow,
    Weights,
    greedy,
    sample,
    sharpness,
)

_FIRST_BLOCKS: Final = (32, 512, 4096)
"""Sizes of the first blocks of tokens that are checked: 32 tokens cost 0.03 ms, 512 0.15 ms, 4096 0.8 ms."""
_BLOCK_TOKENS: Final = 4096
"""Size of each block after those."""
_NEAR_LOGITS: Final = 8.0
"""Logits this far below the largest, or less, are sorted before all others."""
_MAX_MISSES: Final = 4
"""Refused draws after which more tokens are checked at once."""
_MAX_LIGHT_RATIO: Final = 16
"""Weights are reused as long as the light tokens weigh at most this many times as much as the heavy ones."""
_MAX_DRAWS: Final = 64
"""Draws that are made of allowed tokens outside the nucleus; each leaves out all lighter tokens."""


def draw(row: LogitRow, constraint: Constraint | None, sampling: Sampling, rng: random.Random) -> int:
    """Draws the next token of a sequence; its constraint, if it has one, has accepted it then.

    Args:
        row: logits, shape (n_vocab,); unchanged when this returns.
        constraint: the sequence's, after its last token; advanced by the drawn one. None allows every token.
        sampling: greedy or not.
        rng: the sequence's; advanced by as many numbers as the draw takes.

    Returns:
        A token id, `NoToken.BROKEN`, or `NoToken.DEAD_END`.
    """
    if constraint is None:
        return _free(row, sampling, rng)
    if (refused := constraint.refused()) is not None:
        token = _masking(row, refused, sampling, rng)
    elif sampling.greedy:
        token = _most_probable(row, constraint)
    else:
        token = _sampled(row, constraint, sampling, rng)
    if token >= 0:
        constraint.accept(token)
    return token


def _free(row: LogitRow, sampling: Sampling, rng: random.Random) -> int:
    """Draws from all tokens."""
    return greedy(row) if sampling.greedy else sample(row, sampling, rng.random())


def _masking(row: LogitRow, refused: Places, sampling: Sampling, rng: random.Random) -> int:
    """Draws from all tokens but the few `refused` ones, which it masks in the row meanwhile."""
    kept, row[refused] = row[refused], -np.inf
    token = _free(row, sampling, rng)
    row[refused] = kept
    return token


def _most_probable(row: LogitRow, constraint: Constraint) -> int:
    """Returns the allowed token with the largest logit, or a `NoToken`."""
    free = greedy(row)
    if free == NoToken.BROKEN or _allowed(constraint, free):
        return free
    first = next(_descending(row))[: _FIRST_BLOCKS[0]].astype(np.int32)
    if (allowed := constraint.allows(first)).any():
        return int(first[allowed.argmax()])
    ids = _reach(row, constraint)
    for block in _descending(row[ids]):
        allowed = constraint.allows(ids[block])
        if allowed.any():
            return int(ids[block[allowed.argmax()]])
    return NoToken.DEAD_END


def _sampled(row: LogitRow, constraint: Constraint, sampling: Sampling, rng: random.Random) -> int:
    """Draws from softmax(row / temperature) over the allowed tokens, cut to their nucleus."""
    top = row.max()
    if not math.isfinite(top):
        return NoToken.BROKEN
    weights = Weights(row, top, sampling.temperature)
    token = weights.draw(rng.random)
    allowed = _allowed(constraint, token)
    if allowed and (sampling.top_p >= 1.0 or weights.surely_in_nucleus(token, sampling.top_p)):
        return token
    search = Search(row, constraint, sampling, rng)
    return search.run(weights, (token,) if allowed else ())


def _masked(
    row: LogitRow,
    ids: TokenIds,
    sampling: Sampling,
    rng: random.Random,
    drawn: abc.Sequence[int] = (),
) -> int:
    """Draws from the nucleus of the allowed `ids`: the first of `drawn` that is in it, else a new draw."""
    if not ids.size or not np.isfinite(top := row[ids].max()):
        return NoToken.DEAD_END
    weights = np.exp((row[ids].astype(np.float64) - top) * sharpness(sampling.temperature))
    order = np.argsort(-weights, kind="stable")
    cumulative = np.cumsum(weights[order])
    end = int(np.searchsorted(cumulative, min(sampling.top_p, 1.0) * cumulative[-1]))
    nucleus = ids[order[: end + 1]]
    for token in drawn:
        if (nucleus == token).any():
            return token
    place = int(np.searchsorted(cumulative, rng.random() * cumulative[end], side="right"))
    return int(nucleus[min(place, end)])


class Search:
    """Draw that continues after its first token was refused or may be outside the nucleus.

    Refused tokens are left out of further draws. Tokens have places in a row of the remaining ones, which
    becomes shorter if `narrow` helps.
    """

    def __init__(self, row: LogitRow, constraint: Constraint, sampling: Sampling, rng: random.Random) -> None:
        self._row = self._whole = row
        self._ids: TokenIds | None = None
        """The tokens of the places; None as long as they are the same."""
        self._allowed: set[int] = set()
        self._refused: list[Places] = []
        """Places found to be refused so far."""
        self._constraint = constraint
        self._sampling = sampling
        self._rng = rng

    def run(self, weights: Weights, first: abc.Sequence[int]) -> int:
        """Returns a token, or `NoToken.DEAD_END`.

        Args:
            weights: of the whole row.
            first: tokens that were drawn from them and are allowed: one or none.
        """
        left: Weights | None = weights
        found = self._try_draws(weights, first) if first else None
        for number, size in enumerate(_FIRST_BLOCKS):
            if found is not None:
                return found
            if number == 1 and (ids := self._constraint.narrow()) is not None:
                if ids.size <= size:
                    break
                left = self._narrowed(ids)
            if left is None or (left := self._without_refused(left, size)) is None:
                return NoToken.DEAD_END
            found = self._try_draws(left)
        return self._masked() if found is None else found

    def _try_draws(self, weights: Weights, first: abc.Sequence[int] = ()) -> int | None:
        """Returns a token of the nucleus; None if too many draws are refused.

        The `first` places come before new draws.
        """
        nucleus, misses = Nucleus(weights, self._allows, self._sampling.top_p), 0
        draws = itertools.chain(first, iter(lambda: weights.draw(self._rng.random), None))
        for place in itertools.islice(draws, _MAX_DRAWS):
            if place in self._allowed or not self._exclude_refused(weights, np.array([place])):
                if (inside := nucleus.holds(place)) is None:
                    return self._masked([self._token(place)])
                if inside:
                    return self._token(place)
                weights.keep_heavier(place)
            elif (misses := misses + 1) == _MAX_MISSES or not weights.heavy:
                break
        return None

    def _without_refused(self, weights: Weights, size: int) -> Weights | None:
        """Checks the heaviest tokens at once.

        Returns the weights of the remaining ones, or None if none remain.
        """
        left = self._weights() if weights.truncated else weights
        if left is not None:
            self._exclude_refused(left, left.places[_largest(left.each, size)])
        return left if left is None or left.heavy * _MAX_LIGHT_RATIO > left.light else self._weights()

    def _narrowed(self, ids: TokenIds) -> Weights | None:
        """Returns the weights of the tokens `ids` alone, in places of their own; None if there are none."""
        self._row, self._ids = self._row[ids], ids
        self._allowed.clear()
        self._refused.clear()
        return self._weights()

    def _weights(self) -> Weights | None:
        """Returns the weights of the tokens not refused so far; None if there are none."""
        left = self._row.copy()
        for places in self._refused:
            left[places] = -np.inf
        top = left.max(initial=-np.inf)
        return Weights(left, top, self._sampling.temperature) if top > -np.inf else None

    def _exclude_refused(self, weights: Weights, places: Places) -> bool:
        """Checks the places and excludes the refused ones; returns whether there are any."""
        mask = self._allows(places)
        self._allowed.update(places[mask].tolist())
        refused = places[~mask]
        if refused.size:
            self._refused.append(refused)
            weights.exclude(refused)
        return bool(refused.size)

    def _token(self, place: int) -> int:
        return place if self._ids is None else int(self._ids[place])

    def _allows(self, places: Places) -> Mask:
        return self._constraint.allows(places.astype(np.int32) if self._ids is None else self._ids[places])

    def _masked(self, drawn: abc.Sequence[int] = ()) -> int:
        """Masks the whole vocabulary.

        Returns the first of `drawn` that is in the nucleus, else draws anew.
        """
        ids = _all_allowed(self._whole, self._constraint, self._ids)
        return _masked(self._whole, ids, self._sampling, self._rng, drawn)


class Nucleus:
    """Decides whether tokens are among the fewest allowed ones that weigh `top_p` of all allowed ones.

    Goes down the weights in blocks, and no further than a question needs. Invariant: `allowed` holds the
    weights of the places checked and allowed, `unknown` the weight of the unchecked ones.

    Args:
        weights: of the remaining tokens of a row; excluded ones count as refused until they are checked.
        allows: for each of some places, whether it is allowed.
        top_p: above 0; from 1 on, every allowed place is in the nucleus.
    """

    def __init__(self, weights: Weights, allows: Callable[[Places], Mask], top_p: float) -> None:
        self._weights = weights
        self._allows = allows
        self._top_p = top_p
        self._steps = self._ask_more()
        self._asked: Places = np.empty(0, np.intp)
        """The allowed places among those checked, heaviest first."""
        self._allowed = np.zeros(1)
        """Running sums of their weights: before the first, before the second, ..."""
        self._unknown = math.inf

    def holds(self, place: int) -> bool | None:
        """Returns whether an allowed place is in it; None if deciding takes most of the vocabulary."""
        if self._top_p >= 1.0 or self._weights.surely_in_nucleus(place, self._top_p):
            return True
        while (answer := self._answer(place)) is None:
            if not next(self._steps, False):
                return None
        return answer

    def _answer(self, place: int) -> bool | None:
        """Returns the answer as far as it follows from the checked places, else None."""
        least = float(self._allowed[-1])
        most = least + self._unknown
        at = np.flatnonzero(self._asked == place)
        if at.size and self._allowed[at[0]] < self._top_p * least:
            return True
        heavier = float(self._allowed[at[0]] if at.size else least)
        return False if heavier >= self._top_p * most else None

    def _ask_more(self) -> Iterator[bool]:
        """Checks more places with each step and updates the unknown weight.

        Few are weighed before the first step.
        """
        places, each = self._weights.places, self._weights.each
        self._unknown = self._weights.heavy + self._weights.light
        first = _largest(each, _FIRST_BLOCKS[0])
        self._ask(places[first], each[first])
        yield True
        every = self._weights.all_weights()
        every[places[first]] = 0.0
        self._unknown = float(every.sum(dtype=np.float64))
        yield True
        share = (self._allowed[-1] + self._unknown) * (1.0 - self._top_p) / every.size
        places = np.flatnonzero(
            every >= np.float32(share)
        )  # no lighter token can be inside if all are allowed
        each = every[places]
        for size in _FIRST_BLOCKS[1:]:
            block = _largest(each, size)
            self._ask(places[block], each[block])
            each[block] = 0.0
            yield True

    def _ask(self, places: Places, weights: WeightRow) -> None:
        mask = self._allows(places)
        self._unknown = max(self._unknown - float(weights.sum(dtype=np.float64)), 0.0)
        self._asked = np.concatenate((self._asked, places[mask]))
        sums = self._allowed[-1] + weights[mask].cumsum(dtype=np.float64)
        self._allowed = np.concatenate((self._allowed, sums))


def _allowed(constraint: Constraint, token: int) -> bool:
    return bool(constraint.allows(np.array([token], np.int32))[0])


def _reach(row: LogitRow, constraint: Constraint) -> TokenIds:
    """Returns tokens among which all allowed ones are."""
    narrowed = constraint.narrow()
    return np.arange(row.size, dtype=np.int32) if narrowed is None else narrowed


def _all_allowed(row: LogitRow, constraint: Constraint, narrowed: TokenIds | None = None) -> TokenIds:
    """Returns all allowed tokens; `narrowed` are tokens among which they are, if known."""
    ids = _reach(row, constraint) if narrowed is None else narrowed
    return ids[constraint.allows(ids)]


def _largest(keys: WeightRow, count: int) -> Places:
    """Returns the places of the largest keys above 0, largest first, at most `count`."""
    some = np.argpartition(keys, -count)[-count:] if keys.size > 2 * count else np.flatnonzero(keys)
    order = some[np.argsort(-keys[some], kind="stable")][:count]
    return order[: np.count_nonzero(keys[order])]


def _descending(keys: WeightRow) -> Iterator[Places]:
    """Yields the places of all keys above -inf, largest first, in growing blocks; sorts only those taken."""
    if (top := keys.max(initial=-np.inf)) > -np.inf:
        near = keys >= top - _NEAR_LOGITS
        yield from _sorted(keys, near)
        yield from _sorted(keys, ~near & (keys > -np.inf))


def _sorted(keys: WeightRow, taken: Mask) -> Iterator[Places]:
    """Yields the places of the `taken` keys, largest first, in growing blocks."""
    rest = np.flatnonzero(taken)
    for size in _FIRST_BLOCKS:
        if rest.size > 2 * size:
            order = np.argpartition(keys[rest], rest.size - size)
            top, rest = rest[order[-size:]], rest[order[:-size]]
            yield top[np.argsort(-keys[top], kind="stable")]
    rest = rest[np.argsort(-keys[rest], kind="stable")]
    for start in range(0, rest.size, _BLOCK_TOKENS):
        yield rest[start : start + _BLOCK_TOKENS]
