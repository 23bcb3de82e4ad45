"""What the keywords of one JSON type say, and what their failure says.

`holds` gives the one shape of the values of a type for which the keywords of a subschema hold; `fails` gives
the shapes of which a value has at least one when some keyword fails. Keywords that apply to the value in
place (allOf, $ref, if, ...) are not these: they are `obligations`. Keywords are checked for their form here;
a wrong form is refused at its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from b3node.grammar.constraints.resolver import Space, Table
from b3node.grammar.constraints.shapes import (
    FALSE,
    TRUE,
    Array,
    Count,
    Dnf,
    Keys,
    Lits,
    Number,
    Object,
    Shape,
    Spot,
    Text,
    Type,
    Witness,
    lit,
)
from b3node.grammar.gbnf import library
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages import pattern, pattern_language
from b3node.grammar.languages.algebra import Lang
from b3node.grammar.languages.charset import ANY
from b3node.grammar.schema.document import Node

MAX_COUNT: Final = 1_000_000
"""The largest length or count that is enforced as written."""


def holds(space: Space, number: int, type_: Type) -> Shape | None:
    """The shape for which the keywords of the node `number` that speak of `type_` hold; None for all values."""
    node = space.document[number]
    table = _table(node)
    match type_:
        case "number":
            return _number(table, node)
        case "string":
            return _string(space, table, node)
        case "array":
            return _array(space, number, table)
        case "object":
            return _object(space, number, table)
        case _:
            return None


def fails(space: Space, number: int, type_: Type) -> Dnf:
    """The shapes for which some keyword of the node `number` that speaks of `type_` fails."""
    node = space.document[number]
    table = _table(node)
    match type_:
        case "number":
            return tuple(_not_number(_number(table, node)))
        case "string":
            shape = _string(space, table, node)
            if table.get("format") in library.NARROWED:
                raise Inexact(
                    child(node.pointer, "format"), "that a format fails cannot be demanded of this one"
                )
            return () if shape is None else (Text(space.algebra.negate(shape.lang)),)
        case "array":
            return tuple(_not_array(space, number, table))
        case "object":
            return tuple(_not_object(space, number, table))
        case _:
            return ()


def _table(node: Node) -> Table:
    return node.value if isinstance(node.value, dict) else {}


def _wrong(node: Node, key: str, must: str) -> Inexact:
    return Inexact(child(node.pointer, key), f"{key} {must}")


# ------------------------------------------------------------------------------------------ numbers
def decimal(value: object) -> Decimal | None:
    """A JSON number as an exact decimal, or None when it is none or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    out = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    return out if out.is_finite() else None


def _bound(table: Table, node: Node, side: str) -> tuple[Decimal | None, bool]:
    key, strict = ("minimum", "exclusiveMinimum") if side == "low" else ("maximum", "exclusiveMaximum")
    value, edge = table.get(key), table.get(strict)
    bounds = []
    if value is not None:
        if (number := decimal(value)) is None:
            raise _wrong(node, key, "is a number")
        bounds.append((number, edge is True))
    if edge is not None and not isinstance(edge, bool):
        if (number := decimal(edge)) is None:
            raise _wrong(node, strict, "is a number")
        bounds.append((number, True))
    if not bounds:
        return None, False
    if side == "low":
        return max(bounds)
    return min(bounds, key=lambda pair: (pair[0], not pair[1]))


def _number(table: Table, node: Node) -> Number | None:
    low, high = _bound(table, node, "low"), _bound(table, node, "high")
    divisors = frozenset[Decimal]()
    if "multipleOf" in table:
        divisor = decimal(table["multipleOf"])
        if divisor is None or divisor <= 0:
            raise _wrong(node, "multipleOf", "is a number above zero")
        divisors = frozenset({divisor})
    out = Number(*low, *high, divisors)
    return None if out == Number() else out


def _not_number(shape: Number | None) -> Iterator[Shape]:
    if shape is None:
        return
    if shape.low is not None:
        yield Number(high=shape.low, high_open=not shape.low_open)
    if shape.high is not None:
        yield Number(low=shape.high, low_open=not shape.high_open)
    for divisor in shape.divisors:
        yield Number(nondivisors=frozenset({divisor}))


# ------------------------------------------------------------------------------------------ strings
def count_of(table: Table, node: Node, key: str) -> int | None:
    """A keyword that counts, as an integer of at least 0, or None when it is absent."""
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _wrong(node, key, "is a whole number of at least 0")
    return value


