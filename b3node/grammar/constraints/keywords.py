"""Keywords of one JSON type: the shapes for which they hold, and for which they fail.

`holds` returns the one shape of the values of a type for which the keywords of a subschema hold. `fails`
returns the shapes of which a value has at least one if some keyword fails. Keywords that apply to the value
in place (`allOf`, `$ref`, `if`, ...) are in `applicators`. A malformed keyword is refused here at its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints.array_shape import ArrayShape, ContainsCount, ItemWitness
from b3node.grammar.constraints.literals import FALSE, TRUE, Lits, lit
from b3node.grammar.constraints.number_shape import NumberShape
from b3node.grammar.constraints.object_shape import MemberWitness, NameSet, ObjectShape
from b3node.grammar.constraints.resolver import Resolver, SchemaObject
from b3node.grammar.constraints.shapes import Dnf, Shape, StringShape
from b3node.grammar.gbnf import library
from b3node.grammar.inexact import Inexact, child
from b3node.grammar.languages import pattern, pattern_language
from b3node.grammar.languages.algebra import VOID, Lang
from b3node.grammar.languages.charset import ANY
from b3node.grammar.schema.document import Subschema

MAX_COUNT: Final = 1_000_000
"""The largest length or count that is enforced as written."""


def holds(resolver: Resolver, number: int, type_: JsonType) -> Shape | None:
    """Returns the shape for which the keywords of the node `number` about `type_` hold.

    None means that they hold for all values.
    """
    node = resolver.document[number]
    schema = _keywords_of(node)
    match type_:
        case "number":
            return _number(schema, node)
        case "string":
            return _string(resolver, schema, node)
        case "array":
            return _array(resolver, number, schema)
        case "object":
            return _object(resolver, number, schema)
        case _:
            return None


def fails(resolver: Resolver, number: int, type_: JsonType) -> Dnf:
    """Returns the shapes for which some keyword of the node `number` about `type_` fails."""
    node = resolver.document[number]
    schema = _keywords_of(node)
    match type_:
        case "number":
            return tuple(_not_number(_number(schema, node)))
        case "string":
            shape = _string(resolver, schema, node)
            if schema.get("format") in library.NARROWED:
                raise Inexact(
                    child(node.pointer, "format"), "that a format fails cannot be demanded of this one"
                )
            return () if shape is None else (StringShape(resolver.algebra.negate(shape.lang)),)
        case "array":
            return tuple(_not_array(resolver, number, schema))
        case "object":
            return tuple(_not_object(resolver, number, schema))
        case _:
            return ()


def _keywords_of(node: Subschema) -> SchemaObject:
    return node.value if isinstance(node.value, dict) else {}


def _malformed(node: Subschema, key: str, must: str) -> Inexact:
    """Returns the refusal of a malformed keyword."""
    return Inexact(child(node.pointer, key), f"{key} {must}")


# ------------------------------------------------------------------------------------------ numbers
def decimal(value: object) -> Decimal | None:
    """Returns a JSON number as an exact decimal, or None if the value is no number or not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    out = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    return out if out.is_finite() else None


def _bound(schema: SchemaObject, node: Subschema, side: str) -> tuple[Decimal | None, bool]:
    """Returns the tighter of the two bounds on a side ("low", "high"), and whether it is open."""
    key, strict = ("minimum", "exclusiveMinimum") if side == "low" else ("maximum", "exclusiveMaximum")
    value, edge = schema.get(key), schema.get(strict)
    bounds = []
    if value is not None:
        if (number := decimal(value)) is None:
            raise _malformed(node, key, "is a number")
        bounds.append((number, edge is True))
    if edge is not None and not isinstance(edge, bool):
        if (number := decimal(edge)) is None:
            raise _malformed(node, strict, "is a number")
        bounds.append((number, True))
    if not bounds:
        return None, False
    if side == "low":
        return max(bounds)
    return min(bounds, key=lambda pair: (pair[0], not pair[1]))


