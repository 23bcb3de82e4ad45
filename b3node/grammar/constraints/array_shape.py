"""Shape of arrays: constraints on items, witnesses, counts and length."""

from __future__ import annotations

import msgspec

from b3node.grammar.constraints.literals import FALSE, TRUE, Lits, all_of, common_values
from b3node.grammar.counts import exceeds, tighter_bound


class ItemWitness(msgspec.Struct, frozen=True):
    """Witness in an array: an item that meets a constraint."""

    low: int
    """The least index of the item."""
    high: int | None
    """The greatest index; None is no bound."""
    lits: Lits
    """The constraint on the item."""


class ContainsCount(msgspec.Struct, frozen=True):
    """Demand on the number of items of an array that meet a constraint."""

    lits: Lits
    """The constraint."""
    low: int
    """The least number of such items."""
    high: int | None
    """The greatest number; None is no bound."""


class ArrayShape(msgspec.Struct, frozen=True):
    """Arrays by the constraints on their items, their length and their uniqueness."""

    prefix: tuple[Lits, ...] = ()
    """The constraints on the first items, by index."""
    rest: Lits = TRUE
    """The constraint on all later items."""
    clauses: frozenset[frozenset[ItemWitness]] = frozenset()
    """Sets of witnesses; of each set at least one must exist."""
    counts: frozenset[ContainsCount] = frozenset()
    """How many items meet a constraint."""
    low: int = 0
    """The least number of items."""
    high: int | None = None
    """The greatest number of items; None is no bound."""
    unique: str | None = None
    """The pointer of the `uniqueItems` that asks for distinct items, or None."""
    values: frozenset[str] | None = None
    """Canonical texts of the only arrays allowed, where they are listed."""
    evaluated: int | None = 0
    """Number of leading items that some subschema has evaluated, for `unevaluatedItems`; None is all."""
    evaluated_if: frozenset[Lits] = frozenset()
    """Constraints that make an item evaluated if it meets one of them."""

    def item_lits(self, place: int) -> Lits:
        """Returns the constraint on the item at an index."""
        return self.prefix[place] if place < len(self.prefix) else self.rest

    def has_only_clauses(self) -> bool:
        """Returns True if clauses alone describe the shape."""
        return self == ArrayShape(clauses=self.clauses)


def meet_arrays(a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
    """Returns the shape of arrays that have both, or None if lengths or listed values exclude each other."""
    length = max(len(a.prefix), len(b.prefix))
    out = ArrayShape(
        tuple(all_of(a.item_lits(i), b.item_lits(i)) for i in range(length)),
        all_of(a.rest, b.rest),
        a.clauses | b.clauses,
        a.counts | b.counts,
        max(a.low, b.low),
        tighter_bound(a.high, b.high),
        a.unique or b.unique,
        common_values(a.values, b.values),
        None if a.evaluated is None or b.evaluated is None else max(a.evaluated, b.evaluated),
        a.evaluated_if | b.evaluated_if,
    )
    return simplify_array(out)


def simplify_array(shape: ArrayShape) -> ArrayShape | None:
    """Returns an equal shape in its shortest form, or None if the bounds exclude each other."""
    high = shape.high
    for place, lits in enumerate((*shape.prefix, shape.rest)):
        if lits == FALSE:
            high = tighter_bound(high, place)
            break
    if exceeds(shape.low, high) or shape.values == frozenset():
        return None
    prefix = shape.prefix[:high]
    while prefix and prefix[-1] == shape.rest:
        prefix = prefix[:-1]
    clauses = frozenset(c for c in shape.clauses if not any(s.lits == TRUE and s.low < shape.low for s in c))
    if frozenset() in clauses:
        return None
    unique = None if high is not None and high <= 1 else shape.unique
    return msgspec.structs.replace(shape, prefix=prefix, clauses=clauses, high=high, unique=unique)
