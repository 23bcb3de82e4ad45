"""Draws a token that a grammar allows, exactly as if everything else had been masked before the draw.

Asking llama.cpp about every token of a vocabulary of 150,000 costs 15 to 60 ms, about one of them 0.03 ms, and a
model that has been shown what is wanted mostly keeps to it. So a token is drawn first and asked about then.

* Greedy: the largest allowed logit is found by going down the logits.
* Otherwise tokens are drawn from all of the vocabulary, one after the other, until one is in the set that masking
  would have drawn from: allowed and, with `top_p`, in the nucleus of what is allowed. The first that is in a set
  has the distribution of a draw from that set, whatever the set is; and leaving out what is known not to be in it
  changes nothing but how soon one comes. So where a token was refused, the heaviest are asked about at once, and
  those of them that are refused are left out: what the model wants most and may not write is mostly among them.
* Whether a token is in the nucleus (what is heavier weighs less than `top_p` of what is allowed) can mostly be told
  without asking about everything: as far as nothing is known, both weights lie between bounds (`Nucleus`).
* Where draws keep missing, what may come is narrowed down if that helps, and more is asked about at once. Where that
  was to no avail, or the bounds leave it open, the vocabulary is masked.
* Where few tokens are refused and they are known, they are masked and the draw is as free as any.

Numbers come from the sequence's own generator, so a seed repeats a response. Where nothing is allowed the draw is a
`NoToken.DEAD_END`; a row that is not a distribution is `NoToken.BROKEN`, as without a constraint.
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
from b3node.engine.sampling.sampler import LogitRow, NoToken, Places, Weights, greedy, sample, sharpness

_FIRST: Final = (32, 512, 4096)
"""Sizes of the first blocks that are asked about: 32 tokens cost 0.03 ms, 512 0.15 ms, 4096 0.8 ms."""
_BLOCK: Final = 4096
_NEAR: Final = 8.0
"""Logits that are so much below the largest, or less, are looked through before all others are."""
_MISSES: Final = 4
"""Draws that are refused before more is asked about at once; outside the nucleus there may be ..."""
_ENOUGH: Final = 16
"""Weights are good for further draws as long as what is light can weigh at most so many times what is heavy."""
_DRAWS: Final = 64
"""... many: each leaves out all that is lighter."""


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
    """Draws from all tokens but a few."""
    kept, row[refused] = row[refused], -np.inf
    token = _free(row, sampling, rng)
    row[refused] = kept
    return token


def _most_probable(row: LogitRow, constraint: Constraint) -> int:
    """The allowed token with the largest logit."""
    free = greedy(row)
    if free == NoToken.BROKEN or _allowed(constraint, free):
        return free
    first = next(_descending(row))[: _FIRST[0]].astype(np.int32)
    if (allowed := constraint.allows(first)).any():
        return int(first[allowed.argmax()])
    ids = _reach(row, constraint)
    for block in _descending(row[ids]):
        allowed = constraint.allows(ids[block])
        if allowed.any():
            return int(ids[block[allowed.argmax()]])
    return NoToken.DEAD_END


def _sampled(row: LogitRow, constraint: Constraint, sampling: Sampling, rng: random.Random) -> int:
    """A draw from softmax(row / temperature) over the allowed tokens, cut to their nucleus."""
    top = row.max()
    if not math.isfinite(top):
        return NoToken.BROKEN
    weights = Weights(row, top, sampling.temperature)
    token = weights.draw(rng.random)
    allowed = _allowed(constraint, token)
    if allowed and (sampling.top_p >= 1.0 or weights.leads(token, sampling.top_p)):
        return token
    search = Search(row, constraint, sampling, rng)
    return search.go_on(weights, (token,) if allowed else ())


def _masked(
    row: LogitRow,
    ids: TokenIds,
    sampling: Sampling,
    rng: random.Random,
    drawn: abc.Sequence[int] = (),
) -> int:
    """A draw from the nucleus of the allowed `ids`: the first of the `drawn` that is in it, else a new one."""
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
    """A draw that goes on where its first token was not taken: what is refused is left out.

    Tokens have places in a row of what is left, which becomes shorter where `narrow` helps.
    """

    def __init__(self, row: LogitRow, constraint: Constraint, sampling: Sampling, rng: random.Random) -> None:
        self._row = self._whole = row
        self._ids: TokenIds | None = None
        """The tokens of the places; None where they are the same."""
        self._allowed: set[int] = set()
        self._refused: list[Places] = []
        """Places, as far as they were asked about."""
        self._constraint = constraint
        self._sampling = sampling
        self._rng = rng

    def go_on(self, weights: Weights, first: abc.Sequence[int]) -> int:
        """A token, or `NoToken.DEAD_END`. `first` was drawn from the `weights` of the whole row and is allowed, or is empty."""
        left: Weights | None = weights
        found = self._drawn(weights, first) if first else None
        for number, size in enumerate(_FIRST):
            if found is not None:
                return found
            if number == 1 and (ids := self._constraint.narrow()) is not None:
                if ids.size <= size:
                    break
                left = self._narrowed(ids)
            if left is None or (left := self._without_refused(left, size)) is None:
                return NoToken.DEAD_END
            found = self._drawn(left)
        return self._masked() if found is None else found

    def _drawn(self, weights: Weights, first: abc.Sequence[int] = ()) -> int | None:
        """A token of the nucleus; None where too many are refused. The `first` places are drawn before any other."""
        nucleus, misses = Nucleus(weights, self._allows, self._sampling.top_p), 0
        draws = itertools.chain(first, iter(lambda: weights.draw(self._rng.random), None))
        for place in itertools.islice(draws, _DRAWS):
            if place in self._allowed or not self._left_out(weights, np.array([place])):
                if (inside := nucleus.holds(place)) is None:
                    return self._masked([self._token(place)])
                if inside:
                    return self._token(place)
                weights.keep_heavier(place)
            elif (misses := misses + 1) == _MISSES or not weights.heavy:
                break
        return None

    def _without_refused(self, weights: Weights, size: int) -> Weights | None:
        """The weights of what is left when the heaviest were asked about; None if nothing is."""
        left = self._weights() if weights.cut else weights
        if left is not None:
            self._left_out(left, left.places[_largest(left.each, size)])
        return left if left is None or left.heavy * _ENOUGH > left.light else self._weights()

    def _narrowed(self, ids: TokenIds) -> Weights | None:
        """The weights of the tokens `ids` alone, in places of their own; None if there are none."""
        self._row, self._ids = self._row[ids], ids
        self._allowed.clear()
        self._refused.clear()
        return self._weights()

    def _weights(self) -> Weights | None:
        """The weights of what is left; None if nothing is."""
        left = self._row.copy()
        for places in self._refused:
            left[places] = -np.inf
        top = left.max(initial=-np.inf)
        return Weights(left, top, self._sampling.temperature) if top > -np.inf else None

    def _left_out(self, weights: Weights, places: Places) -> bool:
        """Leaves out those of the places that are refused; whether there are any."""
        mask = self._allows(places)
        self._allowed.update(places[mask].tolist())
        refused = places[~mask]
        if refused.size:
            self._refused.append(refused)
            weights.leave_out(refused)
        return bool(refused.size)

    def _token(self, place: int) -> int:
        return place if self._ids is None else int(self._ids[place])

    def _allows(self, places: Places) -> Mask:
        return self._constraint.allows(places.astype(np.int32) if self._ids is None else self._ids[places])

    def _masked(self, drawn: abc.Sequence[int] = ()) -> int:
        """A draw for which everything that is left is asked about: the first of `drawn` that is in the nucleus, else a new one."""
        ids = _all_allowed(self._whole, self._constraint, self._ids)
        return _masked(self._whole, ids, self._sampling, self._rng, drawn)


class Nucleus:
    """What is known of the fewest allowed tokens that weigh `top_p` of all allowed ones.

    Goes down the weights in blocks, and no further than a question needs. Invariant: of the places asked about,
    `allowed` weighs what may come, `unknown` is the weight of what was not asked about.

    Args:
        weights: of what is left of a row; those that are left out until a place is asked about are not allowed.
        allows: for each of some places, whether it is allowed.
        top_p: above 0; from 1 on, every allowed place is in the nucleus.
    """

    def __init__(self, weights: Weights, allows: Callable[[Places], Mask], top_p: float) -> None:
        self._weights = weights
        self._allows = allows
        self._top_p = top_p
        self._steps = self._learn()
        self._asked: Places = np.empty(0, np.intp)
        """The allowed places among those asked about, heaviest first."""
        self._allowed = np.zeros(1)
        """What they weigh, summed up: before the first, before the second, ..."""
        self._unknown = math.inf

    def holds(self, place: int) -> bool | None:
        """Whether an allowed place is in it; None if only asking about most of the vocabulary could tell."""
        if self._top_p >= 1.0 or self._weights.leads(place, self._top_p):
            return True
        while (answer := self._known(place)) is None:
            if not next(self._steps, False):
                return None
        return answer

    def _known(self, place: int) -> bool | None:
        """The answer, as far as it follows from what was asked."""
        least = float(self._allowed[-1])
        most = least + self._unknown
        at = np.flatnonzero(self._asked == place)
        if at.size and self._allowed[at[0]] < self._top_p * least:
            return True
        heavier = float(self._allowed[at[0]] if at.size else least)
        return False if heavier >= self._top_p * most else None

    def _learn(self) -> Iterator[bool]:
        """Asks about more, and knows what is unknown, with each step; only few are weighed before the first."""
        places, each = self._weights.places, self._weights.each
        self._unknown = self._weights.heavy + self._weights.light
        first = _largest(each, _FIRST[0])
        self._ask(places[first], each[first])
        yield True
        every = self._weights.every()
        every[places[first]] = 0.0
        self._unknown = float(every.sum(dtype=np.float64))
        yield True
        share = (self._allowed[-1] + self._unknown) * (1.0 - self._top_p) / every.size
        places = np.flatnonzero(every >= np.float32(share))  # no other can be in it if all are allowed
        each = every[places]
        for size in _FIRST[1:]:
            block = _largest(each, size)
            self._ask(places[block], each[block])
            each[block] = 0.0
            yield True

    def _ask(self, places: Places, weights: LogitRow) -> None:
        mask = self._allows(places)
        self._unknown = max(self._unknown - float(weights.sum(dtype=np.float64)), 0.0)
        self._asked = np.concatenate((self._asked, places[mask]))
        sums = self._allowed[-1] + weights[mask].cumsum(dtype=np.float64)
        self._allowed = np.concatenate((self._allowed, sums))


def _allowed(constraint: Constraint, token: int) -> bool:
    return bool(constraint.allows(np.array([token], np.int32))[0])


def _reach(row: LogitRow, constraint: Constraint) -> TokenIds:
    """Tokens among which all allowed ones are."""
    narrowed = constraint.narrow()
    return np.arange(row.size, dtype=np.int32) if narrowed is None else narrowed


def _all_allowed(row: LogitRow, constraint: Constraint, narrowed: TokenIds | None = None) -> TokenIds:
    """All allowed tokens; `narrowed` are tokens among which they are, if that is known."""
    ids = _reach(row, constraint) if narrowed is None else narrowed
    return ids[constraint.allows(ids)]


def _largest(keys: LogitRow, count: int) -> Places:
    """The places of the largest keys above 0, largest first, at most `count`."""
    some = np.argpartition(keys, -count)[-count:] if keys.size > 2 * count else np.flatnonzero(keys)
    order = some[np.argsort(-keys[some], kind="stable")][:count]
    return order[: np.count_nonzero(keys[order])]


def _descending(keys: LogitRow) -> Iterator[Places]:
    """The places of all keys above -inf, largest first, in blocks that grow; only what is taken is sorted."""
    if (top := keys.max(initial=-np.inf)) > -np.inf:
        near = keys >= top - _NEAR
        yield from _sorted(keys, near)
        yield from _sorted(keys, ~near & (keys > -np.inf))


def _sorted(keys: LogitRow, taken: Mask) -> Iterator[Places]:
    """The places of the `taken` keys, largest first, in blocks that grow."""
    rest = np.flatnonzero(taken)
    for size in _FIRST:
        if rest.size > 2 * size:
            order = np.argpartition(keys[rest], rest.size - size)
            top, rest = rest[order[-size:]], rest[order[:-size]]
            yield top[np.argsort(-keys[top], kind="stable")]
    rest = rest[np.argsort(-keys[rest], kind="stable")]
    for start in range(0, rest.size, _BLOCK):
        yield rest[start : start + _BLOCK]
