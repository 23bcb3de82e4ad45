"""The keywords that apply to the value in place: what holds when they hold, and when they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final

from b3node.grammar.constraints import keywords, unevaluated
from b3node.grammar.constraints.resolver import Space, Table
from b3node.grammar.constraints.shapes import TOP, Dnf, Object, Type, Witness, tidy_object
from b3node.grammar.inexact import Inexact, child

MAX_SUBSETS: Final = 8
"""Branches under an `unevaluated*` keyword, each subset of which is a way to conform."""


def _branches(space: Space, node: int, table: Table, key: str) -> list[int]:
    row = table[key]
    if not isinstance(row, list) or not row:
        raise Inexact(child(space.document[node].pointer, key), f"{key} is an array of schemas")
    return [space.document.below(node, value, key, i) for i, value in enumerate(row)]


def all_hold(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`allOf`."""
    out: Dnf = (TOP[type_],)
    for branch in _branches(space, node, table, "allOf"):
        out = space.conj(out, space.expand(2 * branch, type_))
    return out


def some_fails(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That `allOf` fails."""
    return space.disj(type_, [space.expand(2 * b + 1, type_) for b in _branches(space, node, table, "allOf")])


def any_holds(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`anyOf`; where evaluated members count, every set of branches is a way of its own."""
    branches = list(dict.fromkeys(_branches(space, node, table, "anyOf")))
    single = [space.expand(2 * branch, type_) for branch in branches]
    if not space.tracking or len(branches) == 1 or type_ not in {"array", "object"}:
        return space.disj(type_, single)
    alive = [dnf for dnf in single if dnf]
    if len(alive) > MAX_SUBSETS:
        raise Inexact(child(space.document[node].pointer, "anyOf"), "too many branches under unevaluated")
    ways = []
    for size in range(1, len(alive) + 1):
        for chosen in combinations(alive, size):
            out: Dnf = (TOP[type_],)
            for dnf in chosen:
                out = space.conj(out, dnf)
            ways.append(out)
    return space.disj(type_, ways)


def none_holds(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That `anyOf` fails."""
    return _none(space, _branches(space, node, table, "anyOf"), type_)


def _none(space: Space, branches: list[int], type_: Type) -> Dnf:
    out: Dnf = (TOP[type_],)
    for branch in branches:
        out = space.conj(out, space.expand(2 * branch + 1, type_))
    return out


def one_holds(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`oneOf`: a branch, and of the others only those negated that could hold with it."""
    branches = _branches(space, node, table, "oneOf")
    alive = [b for b in branches if space.expand(2 * b, type_)]
    out = []
    for i, branch in enumerate(alive):
        way = space.expand(2 * branch, type_)
        for j, other in enumerate(alive):
            if i != j and not space.apart(branch, other, type_):
                way = space.conj(way, space.expand(2 * other + 1, type_)) if way else way
        out.append(way)
    return space.disj(type_, out)


def not_one_holds(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That `oneOf` fails: no branch holds, or two do."""
    branches = _branches(space, node, table, "oneOf")
    two = [
        space.conj(space.expand(2 * a, type_), space.expand(2 * b, type_))
        for a, b in combinations(branches, 2)
    ]
    return space.disj(type_, [_none(space, branches, type_), *two])


def inner_fails(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`not`."""
    inner = space.document.below(node, table["not"], "not")
    return tuple(unevaluated.unseen(shape) for shape in space.expand(2 * inner + 1, type_))


def inner_holds(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That `not` fails."""
    inner = space.document.below(node, table["not"], "not")
    return space.expand(2 * inner, type_)


def reference(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`$ref`, `$dynamicRef`."""
    first, *others = _targets(space, node, table)
    out = space.expand(2 * first, type_)
    for target in others:
        out = space.conj(out, space.expand(2 * target, type_))
    return out


def reference_fails(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That a reference's target fails."""
    return space.disj(type_, [space.expand(2 * t + 1, type_) for t in _targets(space, node, table)])


def _targets(space: Space, node: int, table: Table) -> Iterator[int]:
    for key in ("$ref", "$recursiveRef", "$dynamicRef"):
        if key in table:
            yield space.document.resolve(node, table[key], dynamic=key == "$dynamicRef")


def condition(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`if`, `then`, `else`."""
    test, then, other = _condition(space, node, table)
    return space.disj(
        type_,
        [
            space.conj(space.expand(2 * test, type_), space.expand(2 * then, type_)),
            space.conj(space.expand(2 * test + 1, type_), space.expand(2 * other, type_)),
        ],
    )


def condition_fails(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That `if`, `then`, `else` fail."""
    test, then, other = _condition(space, node, table)
    return space.disj(
        type_,
        [
            space.conj(space.expand(2 * test, type_), space.expand(2 * then + 1, type_)),
            space.conj(space.expand(2 * test + 1, type_), space.expand(2 * other + 1, type_)),
        ],
    )


def _condition(space: Space, node: int, table: Table) -> tuple[int, int, int]:
    below = space.document.below
    return (
        below(node, table["if"], "if"),
        below(node, table.get("then", True), "then"),
        below(node, table.get("else", True), "else"),
    )


def dependent(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """`dependentSchemas`, and the schemas among `dependencies`."""
    out: Dnf = (TOP[type_],)
    for name, schema in _dependents(space, node, table) if type_ == "object" else ():
        absent = Object(clauses=frozenset({frozenset({Witness(name, None)})}))
        present = Object(clauses=frozenset({frozenset({Witness(name)})}))
        met = space.conj((present,), space.expand(2 * schema, type_))
        tidy = tidy_object(space.algebra, absent)
        out = space.conj(out, space.disj(type_, [(tidy,) if tidy is not None else (), met]))
    return out


def dependent_fails(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """That a dependent schema fails."""
    options: list[Dnf] = []
    for name, schema in _dependents(space, node, table) if type_ == "object" else ():
        present = Object(clauses=frozenset({frozenset({Witness(name)})}))
        options.append(space.conj((present,), space.expand(2 * schema + 1, type_)))
    return space.disj(type_, options)


def _dependents(space: Space, node: int, table: Table) -> Iterator[tuple[str, int]]:
    for key in ("dependentSchemas", "dependencies"):
        for name, value in keywords.mapping(table, space.document[node], key).items():
            if not isinstance(value, list | str):
                yield name, space.document.below(node, value, key, name)


_Reader = Callable[[Space, int, Table, Type], Dnf]
HOLDS: Final[dict[str, _Reader]] = {
    "$ref": reference,
    "$dynamicRef": reference,
    "$recursiveRef": reference,
    "allOf": all_hold,
    "anyOf": any_holds,
    "oneOf": one_holds,
    "not": inner_fails,
    "if": condition,
    "dependentSchemas": dependent,
    "dependencies": dependent,
}
FAILS: Final[dict[str, _Reader]] = {
    "$ref": reference_fails,
    "$dynamicRef": reference_fails,
    "$recursiveRef": reference_fails,
    "allOf": some_fails,
    "anyOf": none_holds,
    "oneOf": not_one_holds,
    "not": inner_holds,
    "if": condition_fails,
    "dependentSchemas": dependent_fails,
    "dependencies": dependent_fails,
}
