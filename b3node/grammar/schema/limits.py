"""Bounds of one compilation, their checks, and the refusal that a client reads when one is passed."""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.contract.tools import MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS
from b3node.errors import Refusal
from b3node.gbnf import MAX_GRAMMAR_BYTES, MAX_REPEATS, count_repeats
from b3node.grammar.inexact import Inexact
from b3node.grammar.schema.document import below, children


class SchemaLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one compilation (contract decisions, "Schemas"; security R42).

    Sizes are in bytes of UTF-8; `steps` bounds the time, at some microseconds each (see `Budget`); `repeats` is
    the sum of all counts, each of which the engine writes out.
    """

    schema_bytes: int = MAX_SCHEMA_BYTES
    depth: int = MAX_SCHEMA_LEVELS
    subschemas: int = 2_000
    properties: int = 500
    listed: int = 1_000
    steps: int = 100_000
    grammar_bytes: int = MAX_GRAMMAR_BYTES
    rules: int = 20_000
    printed_rules: int = 5_000
    states: int = 4_000
    expressions: int = 60_000
    repeats: int = MAX_REPEATS


LIMITS: Final = SchemaLimits()


def refusal(error: Inexact, param: str | None) -> Refusal:
    """What the client is told."""
    place = f"#{error.pointer.rstrip('/')}"
    shown = place if len(place) <= 120 else place[:60] + "…" + place[-59:]
    return Refusal("invalid_request", f"The schema cannot be enforced at {shown}: {error.why}.", param=param)


def check_printed(text: str, limits: SchemaLimits) -> None:
    """Nothing, when a grammar is within the bounds of its size. Raises `Inexact` otherwise."""
    if len(text.encode()) > limits.grammar_bytes or text.count("\n") > limits.printed_rules:
        raise Inexact("", f"the grammar would be larger than {limits.grammar_bytes // 1024} KiB")
    if count_repeats(text) > limits.repeats:
        raise Inexact("", f"the lengths and counts of the grammar sum up to more than {limits.repeats}")


def check_size(schema: object, limits: SchemaLimits) -> None:
    """Nothing, when a schema is within the bounds of its size. Raises `Inexact` otherwise."""
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
    """Levels of nesting, counted no further than `limit`."""
    depth, level = 0, [value]
    while depth <= limit and (level := [each for each in level if type(each) is dict or type(each) is list]):
        depth += 1
        level = [below for each in level for below in (each.values() if type(each) is dict else each)]
    return min(depth, limit)


def _check_counts(schema: object, limits: SchemaLimits) -> None:
    """The numbers of subschemas, of properties and of listed values."""
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
        todo.extend(children(value, pointer))
        for key, most in (("properties", limits.properties), ("enum", limits.listed)):
            if isinstance(listed := value.get(key), dict | list) and len(listed) > most:
                raise Inexact(f"{pointer}/{key}", f"more than {most} entries are listed")


def _is_small(schema: object, limits: SchemaLimits) -> bool:
    """Whether no count is passed: the same look without places, which all but a few schemas are spared."""
    todo, count = [schema], 0
    while todo and count <= limits.subschemas:
        value = todo.pop()
        count += 1
        if isinstance(value, dict):
            todo += below(value)
            for key, most in (("properties", limits.properties), ("enum", limits.listed)):
                if isinstance(listed := value.get(key), dict | list) and len(listed) > most:
                    return False
    return count <= limits.subschemas