def _number(schema: SchemaObject, node: Subschema) -> NumberShape | None:
    low, high = _bound(schema, node, "low"), _bound(schema, node, "high")
    divisors = frozenset[Decimal]()
    if "multipleOf" in schema:
        divisor = decimal(schema["multipleOf"])
        if divisor is None or divisor <= 0:
            raise _malformed(node, "multipleOf", "is a number above zero")
        divisors = frozenset({divisor})
    out = NumberShape(*low, *high, divisors)
    return None if out == NumberShape() else out


def _not_number(shape: NumberShape | None) -> Iterator[Shape]:
    if shape is None:
        return
    if shape.low is not None:
        yield NumberShape(high=shape.low, high_open=not shape.low_open)
    if shape.high is not None:
        yield NumberShape(low=shape.high, low_open=not shape.high_open)
    for divisor in shape.divisors:
        yield NumberShape(nondivisors=frozenset({divisor}))


# ------------------------------------------------------------------------------------------ strings
def count_keyword(schema: SchemaObject, node: Subschema, key: str) -> int | None:
    """Returns a keyword that counts as an integer of at least 0, or None if it is absent."""
    value = schema.get(key)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise _malformed(node, key, "is a whole number of at least 0")
    return value


def _string(resolver: Resolver, schema: SchemaObject, node: Subschema) -> StringShape | None:
    algebra, parts = resolver.algebra, []
    low, high = count_keyword(schema, node, "minLength"), count_keyword(schema, node, "maxLength")
    if low or high is not None:
        if high is not None and (low or 0) > high:
            return StringShape(VOID)
        parts.append(algebra.repeat(algebra.chars(ANY), low or 0, high))
    if "pattern" in schema:
        if not isinstance(source := schema["pattern"], str):
            raise _malformed(node, "pattern", "is a string")
        parts.append(resolver.pattern_language(source, child(node.pointer, "pattern")))
    if "format" in schema:
        if not isinstance(name := schema["format"], str):
            raise _malformed(node, "format", "is a string")
        name = library.ALIASES.get(name, name)
        if name in library.FORMATS:
            parts.append(algebra.from_dfa(library.format_dfa(name)))
    return StringShape(algebra.both(parts)) if parts else None


def compile_pattern(resolver: Resolver, source: str, pointer: str) -> Lang:
    """Returns the language of a pattern. Raises `Inexact` if it has none."""
    try:
        return pattern_language.language(resolver.algebra, source)
    except pattern.PatternError as error:
        raise Inexact(pointer, f"the pattern cannot be enforced: {error}") from None


# ------------------------------------------------------------------------------------------- arrays
def tuple_items(resolver: Resolver, number: int, schema: SchemaObject) -> tuple[list[Lits], Lits | None]:
    """Returns the constraints on the first items, and the one on all later items.

    None means that no keyword is about later items.
    """
    node, document = resolver.document[number], resolver.document
    key = "prefixItems" if "prefixItems" in schema else "items"
    row, later = schema.get(key), "items"
    if isinstance(row, list):
        later = "items" if key == "prefixItems" else "additionalItems"
        prefix = [lit(document.below(number, item, key, i)) for i, item in enumerate(row)]
    elif key == "prefixItems":
        raise _malformed(node, key, "is an array of schemas")
    else:
        prefix = []
    rest = lit(document.below(number, schema[later], later)) if later in schema else None
    return prefix, rest


def _contains(resolver: Resolver, number: int, schema: SchemaObject) -> tuple[Lits, int, int | None] | None:
    """Returns `contains` as a constraint with its least and greatest count (None: no bound), or None."""
    if "contains" not in schema:
        return None
    node = resolver.document[number]
    low, high = count_keyword(schema, node, "minContains"), count_keyword(schema, node, "maxContains")
    inner = lit(resolver.document.below(number, schema["contains"], "contains"))
    return inner, 1 if low is None else low, high


def negated(lits: Lits) -> Lits:
    """Returns the constraint that the one literal of `lits` does not hold."""
    if lits == TRUE:
        return FALSE
    (only,) = lits
    return lit(only >> 1, holds=bool(only & 1))


