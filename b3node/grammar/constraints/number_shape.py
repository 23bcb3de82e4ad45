"""Shape of numbers: bounds, divisors and listed values, and the intersection of two such shapes."""

from __future__ import annotations

from decimal import Decimal

import msgspec


class NumberShape(msgspec.Struct, frozen=True):
    """Numbers between two bounds, with divisors and listed values."""

    low: Decimal | None = None
    """The lower bound, None for none."""
    low_open: bool = False
    """Whether the lower bound itself is excluded."""
    high: Decimal | None = None
    """The upper bound, None for none."""
    high_open: bool = False
    """Whether the upper bound itself is excluded."""
    divisors: frozenset[Decimal] = frozenset()
    """Numbers that must divide the value."""
    nondivisors: frozenset[Decimal] = frozenset()
    """Numbers that must not divide it."""
    integer: bool | None = None
    """True for integers only, False for numbers with a fraction only, None for both."""
    values: frozenset[Decimal] | None = None
    """The only values allowed, where they are listed."""
    without: frozenset[Decimal] = frozenset()
    """Values that are excluded."""

    def admits(self, value: Decimal) -> bool:
        """Returns True if the number has this shape."""
        if self.low is not None and (value < self.low or (self.low_open and value == self.low)):
            return False
        if self.high is not None and (value > self.high or (self.high_open and value == self.high)):
            return False
        if self.integer is not None and is_integer(value) != self.integer:
            return False
        if any(not divides(d, value) for d in self.divisors) or any(
            divides(d, value) for d in self.nondivisors
        ):
            return False
        return value not in self.without and (self.values is None or value in self.values)


def is_integer(value: Decimal) -> bool:
    """Returns True if the value has no fraction."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return False
    return exponent >= 0 or not any(digits[exponent:]) or not any(digits)


def divides(divisor: Decimal, value: Decimal) -> bool:
    """Returns True if `value` is an integral multiple of `divisor`, exactly."""
    scale = min(_exponent(divisor), _exponent(value))
    return _scaled(value, scale) % _scaled(divisor, scale) == 0


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _scaled(value: Decimal, scale: int) -> int:
    _, digits, _ = value.as_tuple()
    return int("".join(map(str, digits))) * int(10 ** (_exponent(value) - scale))


def meet_numbers(a: NumberShape, b: NumberShape) -> NumberShape | None:
    """Returns the shape of numbers that have both shapes, or None if the bounds exclude each other.

    That a shape is returned does not prove that it has a value.
    """
    low, low_open = _tighter_bound(a.low, b.low, a_open=a.low_open, b_open=b.low_open, sign=1)
    high, high_open = _tighter_bound(a.high, b.high, a_open=a.high_open, b_open=b.high_open, sign=-1)
    if a.integer is not None and b.integer is not None and a.integer != b.integer:
        return None
    integer = a.integer if a.integer is not None else b.integer
    if a.values is None or b.values is None:
        values = b.values if a.values is None else a.values
    else:
        values = a.values & b.values
    out = NumberShape(
        low,
        low_open,
        high,
        high_open,
        a.divisors | b.divisors,
        a.nondivisors | b.nondivisors,
        integer,
        values,
        a.without | b.without,
    )
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return None
    if values is None:
        return out
    kept = frozenset(value for value in values if out.admits(value))
    return NumberShape(values=kept, integer=integer) if kept else None


def _tighter_bound(
    a: Decimal | None, b: Decimal | None, *, a_open: bool, b_open: bool, sign: int
) -> tuple[Decimal | None, bool]:
    """Returns the tighter of two bounds (`sign` 1: lower, -1: upper), and whether it is open."""
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    return (a, a_open) if (a > b) == (sign > 0) else (b, b_open)
