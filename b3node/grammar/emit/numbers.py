"""Numbers as languages of decimal texts.

A number is written without an exponent: an optional minus, digits without a leading zero, an optional
fraction. Integers of the `integer` type have no fraction. Other numbers may end in zeros (`20.0`), because
models write prices and temperatures that way. Zero has no minus. Every constraint is a set of *values*, so
that a text is in the language exactly if its value is in the set; complement and intersection stay exact.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from b3node.grammar.constraints.number_shape import NumberShape
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import ALL, EMPTY, VOID, Algebra, Lang, Transitions
from b3node.grammar.languages.charset import DIGIT

MAX_DIVISOR: Final = 4_096
"""The largest remainder automaton: `multipleOf` without its powers of ten."""
DOUBLE_DIGITS: Final = 15
"""Decimal digits that a double of 53 bits always keeps."""
MAX_BOUND_DIGITS: Final = 320
"""Digits that a bound may have."""


class NumberLanguages:
    """Number languages of one algebra."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = a = algebra
        self._digit = a.chars(DIGIT)
        self._nonzero = a.chars(((0x31, 0x39),))
        self._digits = a.repeat(self._digit, 0)
        self._zeros = a.repeat(a.text("0"), 0)
        self._whole = a.either([a.text("0"), a.cat(self._nonzero, self._digits)])
        point = a.text(".")
        self._fraction = a.cat(point, a.repeat(self._digit, 1))
        self._some_fraction = a.cat(point, self._zeros, self._nonzero, self._digits)
        self._tail = a.either([EMPTY, self._fraction])
        minus = a.text("-")
        self._minus = minus
        positive = a.both([a.cat(self._whole, self._tail), a.negate(self._zero())])
        self._positive = positive
        self._any = a.either([a.cat(self._whole, self._tail), a.cat(minus, positive)])
        self._integer = a.either([a.text("0"), a.cat(a.either([EMPTY, minus]), self._nonzero, self._digits)])
        self._fractional = a.cat(a.either([EMPTY, minus]), self._whole, self._some_fraction)

    def _zero(self) -> Lang:
        """Returns the texts of zero."""
        a = self._algebra
        return a.cat(a.text("0"), a.either([EMPTY, a.cat(a.text("."), a.text("0"), self._zeros)]))

    def language(self, shape: NumberShape) -> Lang:
        """Returns the texts of the numbers of a shape.

        Raises:
            Inexact: a divisor or a bound is too large for an automaton.
        """
        a = self._algebra
        if shape.values is not None:
            return a.either(a.text(decimal_text(value)) for value in shape.values if shape.admits(value))
        parts = [self._any if shape.integer is None else self._integer if shape.integer else self._fractional]
        if not shape.integer:
            shape = _close_bounds(shape)
            parts += [self._exact(_fraction_digits(shape))] if _needs_exact_digits(shape) else []
        parts.append(self._range(shape))
        parts += [self._multiple(divisor) for divisor in shape.divisors]
        parts += [a.negate(self._multiple(divisor)) for divisor in shape.nondivisors]
        parts += [a.negate(self._value(value)) for value in shape.without]
        return a.both(parts)

    def _exact(self, places: int) -> Lang:
        """Returns the texts that a double of 53 bits distinguishes: integers, or 15 digits in all."""
        a = self._algebra
        sign = a.either([EMPTY, self._minus])
        digits = a.repeat(self._digit, 1, max(DOUBLE_DIGITS - places, 1))
        fraction = a.cat(a.text("."), a.repeat(self._digit, 0, places), self._zeros)
        return a.either([a.cat(sign, self._whole), a.cat(sign, digits, fraction)])

    def _value(self, value: Decimal) -> Lang:
        """Returns the texts of one value."""
        a, text = self._algebra, decimal_text(value)
        if "." in text:
            return a.cat(a.text(text), self._zeros)
        return a.cat(a.text(text), a.either([EMPTY, a.cat(a.text(".0"), self._zeros)]))

    # ------------------------------------------------------------------------------------ bounds
    def _range(self, shape: NumberShape) -> Lang:
        a = self._algebra
        if shape.low is None and shape.high is None:
            return ALL
        above = ALL if shape.low is None else self._above(shape.low, strict=shape.low_open)
        below = ALL if shape.high is None else self._below(shape.high, strict=shape.high_open)
        return a.both([above, below])

    def _above(self, bound: Decimal, *, strict: bool) -> Lang:
        """Returns the texts of the values above a bound."""
        a = self._algebra
        if bound > 0 or (bound == 0 and strict):
            return self._from(bound, strict=strict)
        plain = a.cat(self._whole, self._tail)
        if bound == 0:
            return plain
        negative = a.both([self._positive, a.negate(self._from(-bound, strict=not strict))])
        return a.either([plain, a.cat(self._minus, negative)])

    def _below(self, bound: Decimal, *, strict: bool) -> Lang:
        """Returns the texts of the values below a bound."""
        a = self._algebra
        negative = a.cat(self._minus, self._positive)
        if bound < 0:
            return a.cat(self._minus, self._from(-bound, strict=strict))
        plain = a.cat(self._whole, self._tail)
        return a.either([negative, a.both([plain, a.negate(self._from(bound, strict=not strict))])])

    def _from(self, bound: Decimal, *, strict: bool) -> Lang:
        """Returns the unsigned texts of the values from a bound of at least 0 on."""
        a = self._algebra
        whole, _, fraction = decimal_text(bound).partition(".")
        if len(whole) + len(fraction) > MAX_BOUND_DIGITS:
            raise Inexact("", "a bound has too many digits")
        longer = a.cat(self._nonzero, a.repeat(self._digit, len(whole)), self._tail)
        out = self._fraction_from(fraction, strict=strict)
        for i in range(len(whole) - 1, -1, -1):
            larger = self._larger(whole[i])
            rest = a.cat(a.repeat(self._digit, len(whole) - 1 - i, len(whole) - 1 - i), self._tail)
            out = a.either([a.cat(a.text(whole[i]), out), a.cat(larger, rest)])
        return a.either([out, longer])

    def _fraction_from(self, fraction: str, *, strict: bool) -> Lang:
        """Returns the fractions from a fraction on."""
        a = self._algebra
        if not fraction:
            return self._some_fraction if strict else self._tail
        out = a.cat(self._zeros, self._nonzero, self._digits) if strict else self._digits
        for digit in reversed(fraction):
            out = a.either([a.cat(a.text(digit), out), a.cat(self._larger(digit), self._digits)])
        return a.cat(a.text("."), out)

    def _larger(self, digit: str) -> Lang:
        """Returns the digits above a digit."""
        point = ord(digit)
        return self._algebra.chars(((point + 1, 0x39),)) if digit != "9" else VOID

    # ----------------------------------------------------------------------------------- multiples
    def _multiple(self, divisor: Decimal) -> Lang:
        """Returns the texts of the multiples of a divisor.

        Remainders are tracked over the digits up to the divisor's last place; zeros may follow.
        """
        a = self._algebra
        _, digits, exponent = divisor.as_tuple()
        number, places = int("".join(map(str, digits))), -int(exponent)
        while number % 10 == 0:
            number, places = number // 10, places - 1
        if number > MAX_DIVISOR:
            raise Inexact("", "the divisor of multipleOf is too large for an automaton")
        sign = a.either([EMPTY, self._minus])
        if places < 0:
            zeros = a.text("0" * -places)
            whole = a.either([a.text("0"), a.cat(self._remainders(number, 0), zeros)])
            return a.cat(sign, whole, a.either([EMPTY, a.cat(a.text(".0"), self._zeros)]))
        return a.cat(sign, self._remainders(number, places))

    def _remainders(self, number: int, places: int) -> Lang:
        """Returns the digits, up to `places` of them after the point, whose number `number` divides.

        Zeros may follow.
        """
        # States: 0 start; 1 + r after whole digits; then per place; the last row takes zeros only.
        width = number + 1
        rows: list[Transitions] = [tuple((0x30 + d, 0x30 + d, 1 + d % number) for d in range(10))]
        accepting = [False]
        for r in range(number):
            dot = ((0x2E, 0x2E, width + r),)
            rows.append(dot + tuple((0x30 + d, 0x30 + d, 1 + (10 * r + d) % number) for d in range(10)))
            accepting.append(r * 10**places % number == 0)
        for place in range(places + 1):
            start = width + place * number
            for r in range(number):
                rows.append(self._place(r, number, start, last=place == places))
                accepting.append(place > 0 and r * 10 ** (places - place) % number == 0)
        rows, accepting = self._with_end(rows, accepting, number, width + places * number, places)
        return self._algebra.from_dfa(automaton.minimized(accepting, rows))

    def _place(self, remainder: int, number: int, start: int, *, last: bool) -> Transitions:
        if last:
            return ()
        return tuple((0x30 + d, 0x30 + d, start + number + (10 * remainder + d) % number) for d in range(10))

    def _with_end(
        self, rows: list[Transitions], accepting: list[bool], number: int, last: int, places: int
    ) -> tuple[list[Transitions], list[bool]]:
        """Returns the automaton with any number of zeros after the last place if the remainder is 0."""
        end = len(rows)
        rows[last] = ((0x30, 0x30, end),)
        accepting[last] = places > 0
        for r in range(1, number):
            accepting[last + r] = False
        return [*rows, ((0x30, 0x30, end),)], [*accepting, True]