def _string(space: Space, table: Table, node: Node) -> Text | None:
    algebra, parts = space.algebra, []
    low, high = count_of(table, node, "minLength"), count_of(table, node, "maxLength")
    if low or high is not None:
        if high is not None and (low or 0) > high:
            return Text(0)
        parts.append(algebra.repeat(algebra.chars(ANY), low or 0, -1 if high is None else high))
    if "pattern" in table:
        if not isinstance(source := table["pattern"], str):
            raise _wrong(node, "pattern", "is a string")
        parts.append(space.pattern_language(source, child(node.pointer, "pattern")))
    if "format" in table:
        if not isinstance(name := table["format"], str):
            raise _wrong(node, "format", "is a string")
        name = library.ALIASES.get(name, name)
        if name in library.FORMATS:
            parts.append(algebra.table(library.format_table(name)))
    return Text(algebra.both(parts)) if parts else None


def pattern_of(space: Space, source: str, pointer: str) -> Lang:
    """The language of a pattern. Raises `Inexact` when it has none."""
    try:
        return pattern_language.language(space.algebra, source)
    except pattern.PatternError as error:
        raise Inexact(pointer, f"the pattern cannot be enforced: {error}") from None


# ------------------------------------------------------------------------------------------- arrays
def tuple_of(space: Space, number: int, table: Table) -> tuple[list[Lits], Lits | None]:
    """The obligations of the first items, and of all later ones (None when nothing is said of them)."""
    node, document = space.document[number], space.document
    key = "prefixItems" if "prefixItems" in table else "items"
    row, later = table.get(key), "items"
    if isinstance(row, list):
        later = "items" if key == "prefixItems" else "additionalItems"
        prefix = [lit(document.below(number, item, key, i)) for i, item in enumerate(row)]
    elif key == "prefixItems":
        raise _wrong(node, key, "is an array of schemas")
    else:
        prefix = []
    rest = lit(document.below(number, table[later], later)) if later in table else None
    return prefix, rest


def _contains(space: Space, number: int, table: Table) -> tuple[Lits, int, int] | None:
    if "contains" not in table:
        return None
    node = space.document[number]
    low, high = count_of(table, node, "minContains"), count_of(table, node, "maxContains")
    inner = lit(space.document.below(number, table["contains"], "contains"))
    return inner, 1 if low is None else low, -1 if high is None else high


def negated(lits: Lits) -> Lits:
    """The obligation that the one literal of `lits` is the other way round."""
    if lits == TRUE:
        return FALSE
    (only,) = lits
    return lit(only >> 1, holds=bool(only & 1))


def _array(space: Space, number: int, table: Table) -> Array | None:
    node = space.document[number]
    prefix, rest = tuple_of(space, number, table)
    low, high = count_of(table, node, "minItems"), count_of(table, node, "maxItems")
    clauses, counts = frozenset[frozenset[Spot]](), frozenset[Count]()
    contains = _contains(space, number, table)
    if contains is not None:
        lits, least, most = contains
        if (least, most) == (1, -1):
            clauses = frozenset({frozenset({Spot(0, -1, lits)})})
        elif least or most >= 0:
            counts = frozenset({Count(lits, least, most)})
    if not isinstance(unique := table.get("uniqueItems", False), bool):
        raise _wrong(node, "uniqueItems", "is true or false")
    seen = (len(prefix) if rest is None else -1) if space.tracking else 0
    out = Array(
        tuple(prefix),
        TRUE if rest is None else rest,
        clauses,
        counts,
        low or 0,
        -1 if high is None else high,
        child(node.pointer, "uniqueItems") if unique else None,
        seen=seen,
        seen_if=frozenset({contains[0]}) if contains is not None and space.tracking else frozenset(),
    )
    return None if out == Array() else out


def _not_array(space: Space, number: int, table: Table) -> Iterator[Shape]:
    node = space.document[number]
    prefix, rest = tuple_of(space, number, table)
    spots = {Spot(i, i, negated(lits)) for i, lits in enumerate(prefix) if lits != TRUE}
    if rest is not None and rest != TRUE:
        spots.add(Spot(len(prefix), -1, negated(rest)))
    if spots:
        yield Array(clauses=frozenset({frozenset(spots)}))
    if low := count_of(table, node, "minItems"):
        yield Array(high=low - 1)
    if (high := count_of(table, node, "maxItems")) is not None:
        yield Array(low=high + 1)
    contains = _contains(space, number, table)
    if contains is not None:
        lits, least, most = contains
        if least == 1:
            yield Array(rest=negated(lits))
        elif least:
            yield Array(counts=frozenset({Count(lits, 0, least - 1)}))
        if most >= 0:
            yield Array(counts=frozenset({Count(lits, most + 1, -1)}))
    if table.get("uniqueItems") is True:
        raise Inexact(child(node.pointer, "uniqueItems"), "that items repeat cannot be demanded")


