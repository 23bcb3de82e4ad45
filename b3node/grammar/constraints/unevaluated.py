"""`unevaluatedProperties` and `unevaluatedItems`: constraints on members that no keyword evaluates.

They are followed for each way in which a value can conform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints import keywords
from b3node.grammar.constraints.array_shape import ArrayShape, ItemWitness
from b3node.grammar.constraints.enums import synthetic_node
from b3node.grammar.constraints.literals import TRUE, Lits, lit
from b3node.grammar.constraints.object_shape import MemberWitness, NameSet, ObjectShape, simplify_object
from b3node.grammar.constraints.resolver import Resolver, SchemaObject
from b3node.grammar.constraints.shapes import Dnf, Shape, meet
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages.algebra import Lang

_EVALUATING_KEYWORDS: Final = (
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


def holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType, dnf: Dnf) -> Dnf:
    """Returns the shapes with the constraint of `unevaluated*` on the members that each has not evaluated."""
    if type_ == "object" and "unevaluatedProperties" in schema:
        lits = lit(resolver.document.below(node, schema["unevaluatedProperties"], "unevaluatedProperties"))
        rest = (_constrain_rest(shape, lits) for shape in dnf if isinstance(shape, ObjectShape))
        return tuple(s for shape in rest if (s := simplify_object(resolver.algebra, shape)) is not None)
    if type_ == "array" and "unevaluatedItems" in schema:
        value = schema["unevaluatedItems"]
        lits = lit(resolver.document.below(node, value, "unevaluatedItems"))
        return _conj_each(resolver, dnf, lambda shape: _constrain_rest_items(resolver, node, shape, lits))
    return dnf


def _conj_each(resolver: Resolver, dnf: Dnf, more: Callable[[ArrayShape], Shape]) -> Dnf:
    """Returns each array shape combined with the shape that `more` makes of it."""
    met = (meet(resolver.algebra, shape, more(shape)) for shape in dnf if isinstance(shape, ArrayShape))
    return tuple(shape for shape in met if shape is not None)


def _constrain_rest_items(resolver: Resolver, node: int, shape: ArrayShape, lits: Lits) -> Shape:
    """Returns the shape that constrains all items that no keyword has evaluated on this way.

    All items count as evaluated then.
    """
    if shape.evaluated is None:
        return shape
    for other in shape.evaluated_if:
        if TRUE in (other, lits):
            lits = TRUE
            break
        options: list[object] = [_literal_schema(resolver, n) for n in (*other, *lits)]
        lits = lit(synthetic_node(resolver, node, {"anyOf": options}))
    return ArrayShape((TRUE,) * shape.evaluated, lits, evaluated=None)


def _literal_schema(resolver: Resolver, number: int) -> object:
    """Returns a literal as a schema."""
    value = resolver.document[number >> 1].value
    return {"not": value} if number & 1 else value


def fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which an unevaluated member fails its schema.

    Raises:
        Inexact: other keywords of the node evaluate members, so that the failure cannot be expressed.
    """
    key = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}.get(type_)
    if key is None or key not in schema:
        return ()
    if any(other in schema for other in _EVALUATING_KEYWORDS):
        raise Inexact(child(resolver.document[node].pointer, key), f"{key} cannot be demanded to fail here")
    lits = keywords.negated(lit(resolver.document.below(node, schema[key], key)))
    own = keywords.holds(resolver, node, type_)
    if isinstance(own, ObjectShape) or type_ == "object":
        evaluated = own.evaluated if isinstance(own, ObjectShape) else frozenset[NameSet]()
        rest = _names_not_in(evaluated)
        return (
            ()
            if rest is None
            else (ObjectShape(clauses=frozenset({frozenset({MemberWitness(rest, lits)})})),)
        )
    start = own.evaluated if isinstance(own, ArrayShape) else 0
    return (
        ()
        if start is None
        else (ArrayShape(clauses=frozenset({frozenset({ItemWitness(start, None, lits)})})),)
    )


def without_evaluated(shape: Shape) -> Shape:
    """Returns the shape without its evaluated members: a subschema that fails evaluates none."""
    if isinstance(shape, ArrayShape) and (shape.evaluated != 0 or shape.evaluated_if):
        return msgspec.structs.replace(shape, evaluated=0, evaluated_if=frozenset())
    if isinstance(shape, ObjectShape) and shape.evaluated:
        return msgspec.structs.replace(shape, evaluated=frozenset())
    return shape


def _names_not_in(evaluated: frozenset[NameSet]) -> NameSet | None:
    """Returns the names that no evaluated set contains, or None if there are none."""
    names = frozenset[str]().union(*(keys.names for keys in evaluated if not keys.others))
    langs = frozenset[Lang]().union(*(keys.langs for keys in evaluated if not keys.others))
    return None if any(keys.others for keys in evaluated) else NameSet(names, langs, others=True)


def _constrain_rest(shape: ObjectShape, lits: Lits) -> ObjectShape:
    """Returns the shape with a constraint on all members that are not evaluated."""
    rest = _names_not_in(shape.evaluated)
    if rest is None:
        return shape
    name_sets = shape.name_sets | {(rest, lits)} if lits != TRUE else shape.name_sets
    return msgspec.structs.replace(shape, name_sets=name_sets, evaluated=frozenset({NameSet(others=True)}))
