"""Applicators: the keywords that apply subschemas in place, and the shapes for which each holds or fails.

Every reader takes the resolver, the number of a node, its keywords and a JSON type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints import keywords, unevaluated
from b3node.grammar.constraints.object_shape import MemberWitness, ObjectShape, simplify_object
from b3node.grammar.constraints.resolver import Resolver, SchemaObject
from b3node.grammar.constraints.shapes import TOP, Dnf
from b3node.grammar.inexact import Inexact, child

MAX_SUBSETS: Final = 8
"""Branches under an `unevaluated*` keyword, each subset of which is a way to conform."""


def _branches(resolver: Resolver, node: int, schema: SchemaObject, key: str) -> list[int]:
    """Returns the nodes of the subschemas that a keyword lists."""
    row = schema[key]
    if not isinstance(row, list) or not row:
        raise Inexact(child(resolver.document[node].pointer, key), f"{key} is an array of schemas")
    return [resolver.document.below(node, value, key, i) for i, value in enumerate(row)]


def all_of_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `allOf` holds."""
    out: Dnf = (TOP[type_],)
    for branch in _branches(resolver, node, schema, "allOf"):
        out = resolver.conj(out, resolver.expand(2 * branch, type_))
    return out


def all_of_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `allOf` fails."""
    return resolver.disj(
        type_, [resolver.expand(2 * b + 1, type_) for b in _branches(resolver, node, schema, "allOf")]
    )


def any_of_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `anyOf` holds.

    Where evaluated members are tracked, every set of branches is a way of its own.
    """
    branches = list(dict.fromkeys(_branches(resolver, node, schema, "anyOf")))
    single = [resolver.expand(2 * branch, type_) for branch in branches]
    if not resolver.tracks_evaluated or len(branches) == 1 or type_ not in {"array", "object"}:
        return resolver.disj(type_, single)
    alive = [dnf for dnf in single if dnf]
    if len(alive) > MAX_SUBSETS:
        raise Inexact(child(resolver.document[node].pointer, "anyOf"), "too many branches under unevaluated")
    ways = []
    for size in range(1, len(alive) + 1):
        for chosen in combinations(alive, size):
            out: Dnf = (TOP[type_],)
            for dnf in chosen:
                out = resolver.conj(out, dnf)
            ways.append(out)
    return resolver.disj(type_, ways)


def any_of_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `anyOf` fails."""
    return _all_fail(resolver, _branches(resolver, node, schema, "anyOf"), type_)


def _all_fail(resolver: Resolver, branches: list[int], type_: JsonType) -> Dnf:
    """Returns the shapes for which every branch fails."""
    out: Dnf = (TOP[type_],)
    for branch in branches:
        out = resolver.conj(out, resolver.expand(2 * branch + 1, type_))
    return out


def one_of_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `oneOf` holds.

    Each branch is combined with the negation of only those other branches that could hold with it.
    """
    branches = _branches(resolver, node, schema, "oneOf")
    alive = [b for b in branches if resolver.expand(2 * b, type_)]
    out = []
    for i, branch in enumerate(alive):
        way = resolver.expand(2 * branch, type_)
        for j, other in enumerate(alive):
            if i != j and not resolver.are_disjoint(branch, other, type_):
                way = resolver.conj(way, resolver.expand(2 * other + 1, type_)) if way else way
        out.append(way)
    return resolver.disj(type_, out)


def one_of_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `oneOf` fails: no branch holds, or two do."""
    branches = _branches(resolver, node, schema, "oneOf")
    two = [
        resolver.conj(resolver.expand(2 * a, type_), resolver.expand(2 * b, type_))
        for a, b in combinations(branches, 2)
    ]
    return resolver.disj(type_, [_all_fail(resolver, branches, type_), *two])


def not_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `not` holds."""
    inner = resolver.document.below(node, schema["not"], "not")
    return tuple(unevaluated.without_evaluated(shape) for shape in resolver.expand(2 * inner + 1, type_))


def not_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `not` fails."""
    inner = resolver.document.below(node, schema["not"], "not")
    return resolver.expand(2 * inner, type_)


def ref_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which the targets of `$ref`, `$recursiveRef` and `$dynamicRef` hold."""
    first, *others = _targets(resolver, node, schema)
    out = resolver.expand(2 * first, type_)
    for target in others:
        out = resolver.conj(out, resolver.expand(2 * target, type_))
    return out