# ------------------------------------------------------------------------------------------ objects
def mapping(table: Table, node: Node, key: str) -> dict[str, object]:
    """The object under a keyword, empty when the keyword is absent."""
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(node, key, "is an object")
    return value


def names_of(value: object, node: Node, key: str) -> list[str]:
    """A list of names, each once."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return list(dict.fromkeys(value))
    raise _wrong(node, key, "is an array of names")


def _required(table: Table, node: Node) -> list[str]:
    value = table.get("required", [])
    return [] if isinstance(value, bool) else names_of(value, node, "required")


def _patterns(space: Space, number: int, table: Table) -> list[tuple[Lang, Lits]]:
    node, key = space.document[number], "patternProperties"
    return [
        (
            space.pattern_language(source, child(node.pointer, key, source)),
            lit(space.document.below(number, value, key, source)),
        )
        for source, value in mapping(table, node, key).items()
    ]


def _named(space: Space, number: int, table: Table) -> dict[str, Lits]:
    node, key = space.document[number], "properties"
    return {
        name: lit(space.document.below(number, value, key, name))
        for name, value in mapping(table, node, key).items()
    }


def _wide(space: Space, number: int, table: Table) -> list[tuple[Keys, Lits]]:
    """What is said of classes of names: by pattern, of all others, and of names themselves."""
    patterns = _patterns(space, number, table)
    out = [(Keys(langs=frozenset({lang})), lits) for lang, lits in patterns]
    if "additionalProperties" in table:
        lits = lit(space.document.below(number, table["additionalProperties"], "additionalProperties"))
        out.append((_others(space, number, table), lits))
    if "propertyNames" in table:
        lits = lit(space.document.below(number, table["propertyNames"], "propertyNames"))
        if lits != TRUE:
            lang = space.algebra.negate(space.string_language(lits))
            out.append((Keys(langs=frozenset({lang})), FALSE))
    return out


def _others(space: Space, number: int, table: Table) -> Keys:
    langs = frozenset(lang for lang, _ in _patterns(space, number, table))
    return Keys(frozenset(mapping(table, space.document[number], "properties")), langs, others=True)


def _object(space: Space, number: int, table: Table) -> Object | None:
    node = space.document[number]
    named, wide = _named(space, number, table), _wide(space, number, table)
    clauses = {frozenset({Witness(name)}) for name in _required(table, node)}
    for name, others in _dependent_names(table, node):
        clauses |= {frozenset({Witness(name, None), Witness(other)}) for other in others}
    low, high = count_of(table, node, "minProperties"), count_of(table, node, "maxProperties")
    out = Object(
        tuple(named.items()),
        frozenset((keys, lits) for keys, lits in wide if lits != TRUE),
        frozenset(clauses),
        low or 0,
        -1 if high is None else high,
        seen=_seen(space, number, table, named) if space.tracking else frozenset(),
        order=tuple(_required(table, node)),
    )
    return None if out == Object() else out


def _seen(space: Space, number: int, table: Table, named: dict[str, Lits]) -> frozenset[Keys]:
    langs = frozenset(lang for lang, _ in _patterns(space, number, table))
    seen = {Keys(frozenset(named), langs)} if named or langs else set()
    if "additionalProperties" in table:
        seen.add(Keys(others=True))
    return frozenset(seen)


def _dependent_names(table: Table, node: Node) -> Iterator[tuple[str, list[str]]]:
    for name, value in mapping(table, node, "dependentRequired").items():
        yield name, names_of(value, node, "dependentRequired")
    for name, value in mapping(table, node, "dependencies").items():
        if isinstance(value, str):
            yield name, [value]
        elif isinstance(value, list):
            yield name, names_of(value, node, "dependencies")


def _not_object(space: Space, number: int, table: Table) -> Iterator[Shape]:
    node = space.document[number]
    witnesses = {
        Witness(name, negated(lits)) for name, lits in _named(space, number, table).items() if lits != TRUE
    }
    witnesses |= {Witness(keys, negated(lits)) for keys, lits in _wide(space, number, table) if lits != TRUE}
    witnesses |= {Witness(name, None) for name in _required(table, node)}
    if witnesses:
        yield Object(clauses=frozenset({frozenset(witnesses)}))
    for name, others in _dependent_names(table, node):
        missing = frozenset(Witness(other, None) for other in others)
        yield Object(clauses=frozenset({frozenset({Witness(name)}), missing}))
    if low := count_of(table, node, "minProperties"):
        yield Object(high=low - 1)
    if (high := count_of(table, node, "maxProperties")) is not None:
        yield Object(low=high + 1)
