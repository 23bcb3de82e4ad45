"""`type`, `enum` and `const`: what they leave of one JSON type, and what their failure leaves."""

from __future__ import annotations

from typing import Final

from b3node.grammar.constraints.keywords import decimal
from b3node.grammar.constraints.resolver import Space, Table
from b3node.grammar.constraints.shapes import TOP, TYPES, Array, Dnf, Number, Object, Text, Type, Words
from b3node.grammar.constraints.values import canonical, exactly, type_of
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import Lang

_TYPE_NAMES: Final = frozenset({*TYPES, "integer"})


def _types(space: Space, node: int, value: object) -> set[str]:
    if isinstance(value, str) and value in _TYPE_NAMES:
        return {value}
    names = value if isinstance(value, list) else [value]
    pointer = child(space.document[node].pointer, "type")
    for name in names:
        if not isinstance(name, str) or name not in _TYPE_NAMES:
            raise Inexact(pointer, "an unknown type is named")
    return set(names)


def typed(space: Space, node: int, value: object, type_: Type) -> Dnf:
    """What `type` leaves of a JSON type."""
    names = _types(space, node, value)
    if type_ in names:
        return (TOP[type_],)
    return (Number(integer=True),) if type_ == "number" and "integer" in names else ()


def mistyped(space: Space, node: int, value: object, type_: Type) -> Dnf:
    """What is left of a JSON type when `type` fails."""
    names = _types(space, node, value)
    if type_ in names:
        return ()
    return (Number(integer=False),) if type_ == "number" and "integer" in names else (TOP[type_],)


def _listed_values(space: Space, node: int, table: Table, type_: Type) -> list[object]:
    """The values of a type that `enum` and `const` leave."""
    out = table.get("enum", [table.get("const")])
    if not isinstance(out, list):
        raise Inexact(child(space.document[node].pointer, "enum"), "enum is an array")
    if "enum" in table and "const" in table:
        wanted = canonical(table["const"])
        out = [value for value in out if canonical(value) == wanted]
    return [value for value in out if type_of(value) == type_]


def enumerated(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """What `enum` and `const` leave of a JSON type."""
    values = _listed_values(space, node, table, type_)
    if not values:
        return ()
    if type_ == "string":
        return (Text(_words(space, values)),)
    if type_ == "number":
        return (Number(values=frozenset(d for v in values if (d := decimal(v)) is not None)),)
    texts = {canonical(value): value for value in values}
    if type_ in {"null", "boolean"}:
        return (Words(frozenset(texts)),)
    space.listed |= {key: value for key, value in texts.items() if key not in space.listed}
    seen = frozenset(texts)
    return (Array(values=seen),) if type_ == "array" else (Object(values=seen),)


def _words(space: Space, values: list[object]) -> Lang:
    return space.algebra.table(automaton.words([value for value in values if isinstance(value, str)]))


def unlisted(space: Space, node: int, table: Table, type_: Type) -> Dnf:
    """What is left of a JSON type when `enum` or `const` fails."""
    values = _listed_values(space, node, table, type_)
    if not values:
        return (TOP[type_],)
    if type_ == "string":
        return (Text(space.algebra.negate(_words(space, values))),)
    if type_ == "number":
        return (Number(without=frozenset(d for v in values if (d := decimal(v)) is not None)),)
    if type_ in {"null", "boolean"}:
        top = TOP[type_]
        left = top.texts - {canonical(v) for v in values} if isinstance(top, Words) else frozenset()
        return (Words(left),) if left else ()
    out: Dnf = (TOP[type_],)
    for value in values:
        exact = synthetic(space, node, exactly(value))
        out = space.conj(out, space.expand(2 * exact + 1, type_))
    return out


def synthetic(space: Space, node: int, value: dict[str, object]) -> int:
    """The number of a schema made up in the place of a node."""
    place = space.document[node]
    return space.document.intern(value, place.pointer, place.base, place.scope)
