"""What must hold for a value of one JSON type, when there is nothing left to choose.

A *literal* is a subschema that must hold (an even number) or must fail (odd); a set of literals is the
obligation of a value, and is what a grammar rule is made for. Within one JSON type an obligation becomes a
list of shapes, any of which will do. A shape says what one kind of conjunction can say: for containers that
every member of some class meets an obligation, that some member does (a *clause*: one of several such
witnesses is enough), and how many members there are. Shapes of a type are closed under "and" (`meet`), and
their negation is again a list of shapes, which is why `not`, `oneOf` and `if` are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final, Literal

import msgspec

from b3node.grammar.languages.algebra import ALL, Algebra, Lang

Type = Literal["null", "boolean", "number", "string", "array", "object"]
TYPES: Final[tuple[Type, ...]] = ("object", "array", "string", "number", "boolean", "null")

Lits = frozenset[int]
TRUE: Final[Lits] = frozenset()
FALSE: Final[Lits] = frozenset({1})
"""Subschema 0 is `true`; that it must fail is the obligation that nothing meets."""


def lit(node: int, *, holds: bool = True) -> Lits:
    """The obligation that a subschema holds, or fails."""
    number = 2 * node + (not holds)
    return TRUE if number == 0 else frozenset({number})


def all_of(*sets: Lits) -> Lits:
    """All obligations together."""
    out = TRUE.union(*sets)
    return out if 1 not in out and out.isdisjoint([number ^ 1 for number in out]) else FALSE


# ------------------------------------------------------------------------------------------ scalars
class Words(msgspec.Struct, frozen=True):
    """A set of literal texts: the values of null and boolean."""

    texts: frozenset[str]


class Text(msgspec.Struct, frozen=True):
    """Strings of a language."""

    lang: Lang = ALL


class Number(msgspec.Struct, frozen=True):
    """Numbers: bounds, divisors that must and must not divide, integers only (or never), listed values."""

    low: Decimal | None = None
    low_open: bool = False
    high: Decimal | None = None
    high_open: bool = False
    divisors: frozenset[Decimal] = frozenset()
    nondivisors: frozenset[Decimal] = frozenset()
    integer: bool | None = None
    values: frozenset[Decimal] | None = None
    without: frozenset[Decimal] = frozenset()

    def admits(self, value: Decimal) -> bool:
        """Whether the number is one of these."""
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
    """Whether the value has no fraction."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return False
    return exponent >= 0 or not any(digits[exponent:]) or not any(digits)


def divides(divisor: Decimal, value: Decimal) -> bool:
    """Whether `value` is an integral multiple of `divisor`, exactly."""
    scale = min(_exponent(divisor), _exponent(value))
    return _scaled(value, scale) % _scaled(divisor, scale) == 0


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _scaled(value: Decimal, scale: int) -> int:
    _, digits, _ = value.as_tuple()
    return int("".join(map(str, digits))) * int(10 ** (_exponent(value) - scale))


