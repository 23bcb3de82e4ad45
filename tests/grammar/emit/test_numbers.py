"""Numbers: a text is in the language exactly if its value is in the set."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings, strategies as st

from b3node.grammar import schema_to_gbnf
from b3node.grammar.constraints.number_shape import NumberShape, divides, meet_numbers
from b3node.grammar.emit.numbers import NumberLanguages, decimal_text
from b3node.grammar.languages.algebra import Algebra

decimals = st.builds(lambda n, e: Decimal(n).scaleb(-e), st.integers(-20_000, 20_000), st.integers(0, 3))
bounds = st.none() | decimals
divisors = st.sampled_from(["1", "2", "7", "0.5", "0.25", "0.01", "100", "0.3", "12"]).map(Decimal)
shapes = st.builds(
    NumberShape,
    low=bounds,
    low_open=st.booleans(),
    high=bounds,
    high_open=st.booleans(),
    divisors=st.frozensets(divisors, max_size=1),
    nondivisors=st.frozensets(divisors, max_size=1),
    integer=st.sampled_from([None, True, False]),
    without=st.frozensets(decimals, max_size=2),
)


@settings(deadline=None)
@given(shapes, st.lists(decimals, min_size=20, max_size=20))
def test_spellings_are_those_of_the_values(shape, values):
    """Bounds, divisors, excluded values, integers or not."""
    algebra = Algebra(200_000)
    lang = NumberLanguages(algebra).language(shape)
    edges = [d for d in (shape.low, shape.high, *shape.without) if d is not None]
    for value in [*values, *edges]:
        text = decimal_text(value)
        assert algebra.matches(lang, text) == shape.admits(value), text
        if shape.integer is not True:
            padded = text + "0" if "." in text else text + ".0"
            assert algebra.matches(lang, padded) == shape.admits(value), padded


@settings(deadline=None)
@given(shapes, shapes, decimals)
def test_meeting_is_having_both(a, b, value):
    """A number has the intersection of two shapes exactly if it has both."""
    met = meet_numbers(a, b)
    assert (met is not None and met.admits(value)) == (a.admits(value) and b.admits(value))


def test_malformed_spellings_are_in_no_language():
    """Leading zeros, signs, bare points, exponents, minus zero."""
    algebra = Algebra()
    lang = NumberLanguages(algebra).language(NumberShape(low=Decimal(-100)))
    for text in ("", "-", "01", "-01", "+1", "1.", ".5", "1e2", "-0", "-0.0", "1.2.3", "--1", "1 "):
        assert not algebra.matches(lang, text), text


def test_division_is_exact():
    """Divisibility is exact, as decimals are not floats."""
    assert divides(Decimal("0.01"), Decimal("1.15"))
    assert not divides(Decimal("0.01"), Decimal("1.155"))
    assert divides(Decimal("0.1"), Decimal(10) ** 300)


def test_values_that_round_to_an_open_bound_are_left_out():
    """4.99999999999999999 reads as 5.0, which is not below 5."""
    algebra = Algebra()
    lang = NumberLanguages(algebra).language(NumberShape(high=Decimal(5), high_open=True))
    assert algebra.matches(lang, "4.999999")
    assert not algebra.matches(lang, "4." + "9" * 20)


def test_an_integer_without_bounds_has_at_most_64_digits(engine):
    """64 digits hold the numbers that big-number readers exchange, and stop a model that runs away."""
    gbnf = schema_to_gbnf({"type": "integer"})
    assert engine.takes(gbnf, "-" + "9" * 64)
    assert not engine.takes(gbnf, "9" * 65)
