"""`unevaluatedProperties` and `unevaluatedItems`: what no keyword has evaluated on the way a value conforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from b3node.grammar.constraints import keywords
from b3node.grammar.constraints.enums import synthetic
from b3node.grammar.constraints.resolver import Space, Table
from b3node.grammar.constraints.shapes import (
    TRUE,
    Array,
    Dnf,
    Keys,
    Lits,
    Object,
    Shape,
    Spot,
    Type,
    Witness,
    lit,
    meet,
    tidy_object,
)
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages.algebra import Lang

_OTHERS: Final = (
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "allOf",
    "anyOf",
    "contains",
    "dependencies",
    "dependentSchemas",
    "if",
    "oneOf",
)
"""Keywords that may evaluate members in place."""


def holding(space: Space, node: int, table: Table, type_: Type, dnf: Dnf) -> Dnf:
    """The shapes with what `unevaluated*` says of the members that each has not evaluated."""
    if type_ == "object" and "unevaluatedProperties" in table:
        lits = lit(space.document.below(node, table["unevaluatedProperties"], "unevaluatedProperties"))
        rest = (_rest_of(shape, lits) for shape in dnf if isinstance(shape, Object))
        return tuple(s for shape in rest if (s := tidy_object(space.algebra, shape)) is not None)
    if type_ == "array" and "unevaluatedItems" in table:
        value = table["unevaluatedItems"]
        lits = lit(space.document.below(node, value, "unevaluatedItems"))
        return _conj_each(space, dnf, lambda shape: _rest_items(space, node, shape, lits))
    return dnf


def _conj_each(space: Space, dnf: Dnf, more: Callable[[Array], Shape]) -> Dnf:
    met = (meet(space.algebra, shape, more(shape)) for shape in dnf if isinstance(shape, Array))
    return tuple(shape for shape in met if shape is not None)


def _rest_items(space: Space, node: int, shape: Array, lits: Lits) -> Shape:
    """What all items meet that no keyword has evaluated on this way; then all are evaluated."""
    if shape.seen < 0:
        return shape
    for other in shape.seen_if:
        if TRUE in (other, lits):
            lits = TRUE
            break
        options: list[object] = [_value(space, n) for n in (*other, *lits)]
        lits = lit(synthetic(space, node, {"anyOf": options}))
    return Array((TRUE,) * shape.seen, lits, seen=-1)


def _value(space: Space, number: int) -> object:
    """A literal as a schema."""
    value = space.document[number >> 1].value
    return {"not": value} if number & 1 else value


def failing(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That an unevaluated member fails its schema, where that can be told."""
    key = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}.get(type_)
    if key is None or key not in table:
        return ()
    if any(other in table for other in _OTHERS):
        raise Inexact(child(space.document[node].pointer, key), f"{key} cannot be demanded to fail here")
    lits = keywords.negated(lit(space.document.below(node, table[key], key)))
    own = keywords.holds(space, node, type_)
    if isinstance(own, Object) or type_ == "object":
        seen = own.seen if isinstance(own, Object) else frozenset[Keys]()
        rest = _others_than(seen)
        return () if rest is None else (Object(clauses=frozenset({frozenset({Witness(rest, lits)})})),)
    start = own.seen if isinstance(own, Array) else 0
    return () if start < 0 else (Array(clauses=frozenset({frozenset({Spot(start, -1, lits)})})),)


def unseen(shape: Shape) -> Shape:
    """The shape without what was evaluated: a subschema that fails evaluates nothing."""
    if isinstance(shape, Array) and (shape.seen or shape.seen_if):
        return msgspec.structs.replace(shape, seen=0, seen_if=frozenset())
    if isinstance(shape, Object) and shape.seen:
        return msgspec.structs.replace(shape, seen=frozenset())
    return shape


def _others_than(seen: frozenset[Keys]) -> Keys | None:
    """The names that no evaluated class has, or None when there are none."""
    names = frozenset[str]().union(*(keys.names for keys in seen if not keys.others))
    langs = frozenset[Lang]().union(*(keys.langs for keys in seen if not keys.others))
    return None if any(keys.others for keys in seen) else Keys(names, langs, others=True)


def _rest_of(shape: Object, lits: Lits) -> Object:
    rest = _others_than(shape.seen)
    if rest is None:
        return shape
    wide = shape.wide | {(rest, lits)} if lits != TRUE else shape.wide
    return msgspec.structs.replace(shape, wide=wide, seen=frozenset({Keys(others=True)}))
