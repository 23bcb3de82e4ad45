"""`type`, `enum` and `const`: the shapes of one JSON type for which they hold, and for which they fail."""

from __future__ import annotations

from typing import Final

from b3node.dialects.kinds import JsonType, json_type
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.keywords import decimal
from b3node.grammar.constraints.number_shape import NumberShape
from b3node.grammar.constraints.object_shape import ObjectShape
from b3node.grammar.constraints.resolver import Resolver, SchemaObject
from b3node.grammar.constraints.shapes import TOP, TYPES, ConstantShape, Dnf, StringShape
from b3node.grammar.constraints.values import canonical, schema_of
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import Lang

_TYPE_NAMES: Final = frozenset({*TYPES, "integer"})


def _types(resolver: Resolver, node: int, value: object) -> set[str]:
    """Returns the type names of a `type` keyword. Raises `Inexact` on an unknown one."""
    if isinstance(value, str) and value in _TYPE_NAMES:
        return {value}
    names = value if isinstance(value, list) else [value]
    pointer = child(resolver.document[node].pointer, "type")
    for name in names:
        if not isinstance(name, str) or name not in _TYPE_NAMES:
            raise Inexact(pointer, "an unknown type is named")
    return set(names)


def type_holds(resolver: Resolver, node: int, value: object, type_: JsonType) -> Dnf:
    """Returns the shapes of a JSON type for which `type` holds."""
    names = _types(resolver, node, value)
    if type_ in names:
        return (TOP[type_],)
    return (NumberShape(integer=True),) if type_ == "number" and "integer" in names else ()


def type_fails(resolver: Resolver, node: int, value: object, type_: JsonType) -> Dnf:
    """Returns the shapes of a JSON type for which `type` fails."""
    names = _types(resolver, node, value)
    if type_ in names:
        return ()
    return (NumberShape(integer=False),) if type_ == "number" and "integer" in names else (TOP[type_],)


def _enum_values(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> list[object]:
    """Returns the values of a type that `enum` and `const` allow."""
    out = schema.get("enum", [schema.get("const")])
    if not isinstance(out, list):
        raise Inexact(child(resolver.document[node].pointer, "enum"), "enum is an array")
    if "enum" in schema and "const" in schema:
        wanted = canonical(schema["const"])
        out = [value for value in out if canonical(value) == wanted]
    return [value for value in out if json_type(value) == type_]


def enum_holds(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes of a JSON type for which `enum` and `const` hold.

    Listed arrays and objects are added to the resolver's `enum_values`.
    """
    values = _enum_values(resolver, node, schema, type_)
    if not values:
        return ()
    if type_ == "string":
        return (StringShape(_string_language(resolver, values)),)
    if type_ == "number":
        return (NumberShape(values=frozenset(d for v in values if (d := decimal(v)) is not None)),)
    texts = {canonical(value): value for value in values}
    if type_ in {"null", "boolean"}:
        return (ConstantShape(frozenset(texts)),)
    resolver.enum_values |= {key: value for key, value in texts.items() if key not in resolver.enum_values}
    listed = frozenset(texts)
    return (ArrayShape(values=listed),) if type_ == "array" else (ObjectShape(values=listed),)


def _string_language(resolver: Resolver, values: list[object]) -> Lang:
    """Returns the language of the strings among the values."""
    return resolver.algebra.from_dfa(
        automaton.from_strings([value for value in values if isinstance(value, str)])
    )


def enum_fails(resolver: Resolver, node: int, schema: SchemaObject, type_: JsonType) -> Dnf:
    """Returns the shapes of a JSON type for which `enum` or `const` fails."""
    values = _enum_values(resolver, node, schema, type_)
    if not values:
        return (TOP[type_],)
    if type_ == "string":
        return (StringShape(resolver.algebra.negate(_string_language(resolver, values))),)
    if type_ == "number":
        return (NumberShape(without=frozenset(d for v in values if (d := decimal(v)) is not None)),)
    if type_ in {"null", "boolean"}:
        top = TOP[type_]
        left = top.texts - {canonical(v) for v in values} if isinstance(top, ConstantShape) else frozenset()
        return (ConstantShape(left),) if left else ()
    out: Dnf = (TOP[type_],)
    for value in values:
        exact = synthetic_node(resolver, node, schema_of(value))
        out = resolver.conj(out, resolver.expand(2 * exact + 1, type_))
    return out


def synthetic_node(resolver: Resolver, node: int, value: dict[str, object]) -> int:
    """Returns the number of a schema that is made up and stands in the place of a node."""
    place = resolver.document[node]
    return resolver.document.intern(value, place.pointer, place.base, place.scope)