def meet_numbers(a: Number, b: Number) -> Number | None:
    """Both, or None when no number can be both (a quick look, not a proof)."""
    low, low_open = _tighter(a.low, b.low, a_open=a.low_open, b_open=b.low_open, sign=1)
    high, high_open = _tighter(a.high, b.high, a_open=a.high_open, b_open=b.high_open, sign=-1)
    if a.integer is not None and b.integer is not None and a.integer != b.integer:
        return None
    integer = a.integer if a.integer is not None else b.integer
    if a.values is None or b.values is None:
        values = b.values if a.values is None else a.values
    else:
        values = a.values & b.values
    out = Number(
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
    return Number(values=kept, integer=integer) if kept else None


def _tighter(
    a: Decimal | None, b: Decimal | None, *, a_open: bool, b_open: bool, sign: int
) -> tuple[Decimal | None, bool]:
    if a is None or b is None:
        return (b, b_open) if a is None else (a, a_open)
    if a == b:
        return a, a_open or b_open
    return (a, a_open) if (a > b) == (sign > 0) else (b, b_open)


# --------------------------------------------------------------------------------------- containers
class Spot(msgspec.Struct, frozen=True):
    """A witness in an array: some item at a place from `low` to `high` (-1: any after) meets `lits`."""

    low: int
    high: int
    lits: Lits


class Count(msgspec.Struct, frozen=True):
    """From `low` to `high` (-1: no bound) items meet `lits`."""

    lits: Lits
    low: int
    high: int


class Array(msgspec.Struct, frozen=True):
    """Arrays: obligations by place, then of all later items; clauses; counts; length; uniqueness.

    `values` are the canonical texts of the arrays that are allowed, when they are listed. `seen` is how many
    leading items some subschema has evaluated (-1: all), and which items besides, for unevaluatedItems.
    """

    prefix: tuple[Lits, ...] = ()
    rest: Lits = TRUE
    clauses: frozenset[frozenset[Spot]] = frozenset()
    counts: frozenset[Count] = frozenset()
    low: int = 0
    high: int = -1
    unique: str | None = None
    values: frozenset[str] | None = None
    seen: int = 0
    seen_if: frozenset[Lits] = frozenset()

    def at(self, place: int) -> Lits:
        """The obligation of the item at a place."""
        return self.prefix[place] if place < len(self.prefix) else self.rest

    def only_clauses(self) -> bool:
        """Whether the shape says nothing that a clause could not say."""
        return self == Array(clauses=self.clauses)


class Keys(msgspec.Struct, frozen=True):
    """A class of member names: those of `names` and `langs`, or with `others` all but those."""

    names: frozenset[str] = frozenset()
    langs: frozenset[Lang] = frozenset()
    others: bool = False

    def covers(self, algebra: Algebra, name: str) -> bool:
        """Whether a name is in the class."""
        return (name in self.names or any(algebra.matches(lang, name) for lang in self.langs)) != self.others


class Witness(msgspec.Struct, frozen=True):
    """A witness in an object: a member of that name or class meets `lits`, or with None there is none."""

    key: str | Keys
    lits: Lits | None = TRUE


Clause = frozenset[Witness]


class Object(msgspec.Struct, frozen=True):
    """Objects: obligations by name, in the order of writing, and by class; clauses; how many members.

    `values` and `seen` are as in `Array`; `seen` lists the evaluated classes of names. `order` lists names that
    are only required, in the order of writing.
    """

    named: tuple[tuple[str, Lits], ...] = ()
    wide: frozenset[tuple[Keys, Lits]] = frozenset()
    clauses: frozenset[Clause] = frozenset()
    low: int = 0
    high: int = -1
    values: frozenset[str] | None = None
    seen: frozenset[Keys] = frozenset()
    order: tuple[str, ...] = ()


Shape = Words | Text | Number | Array | Object
Dnf = tuple[Shape, ...]

TOP: Final[dict[Type, Shape]] = {
    "null": Words(frozenset({"null"})),
    "boolean": Words(frozenset({"true", "false"})),
    "number": Number(),
    "string": Text(),
    "array": Array(),
    "object": Object(),
}
"""By type, the shape that every value of the type has."""


def meet(algebra: Algebra, a: Shape, b: Shape) -> Shape | None:
    """The shape of values that have both shapes (of one type), or None when there is none at a quick look."""
    if isinstance(a, Words) and isinstance(b, Words):
        texts = a.texts & b.texts
        return Words(texts) if texts else None
    if isinstance(a, Text) and isinstance(b, Text):
        lang = algebra.both([a.lang, b.lang])
        return Text(lang) if lang else None
    if isinstance(a, Number) and isinstance(b, Number):
        return meet_numbers(a, b)
    if isinstance(a, Array) and isinstance(b, Array):
        return meet_arrays(a, b)
    if isinstance(a, Object) and isinstance(b, Object):
        return meet_objects(algebra, a, b)
    return None


def _values(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b


def _least(a: int, b: int) -> int:
    """The smaller bound, where -1 is none."""
    return max(a, b) if min(a, b) < 0 else min(a, b)


def meet_arrays(a: Array, b: Array) -> Array | None:
    """Both, or None when the lengths or the listed values exclude each other."""
    length = max(len(a.prefix), len(b.prefix))
    out = Array(
        tuple(all_of(a.at(i), b.at(i)) for i in range(length)),
        all_of(a.rest, b.rest),
        a.clauses | b.clauses,
        a.counts | b.counts,
        max(a.low, b.low),
        _least(a.high, b.high),
        a.unique or b.unique,
        _values(a.values, b.values),
        -1 if min(a.seen, b.seen) < 0 else max(a.seen, b.seen),
        a.seen_if | b.seen_if,
    )
    return tidy_array(out)


def tidy_array(shape: Array) -> Array | None:
    """The same arrays, said shortly; None when the bounds exclude each other."""
    high = shape.high
    for place, lits in enumerate((*shape.prefix, shape.rest)):
        if lits == FALSE:
            high = _least(high, place)
            break
    if 0 <= high < shape.low or shape.values == frozenset():
        return None
    prefix = shape.prefix if high < 0 else shape.prefix[:high]
    while prefix and prefix[-1] == shape.rest:
        prefix = prefix[:-1]
    clauses = frozenset(c for c in shape.clauses if not any(s.lits == TRUE and s.low < shape.low for s in c))
    if frozenset() in clauses:
        return None
    unique = None if 0 <= high <= 1 else shape.unique
    return msgspec.structs.replace(shape, prefix=prefix, clauses=clauses, high=high, unique=unique)


def meet_objects(algebra: Algebra, a: Object, b: Object) -> Object | None:
    """Both, or None when clauses, counts or listed values exclude each other."""
    named = dict(a.named)
    for name, lits in b.named:
        named[name] = all_of(named[name], lits) if name in named else lits
    out = Object(
        tuple(named.items()),
        a.wide | b.wide,
        a.clauses | b.clauses,
        max(a.low, b.low),
        _least(a.high, b.high),
        _values(a.values, b.values),
        a.seen | b.seen,
        a.order if not b.order else tuple(dict.fromkeys(a.order + b.order)),
    )
    return tidy_object(algebra, out)


def tidy_object(algebra: Algebra, shape: Object) -> Object | None:
    """The same objects with every clause of one witness resolved; None when nothing is left.

    A clause "member p meets L" alone makes p required and L its obligation; "no member p" alone forbids p;
    what is required or forbidden settles other clauses.
    """
    named, clauses = dict(shape.named), set(shape.clauses)
    closed = [keys for keys, lits in shape.wide if lits == FALSE]
    while True:
        required = names_required(clauses)
        fresh: set[Clause] = set()
        for clause in clauses:
            settled = _settle(algebra, clause, required, named, closed)
            if settled is None:
                continue
            if not settled:
                return None
            fresh.add(settled)
        if fresh == clauses:
            break
        clauses = fresh
    low = shape.low if shape.low > len(required) else 0
    if 0 <= shape.high < max(shape.low, len(required)) or shape.values == frozenset():
        return None
    if any(_lits_at(algebra, named, shape.wide, name) == FALSE for name in required):
        return None
    members, size = list(named.items()), len(shape.named)
    members[size:] = sorted(members[size:])  # of these some clause told, and clauses have no order
    return msgspec.structs.replace(shape, named=tuple(members), clauses=_minimal(clauses), low=low)


def names_required(clauses: Iterable[Clause]) -> set[str]:
    """The names that a member must have."""
    single = (witness for clause in clauses if len(clause) == 1 for witness in clause)
    return {w.key for w in single if w.lits == TRUE and isinstance(w.key, str)}


def _lits_at(algebra: Algebra, named: dict[str, Lits], wide: frozenset[tuple[Keys, Lits]], name: str) -> Lits:
    return all_of(named.get(name, TRUE), *(lits for keys, lits in wide if keys.covers(algebra, name)))


def _settle(
    algebra: Algebra, clause: Clause, required: set[str], named: dict[str, Lits], closed: list[Keys]
) -> Clause | None:
    """The clause with what is impossible left out, or None when it holds anyway; may add to `named`."""
    if len(clause) == 1:
        (only,) = clause
        if isinstance(only.key, str) and only.lits != TRUE:
            told = FALSE if only.lits is None else only.lits
            named[only.key] = all_of(named.get(only.key, TRUE), told)
            return None if only.lits is None else frozenset({Witness(only.key)})
        return clause
    out = set()
    absent = {w.key for w in clause if w.lits is None}
    for witness in clause:
        key, lits = witness.key, witness.lits
        if not isinstance(key, str):
            out.add(witness)
            continue
        forbidden = named.get(key) == FALSE or any(keys.covers(algebra, key) for keys in closed)
        if lits is None and forbidden:
            return None
        if lits == TRUE and (key in required or key in absent):
            return None
        if not (forbidden or (lits is None and key in required) or lits == FALSE):
            out.add(witness)
    return frozenset(out)


def _minimal(clauses: set[Clause]) -> frozenset[Clause]:
    """Without the clauses that another one implies."""
    if len(clauses) > 40:
        return frozenset(clauses)
    return frozenset(c for c in clauses if not any(other < c for other in clauses))
