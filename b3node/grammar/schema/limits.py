"""Bounds of one compilation, their checks, and the refusal for a schema over a bound."""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.contract.tools import MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS
from b3node.errors import Refusal
from b3node.gbnf import MAX_GRAMMAR_BYTES, MAX_REPEATS, count_repeats
from b3node.grammar.inexact import Inexact
from b3node.grammar.schema.document import located_subschemas, subschemas


class SchemaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one compilation (contract decisions, "Schemas"; security R42)."""

    schema_bytes: int = MAX_SCHEMA_BYTES
    """Bytes of the schema as JSON."""
    depth: int = MAX_SCHEMA_LEVELS
    """Levels of nested arrays and objects in the schema."""
    subschemas: int = 2_000
    """Subschemas of the whole schema."""
    properties: int = 500
    """Entries of one `properties`."""
    enum_values: int = 1_000
    """Entries of one `enum`."""
    steps: int = 100_000
    """Steps of work, at some microseconds each: bounds the time (see `Budget`)."""
    grammar_bytes: int = MAX_GRAMMAR_BYTES
    """Bytes of UTF-8 of the printed grammar."""
    rules: int = 20_000
    """Rules that are made, before they are simplified."""
    printed_rules: int = 5_000
    """Lines of the printed grammar."""
    states: int = 4_000
    """States of one automaton."""
    expressions: int = 60_000
    """Interned expressions of the algebra."""
    repeats: int = MAX_REPEATS
    """Sum of all counts of the printed grammar, each of which the engine writes out."""


LIMITS: Final = SchemaLimits()
"""The bounds that hold unless others are given."""


def refusal(error: Inexact, param: str | None) -> Refusal:
    """Returns the refusal for a client, with the place in the schema (at most 120 characters of it)."""
    place = f"#{error.pointer.rstrip('/')}"
    shown = place if len(place) <= 120 else place[:60] + "…" + place[-59:]
    return Refusal("invalid_request", f"The schema cannot be enforced at {shown}: {error.why}.", param=param)


def check_printed(text: str, limits: SchemaLimits) -> None:
    """Raises `Inexact` if a printed grammar is over a bound."""
    if len(text.encode()) > limits.grammar_bytes or text.count("\n") > limits.printed_rules:
        raise Inexact("", f"the grammar would be larger than {limits.grammar_bytes // 1024} KiB")
    if count_repeats(text) > limits.repeats:
        raise Inexact("", f"the lengths and counts of the grammar sum up to more than {limits.repeats}")


def check_size(schema: object, limits: SchemaLimits) -> None:
    """Raises `Inexact` if a schema is no JSON or over a bound of its size."""
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        raise Inexact("", "the schema is no JSON") from None
    if size > limits.schema_bytes:
        raise Inexact("", f"the schema is larger than {limits.schema_bytes // 1024} KiB")
    if _depth(schema, limits.depth + 1) > limits.depth:
        raise Inexact("", f"the schema is nested deeper than {limits.depth} levels")
    _check_counts(schema, limits)


def _depth(value: object, limit: int) -> int:
    """Returns the levels of nesting, counted up to `limit`."""
    depth, level = 0, [value]
    while depth <= limit and (level := [each for each in level if type(each) is dict or type(each) is list]):
        depth += 1
        level = [below for each in level for below in (each.values() if type(each) is dict else each)]
    return min(depth, limit)


def _check_counts(schema: object, limits: SchemaLimits) -> None:
    """Raises `Inexact` if there are too many subschemas, properties or values of an `enum`."""
    if _is_small(schema, limits):
        return
    todo, count = [(schema, "")], 0
    while todo:
        value, pointer = todo.pop()
        count += 1
        if count > limits.subschemas:
            raise Inexact("", f"the schema has more than {limits.subschemas} subschemas")
        if not isinstance(value, dict):
            continue
        todo.extend(located_subschemas(value, pointer))
        for key, most in (("properties", limits.properties), ("enum", limits.enum_values)):
            if isinstance(listed := value.get(key), dict | list) and len(listed) > most:
                raise Inexact(f"{pointer}/{key}", f"more than {most} entries are listed")


def _is_small(schema: object, limits: SchemaLimits) -> bool:
    """Returns whether all counts are within bounds: a fast pass without places, enough for most schemas."""
    todo, count = [schema], 0
    while todo and count <= limits.subschemas:
        value = todo.pop()
        count += 1
        if isinstance(value, dict):
            todo += subschemas(value)
            for key, most in (("properties", limits.properties), ("enum", limits.enum_values)):
                if isinstance(listed := value.get(key), dict | list) and len(listed) > most:
                    return False
    return count <= limits.subschemas