def _array(resolver: Resolver, number: int, schema: SchemaObject) -> ArrayShape | None:
    node = resolver.document[number]
    prefix, rest = tuple_items(resolver, number, schema)
    low, high = count_keyword(schema, node, "minItems"), count_keyword(schema, node, "maxItems")
    clauses, counts = frozenset[frozenset[ItemWitness]](), frozenset[ContainsCount]()
    contains = _contains(resolver, number, schema)
    if contains is not None:
        lits, least, most = contains
        if (least, most) == (1, None):
            clauses = frozenset({frozenset({ItemWitness(0, None, lits)})})
        elif least or most is not None:
            counts = frozenset({ContainsCount(lits, least, most)})
    if not isinstance(unique := schema.get("uniqueItems", False), bool):
        raise _malformed(node, "uniqueItems", "is true or false")
    seen = (len(prefix) if rest is None else None) if resolver.tracks_evaluated else 0
    out = ArrayShape(
        tuple(prefix),
        TRUE if rest is None else rest,
        clauses,
        counts,
        low or 0,
        high,
        child(node.pointer, "uniqueItems") if unique else None,
        evaluated=seen,
        evaluated_if=frozenset({contains[0]})
        if contains is not None and resolver.tracks_evaluated
        else frozenset(),
    )
    return None if out == ArrayShape() else out


def _not_array(resolver: Resolver, number: int, schema: SchemaObject) -> Iterator[Shape]:
    node = resolver.document[number]
    prefix, rest = tuple_items(resolver, number, schema)
    witnesses = {ItemWitness(i, i, negated(lits)) for i, lits in enumerate(prefix) if lits != TRUE}
    if rest is not None and rest != TRUE:
        witnesses.add(ItemWitness(len(prefix), None, negated(rest)))
    if witnesses:
        yield ArrayShape(clauses=frozenset({frozenset(witnesses)}))
    if low := count_keyword(schema, node, "minItems"):
        yield ArrayShape(high=low - 1)
    if (high := count_keyword(schema, node, "maxItems")) is not None:
        yield ArrayShape(low=high + 1)
    contains = _contains(resolver, number, schema)
    if contains is not None:
        lits, least, most = contains
        if least == 1:
            yield ArrayShape(rest=negated(lits))
        elif least:
            yield ArrayShape(counts=frozenset({ContainsCount(lits, 0, least - 1)}))
        if most is not None:
            yield ArrayShape(counts=frozenset({ContainsCount(lits, most + 1, None)}))
    if schema.get("uniqueItems") is True:
        raise Inexact(child(node.pointer, "uniqueItems"), "that items repeat cannot be demanded")


# ------------------------------------------------------------------------------------------ objects
def object_keyword(schema: SchemaObject, node: Subschema, key: str) -> dict[str, object]:
    """Returns the object under a keyword, empty if the keyword is absent."""
    value = schema.get(key, {})
    if not isinstance(value, dict):
        raise _malformed(node, key, "is an object")
    return value


def name_list(value: object, node: Subschema, key: str) -> list[str]:
    """Returns a list of names, each once."""
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return list(dict.fromkeys(value))
    raise _malformed(node, key, "is an array of names")


def _required(schema: SchemaObject, node: Subschema) -> list[str]:
    value = schema.get("required", [])
    return [] if isinstance(value, bool) else name_list(value, node, "required")


def _patterns(resolver: Resolver, number: int, schema: SchemaObject) -> list[tuple[Lang, Lits]]:
    node, key = resolver.document[number], "patternProperties"
    return [
        (
            resolver.pattern_language(source, child(node.pointer, key, source)),
            lit(resolver.document.below(number, value, key, source)),
        )
        for source, value in object_keyword(schema, node, key).items()
    ]


def _properties(resolver: Resolver, number: int, schema: SchemaObject) -> dict[str, Lits]:
    node, key = resolver.document[number], "properties"
    return {
        name: lit(resolver.document.below(number, value, key, name))
        for name, value in object_keyword(schema, node, key).items()
    }


