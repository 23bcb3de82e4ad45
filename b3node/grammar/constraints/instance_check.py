"""Check of a JSON value against a shape, used on listed values while a schema is compiled."""

from __future__ import annotations

from b3node.grammar.constraints.array_shape import ArrayShape, ItemWitness
from b3node.grammar.constraints.keywords import decimal
from b3node.grammar.constraints.literals import TRUE
from b3node.grammar.constraints.number_shape import NumberShape
from b3node.grammar.constraints.object_shape import MemberWitness, ObjectShape
from b3node.grammar.constraints.resolver import Resolver
from b3node.grammar.constraints.shapes import ConstantShape, Shape, StringShape
from b3node.grammar.constraints.values import canonical
from b3node.grammar.counts import exceeds


def has_shape(resolver: Resolver, value: object, shape: Shape) -> bool:
    """Returns True if a value of the shape's JSON type has the shape."""
    if isinstance(shape, ConstantShape):
        return canonical(value) in shape.texts
    if isinstance(shape, StringShape):
        return isinstance(value, str) and resolver.algebra.matches(shape.lang, value)
    if isinstance(shape, NumberShape):
        number = decimal(value)
        return number is not None and shape.admits(number)
    if shape.values is not None:
        return canonical(value) in shape.values
    if isinstance(shape, ArrayShape):
        return isinstance(value, list) and _has_items(resolver, value, shape)
    return isinstance(value, dict) and _has_members(resolver, value, shape)


def _has_items(resolver: Resolver, items: list[object], shape: ArrayShape) -> bool:
    if len(items) < shape.low or exceeds(len(items), shape.high):
        return False
    if shape.unique and len({canonical(item) for item in items}) < len(items):
        return False
    for count in shape.counts:
        found = sum(resolver.meets(item, count.lits) for item in items)
        if found < count.low or exceeds(found, count.high):
            return False
    if not all(resolver.meets(item, shape.item_lits(i)) for i, item in enumerate(items)):
        return False
    return all(any(_has_item_witness(resolver, items, spot) for spot in clause) for clause in shape.clauses)


def _has_item_witness(resolver: Resolver, items: list[object], spot: ItemWitness) -> bool:
    end = None if spot.high is None else spot.high + 1
    return any(resolver.meets(item, spot.lits) for item in items[spot.low : end])


def _has_members(resolver: Resolver, members: dict[str, object], shape: ObjectShape) -> bool:
    if len(members) < shape.low or exceeds(len(members), shape.high):
        return False
    if not all(resolver.meets(value, resolver.member_lits(shape, name)) for name, value in members.items()):
        return False
    return all(
        any(_has_member_witness(resolver, members, witness) for witness in clause) for clause in shape.clauses
    )


def _has_member_witness(resolver: Resolver, members: dict[str, object], witness: MemberWitness) -> bool:
    key, lits = witness.key, witness.lits
    if isinstance(key, str):
        return key not in members if lits is None else key in members and resolver.meets(members[key], lits)
    return any(
        key.covers(resolver.algebra, n) and resolver.meets(v, lits or TRUE) for n, v in members.items()
    )
