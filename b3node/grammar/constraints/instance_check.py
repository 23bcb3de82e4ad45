"""Whether a JSON value has a shape; listed values are tried with it while a schema is compiled."""

from __future__ import annotations

from b3node.grammar.constraints.keywords import decimal
from b3node.grammar.constraints.resolver import Space
from b3node.grammar.constraints.shapes import TRUE, Array, Number, Object, Shape, Spot, Text, Witness, Words
from b3node.grammar.constraints.values import canonical


def has(space: Space, value: object, shape: Shape) -> bool:
    """Whether a value of the shape's JSON type has the shape."""
    if isinstance(shape, Words):
        return canonical(value) in shape.texts
    if isinstance(shape, Text):
        return isinstance(value, str) and space.algebra.matches(shape.lang, value)
    if isinstance(shape, Number):
        number = decimal(value)
        return number is not None and shape.admits(number)
    if shape.values is not None:
        return canonical(value) in shape.values
    if isinstance(shape, Array):
        return isinstance(value, list) and _has_items(space, value, shape)
    return isinstance(value, dict) and _has_members(space, value, shape)


def _has_items(space: Space, row: list[object], shape: Array) -> bool:
    if len(row) < shape.low or 0 <= shape.high < len(row):
        return False
    if shape.unique and len({canonical(item) for item in row}) < len(row):
        return False
    for count in shape.counts:
        found = sum(space.meets(item, count.lits) for item in row)
        if found < count.low or 0 <= count.high < found:
            return False
    if not all(space.meets(item, shape.at(i)) for i, item in enumerate(row)):
        return False
    return all(any(_spotted(space, row, spot) for spot in clause) for clause in shape.clauses)


def _spotted(space: Space, row: list[object], spot: Spot) -> bool:
    items = row[spot.low :] if spot.high < 0 else row[spot.low : spot.high + 1]
    return any(space.meets(item, spot.lits) for item in items)


def _has_members(space: Space, table: dict[str, object], shape: Object) -> bool:
    if len(table) < shape.low or 0 <= shape.high < len(table):
        return False
    if not all(space.meets(value, space.at(shape, name)) for name, value in table.items()):
        return False
    return all(any(_witnessed(space, table, witness) for witness in clause) for clause in shape.clauses)


def _witnessed(space: Space, table: dict[str, object], witness: Witness) -> bool:
    key, lits = witness.key, witness.lits
    if isinstance(key, str):
        return key not in table if lits is None else key in table and space.meets(table[key], lits)
    return any(key.covers(space.algebra, n) and space.meets(v, lits or TRUE) for n, v in table.items())