def ref_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which the target of a reference fails."""
    return resolver.disj(type_, [resolver.expand(2 * t + 1, type_) for t in _targets(resolver, node, schema)])


def _targets(resolver: Resolver, node: int, schema: SchemaObject) -> Iterator[int]:
    """Yields the nodes that the references of a node point to."""
    for key in ("$ref", "$recursiveRef", "$dynamicRef"):
        if key in schema:
            yield resolver.document.resolve(node, schema[key], dynamic=key == "$dynamicRef")


def if_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `if`, `then` and `else` hold."""
    test, then, other = _condition(resolver, node, schema)
    return resolver.disj(
        type_,
        [
            resolver.conj(resolver.expand(2 * test, type_), resolver.expand(2 * then, type_)),
            resolver.conj(resolver.expand(2 * test + 1, type_), resolver.expand(2 * other, type_)),
        ],
    )


def if_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `if`, `then` and `else` fail."""
    test, then, other = _condition(resolver, node, schema)
    return resolver.disj(
        type_,
        [
            resolver.conj(resolver.expand(2 * test, type_), resolver.expand(2 * then + 1, type_)),
            resolver.conj(resolver.expand(2 * test + 1, type_), resolver.expand(2 * other + 1, type_)),
        ],
    )


def _condition(resolver: Resolver, node: int, schema: SchemaObject) -> tuple[int, int, int]:
    """Returns the nodes of `if`, `then` and `else`; a missing one is `true`."""
    below = resolver.document.below
    return (
        below(node, schema["if"], "if"),
        below(node, schema.get("then", True), "then"),
        below(node, schema.get("else", True), "else"),
    )


def dependent_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which `dependentSchemas` and the schemas in `dependencies` hold."""
    out: Dnf = (TOP[type_],)
    for name, branch in _dependents(resolver, node, schema) if type_ == "object" else ():
        absent = ObjectShape(clauses=frozenset({frozenset({MemberWitness(name, None)})}))
        present = ObjectShape(clauses=frozenset({frozenset({MemberWitness(name)})}))
        met = resolver.conj((present,), resolver.expand(2 * branch, type_))
        tidy = simplify_object(resolver.algebra, absent)
        out = resolver.conj(out, resolver.disj(type_, [(tidy,) if tidy is not None else (), met]))
    return out


def dependent_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes for which a dependent schema fails."""
    options: list[Dnf] = []
    for name, branch in _dependents(resolver, node, schema) if type_ == "object" else ():
        present = ObjectShape(clauses=frozenset({frozenset({MemberWitness(name)})}))
        options.append(resolver.conj((present,), resolver.expand(2 * branch + 1, type_)))
    return resolver.disj(type_, options)


def _dependents(resolver: Resolver, node: int, schema: SchemaObject) -> Iterator[tuple[str, int]]:
    """Yields the names that have a dependent schema, with its node."""
    for key in ("dependentSchemas", "dependencies"):
        for name, value in keywords.object_keyword(schema, resolver.document[node], key).items():
            if not isinstance(value, list | str):
                yield name, resolver.document.below(node, value, key, name)


_Applicator = Callable[[Resolver, int, SchemaObject, JsonType], Dnf]
HOLDS: Final[dict[str, _Applicator]] = {
    "$ref": ref_holds,
    "$dynamicRef": ref_holds,
    "$recursiveRef": ref_holds,
    "allOf": all_of_holds,
    "anyOf": any_of_holds,
    "oneOf": one_of_holds,
    "not": not_holds,
    "if": if_holds,
    "dependentSchemas": dependent_holds,
    "dependencies": dependent_holds,
}
FAILS: Final[dict[str, _Applicator]] = {
    "$ref": ref_fails,
    "$dynamicRef": ref_fails,
    "$recursiveRef": ref_fails,
    "allOf": all_of_fails,
    "anyOf": any_of_fails,
    "oneOf": one_of_fails,
    "not": not_fails,
    "if": if_fails,
    "dependentSchemas": dependent_fails,
    "dependencies": dependent_fails,
}