def _name_sets(resolver: Resolver, number: int, schema: SchemaObject) -> list[tuple[NameSet, Lits]]:
    """Returns the constraints on sets of names: by pattern, on all other names, and on names themselves."""
    patterns = _patterns(resolver, number, schema)
    out = [(NameSet(langs=frozenset({lang})), lits) for lang, lits in patterns]
    if "additionalProperties" in schema:
        lits = lit(resolver.document.below(number, schema["additionalProperties"], "additionalProperties"))
        out.append((_undeclared(resolver, number, schema), lits))
    if "propertyNames" in schema:
        lits = lit(resolver.document.below(number, schema["propertyNames"], "propertyNames"))
        if lits != TRUE:
            lang = resolver.algebra.negate(resolver.string_language(lits))
            out.append((NameSet(langs=frozenset({lang})), FALSE))
    return out


def _undeclared(resolver: Resolver, number: int, schema: SchemaObject) -> NameSet:
    """Returns the names that `properties` and `patternProperties` do not cover."""
    langs = frozenset(lang for lang, _ in _patterns(resolver, number, schema))
    return NameSet(
        frozenset(object_keyword(schema, resolver.document[number], "properties")), langs, others=True
    )


def _object(resolver: Resolver, number: int, schema: SchemaObject) -> ObjectShape | None:
    node = resolver.document[number]
    named, name_sets = _properties(resolver, number, schema), _name_sets(resolver, number, schema)
    clauses = {frozenset({MemberWitness(name)}) for name in _required(schema, node)}
    for name, others in _dependent_names(schema, node):
        clauses |= {frozenset({MemberWitness(name, None), MemberWitness(other)}) for other in others}
    low, high = count_keyword(schema, node, "minProperties"), count_keyword(schema, node, "maxProperties")
    out = ObjectShape(
        tuple(named.items()),
        frozenset((keys, lits) for keys, lits in name_sets if lits != TRUE),
        frozenset(clauses),
        low or 0,
        high,
        evaluated=_evaluated_names(resolver, number, schema, named)
        if resolver.tracks_evaluated
        else frozenset(),
        required_order=tuple(_required(schema, node)),
    )
    return None if out == ObjectShape() else out


def _evaluated_names(
    resolver: Resolver, number: int, schema: SchemaObject, named: dict[str, Lits]
) -> frozenset[NameSet]:
    """Returns the names that the keywords of a node evaluate."""
    langs = frozenset(lang for lang, _ in _patterns(resolver, number, schema))
    seen = {NameSet(frozenset(named), langs)} if named or langs else set()
    if "additionalProperties" in schema:
        seen.add(NameSet(others=True))
    return frozenset(seen)


def _dependent_names(schema: SchemaObject, node: Subschema) -> Iterator[tuple[str, list[str]]]:
    """Yields each name on which others depend, with those that must come with it."""
    for name, value in object_keyword(schema, node, "dependentRequired").items():
        yield name, name_list(value, node, "dependentRequired")
    for name, value in object_keyword(schema, node, "dependencies").items():
        if isinstance(value, str):
            yield name, [value]
        elif isinstance(value, list):
            yield name, name_list(value, node, "dependencies")


def _not_object(resolver: Resolver, number: int, schema: SchemaObject) -> Iterator[Shape]:
    node = resolver.document[number]
    witnesses = {
        MemberWitness(name, negated(lits))
        for name, lits in _properties(resolver, number, schema).items()
        if lits != TRUE
    }
    witnesses |= {
        MemberWitness(keys, negated(lits))
        for keys, lits in _name_sets(resolver, number, schema)
        if lits != TRUE
    }
    witnesses |= {MemberWitness(name, None) for name in _required(schema, node)}
    if witnesses:
        yield ObjectShape(clauses=frozenset({frozenset(witnesses)}))
    for name, others in _dependent_names(schema, node):
        missing = frozenset(MemberWitness(other, None) for other in others)
        yield ObjectShape(clauses=frozenset({frozenset({MemberWitness(name)}), missing}))
    if low := count_keyword(schema, node, "minProperties"):
        yield ObjectShape(high=low - 1)
    if (high := count_keyword(schema, node, "maxProperties")) is not None:
        yield ObjectShape(low=high + 1)
