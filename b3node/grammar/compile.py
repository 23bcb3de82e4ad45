"""The front door: a schema in, a grammar out, or a refusal with the place and a sentence that helps.

A grammar conforms or does not exist: what the compiler cannot say exactly is refused, never let through
unsaid. A caller that must have a grammar (a tool's parameters) asks for the loosened one and is told, place by
place, what it does not enforce.
"""

from __future__ import annotations

from b3node.grammar.constraints.literals import lit
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.emit.compiler import Compiler
from b3node.grammar.gbnf import library
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import Algebra, TooLarge
from b3node.grammar.schema.budget import Budget
from b3node.grammar.schema.document import Document
from b3node.grammar.schema.limits import LIMITS, SchemaLimits, check_printed, check_size, refusal
from b3node.grammar.schema.relax import Loose, loosened


def schema_to_gbnf(
    schema: object, *, param: str | None = "text.format.schema", limits: SchemaLimits = LIMITS
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


def schema_to_loose_gbnf(
    schema: object, *, param: str | None = "tools", limits: SchemaLimits = LIMITS
) -> Loose:
    """As `schema_to_gbnf`, but what cannot be enforced is left out, keyword by keyword, and listed.

    Raises:
        Refusal: there is no conforming value.
    """
    try:
        return loosened(schema, lambda each: exact(each, limits))
    except Inexact as error:
        raise refusal(error, param) from None


def conforms(
    schema: object, value: object, *, param: str | None = "text.format.schema", limits: SchemaLimits = LIMITS
) -> bool:
    """Whether a JSON value conforms, as the grammar of the schema means it (formats count; patterns never backtrack).

    Raises:
        Refusal: as `schema_to_gbnf`, where the value's type and members lead to what cannot be read.
    """
    try:
        resolver = resolver_of(schema, limits)
        return resolver.meets(value, lit(resolver.document.root))
    except Inexact as error:
        raise refusal(error, param) from None
    except (TooLarge, RecursionError):
        raise refusal(Inexact("", "the schema needs too much work"), param) from None


def json_object_gbnf() -> str:
    """The GBNF of any JSON object, for `text.format` of type `json_object`."""
    return library.standalone("json_object.gbnf")


def exact(schema: object, limits: SchemaLimits, budget: Budget | None = None) -> str:
    """The GBNF of a schema; `budget` is spent from where several share one.

    Raises:
        Inexact: with the place and the reason.
    """
    try:
        resolver = resolver_of(schema, limits, budget)
        text = Compiler(resolver, max_rules=limits.rules, max_states=limits.states).grammar()
    except TooLarge:
        raise Inexact("", "the patterns together need too many states") from None
    except RecursionError:
        raise Inexact("", "the schema refers to itself too deeply") from None
    check_printed(text, limits)
    return text


def resolver_of(
    schema: object,
    limits: SchemaLimits,
    budget: Budget | None = None,
    kind: type[SchemaResolver] = SchemaResolver,
) -> SchemaResolver:
    """The obligations of a schema within the bounds. Raises `Inexact` otherwise."""
    if budget is None:
        budget = Budget(limits.steps)
    check_size(schema, limits)
    return kind(Document(schema), Algebra(limits.expressions, budget.spend), budget.spend)
