"""Upper bounds of counts and lengths, where None is no bound."""

from __future__ import annotations


def tighter_bound(a: int | None, b: int | None) -> int | None:
    """Returns the smaller of two bounds."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b)


def lowered(high: int | None, count: int = 1) -> int | None:
    """Returns the bound on the rest after `count`, which must not pass the bound."""
    return None if high is None else high - count


def exceeds(count: int, high: int | None) -> bool:
    """Returns whether a count is over a bound."""
    return high is not None and count > high