def _fraction_digits(shape: NumberShape) -> int:
    """Returns the number of digits after the point that matter for a shape."""
    values = (*shape.divisors, *shape.nondivisors, *shape.without)
    return max([0 if shape.divisors else 7, *(-int(value.as_tuple().exponent) for value in values)])


def _needs_exact_digits(shape: NumberShape) -> bool:
    """Returns True if a reader that rounds to doubles could confuse a value with an excluded one."""
    return bool(shape.divisors or shape.nondivisors or shape.without or shape.integer is False)


def _close_bounds(shape: NumberShape) -> NumberShape:
    """Returns the shape with open bounds replaced by closed ones that a double distinguishes from them.

    At zero a double distinguishes every value.
    """
    low, high = shape.low, shape.high
    if low is not None and shape.low_open and low:
        low = low + Decimal(1).scaleb(low.adjusted() - DOUBLE_DIGITS + 1)
    if high is not None and shape.high_open and high:
        high = high - Decimal(1).scaleb(high.adjusted() - DOUBLE_DIGITS + 1)
    return msgspec.structs.replace(
        shape,
        low=low,
        low_open=shape.low_open and low == shape.low,
        high=high,
        high_open=shape.high_open and high == shape.high,
    )


def decimal_text(value: Decimal) -> str:
    """Returns a number without an exponent and without zeros at the end of a fraction."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text
