"""The front door: a schema in, a grammar out, or a refusal with the place and a sentence that helps.

A grammar conforms or does not exist: what the compiler cannot say exactly is refused, never let through
unsaid. A caller that must have a grammar (a tool's parameters) asks for the loosened one and is told, place by
place, what it does not enforce.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from b3node.errors import Refusal
from b3node.grammar import library
from b3node.grammar.budget import Budget
from b3node.grammar.compiler import Compiler
from b3node.grammar.document import Document, below, children
from b3node.grammar.loosening import Loose, loosened
from b3node.grammar.obligations import Obligations
from b3node.grammar.refusal import Inexact
from b3node.grammar.regular import Algebra, TooLarge
from b3node.grammar.shapes import lit


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one compilation (contract decisions, "Schemas"; security R42).

    Sizes are in bytes of UTF-8; `steps` bounds the time, at some microseconds each (see `Budget`); `repeats` is
    the sum of all counts, each of which the engine writes out.
    """

    schema_bytes: int = 64 * 1024
    depth: int = 32
    subschemas: int = 2_000
    properties: int = 500
    listed: int = 1_000
    steps: int = 100_000
    grammar_bytes: int = 256 * 1024
    rules: int = 20_000
    printed_rules: int = 5_000
    states: int = 4_000
    expressions: int = 60_000
    repeats: int = 50_000


LIMITS: Final = Limits()
_REPEAT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def schema_to_gbnf(
    schema: object, *, param: str | None = "text.format.schema", limits: Limits = LIMITS
) -> str:
    """The GBNF whose texts are exactly the JSON values that conform to `schema`.

    Key order, number spellings and whitespace are fixed (see `grammars/README.md`); the start symbol is `root`.

    Args:
        schema: parsed JSON.
        param: the request's path of the schema, for the refusal.
        limits: bounds; a schema that passes one is refused.

    Raises:
        Refusal: `invalid_request`, naming the place in the schema: no schema, no conforming value, or nothing
            that a grammar can say exactly within the limits.
    """
    try:
        return exact(schema, limits)
    except Inexact as error:
        raise refusal(error, param) from None


def schema_to_loose_gbnf(schema: object, *, param: str | None = "tools", limits: Limits = LIMITS) -> Loose:
    """As `schema_to_gbnf`, but what cannot be enforced is left out, keyword by keyword, and listed.

    Raises:
        Refusal: there is no conforming value.
    """
    try:
        return loosened(schema, lambda each: exact(each, limits))
    except Inexact as error:
        raise refusal(error, param) from None


def conforms(
    schema: object, value: object, *, param: str | None = "text.format.schema", limits: Limits = LIMITS
) -> bool:
    """Whether a JSON value conforms, as the grammar of the schema means it (formats count; patterns never backtrack).

    Raises:
        Refusal: as `schema_to_gbnf`, where the value's type and members lead to what cannot be read.
    """
    try:
        obligations = obligations_of(schema, limits)
        return obligations.meets(value, lit(obligations.document.root))
    except Inexact as error:
        raise refusal(error, param) from None
    except (TooLarge, RecursionError):
        raise refusal(Inexact("", "the schema needs too much work"), param) from None


def json_object_gbnf() -> str:
    """The GBNF of any JSON object, for `text.format` of type `json_object`."""
    return library.whole("json_object.gbnf")


def refusal(error: Inexact, param: str | None) -> Refusal:
    """What the client is told."""
    place = f"#{error.pointer.rstrip('/')}"
    shown = place if len(place) <= 120 else place[:60] + "…" + place[-59:]
    return Refusal("invalid_request", f"The schema cannot be enforced at {shown}: {error.why}.", param=param)


def exact(schema: object, limits: Limits, budget: Budget | None = None) -> str:
    """The GBNF of a schema; `budget` is spent from where several share one.

    Raises:
        Inexact: with the place and the reason.
    """
    try:
        obligations = obligations_of(schema, limits, budget)
        text = Compiler(obligations, max_rules=limits.rules, max_states=limits.states).grammar()
    except TooLarge:
        raise Inexact("", "the patterns together need too many states") from None
    except RecursionError:
        raise Inexact("", "the schema refers to itself too deeply") from None
    check_printed(text, limits)
    return text


def check_printed(text: str, limits: Limits) -> None:
    """Nothing, when a grammar is within the bounds of its size. Raises `Inexact` otherwise."""
    if len(text.encode()) > limits.grammar_bytes or text.count("\n") > limits.printed_rules:
        raise Inexact("", f"the grammar would be larger than {limits.grammar_bytes // 1024} KiB")
    if repeats(text) > limits.repeats:
        raise Inexact("", f"the lengths and counts of the grammar sum up to more than {limits.repeats}")


def repeats(text: str) -> int:
    """The sum of all counts of a grammar."""
    return sum(int(most or least) for least, most in _REPEAT.findall(text))


def obligations_of(
    schema: object, limits: Limits, budget: Budget | None = None, kind: type[Obligations] = Obligations
) -> Obligations:
    """The obligations of a schema within the bounds. Raises `Inexact` otherwise."""
    if budget is None:
        budget = Budget(limits.steps)
    check_size(schema, limits)
    return kind(Document(schema), Algebra(limits.expressions, budget.spend), budget.spend)


def check_size(schema: object, limits: Limits) -> None:
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


def _check_counts(schema: object, limits: Limits) -> None:
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


def _is_small(schema: object, limits: Limits) -> bool:
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
