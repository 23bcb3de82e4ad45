"""How what is compared is put in pairs, and what pairs come to. Pure: nothing here asks or measures.

A machine's pace drifts by a fifth within minutes. So two parties are asked in turn, a small piece each, and
a ratio is taken of the two pieces of one round, which lie seconds apart; the order changes from round to
round (A B, B A, A B, ...), so that what a neighbour in time costs falls on both alike. The median of such
ratios is what counts, with the quartiles beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median, quantiles
from typing import TypeVar

import msgspec

Thing = TypeVar("Thing")
Measures = dict[str, float]
"""Values by the name of the measure."""
Round = dict[str, Measures]
"""What one piece of work each measured, by the name of who was asked."""


class Summary(msgspec.Struct, frozen=True):
    """Values in short: their median, their quartiles, and how many there are."""

    median: float
    lower: float
    upper: float
    count: int


def in_turn(things: Sequence[Thing], number: int) -> Sequence[Thing]:
    """The order of round `number`: as given in even ones, the other way round in odd ones.

    >>> [in_turn("AB", number) for number in range(4)]
    ['AB', 'BA', 'AB', 'BA']
    """
    return things[::-1] if number % 2 else things


def values(rounds: Iterable[Round], name: str, measure: str) -> list[float]:
    """What one party measured, round by round, where it did."""
    return [found[name][measure] for found in rounds if measure in found.get(name, {})]


def ratios(rounds: Iterable[Round], over: str, under: str, measure: str) -> list[float]:
    """Returns one party's value over the other's, for each round in which both have one (not 0)."""
    pairs = ((found.get(over, {}).get(measure), found.get(under, {}).get(measure)) for found in rounds)
    return [ours / theirs for ours, theirs in pairs if ours is not None and theirs]


def summary(found: Sequence[float]) -> Summary | None:
    """Median and quartiles (of the values as a whole population); None where there is no value."""
    if not found:
        return None
    lower, middle, upper = quantiles(found, n=4, method="inclusive") if len(found) > 1 else [found[0]] * 3
    return Summary(middle, lower, upper, len(found))


def middles(rounds: Sequence[Round], name: str) -> Measures:
    """The median of each of a party's measures over all rounds."""
    names = dict.fromkeys(measure for found in rounds for measure in found.get(name, {}))
    return {measure: median(values(rounds, name, measure)) for measure in names}
