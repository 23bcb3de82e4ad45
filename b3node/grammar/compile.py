"""Entry points of the compiler: a schema becomes a grammar, or a refusal with the place and the reason.

A grammar is exact or it is refused: no constraint is dropped silently. A caller that must have a grammar (for
a tool's parameters) asks for the loosened one, which lists the places that it does not enforce.
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
    """Compiles a schema to the GBNF whose texts are exactly the JSON values that conform to it.

    Key order, number spellings and whitespace are fixed (see `grammars/README.md`). The start symbol is
    `root`.

    Args:
        schema: parsed JSON.
        param: the request's path of the schema, for the refusal.
        limits: bounds; a schema over one is refused.

    Raises:
        Refusal: `invalid_request` with the place in the schema: it is no schema, no value conforms to it, or
            no grammar within the limits is exact.
    """
    try:
        return compile_exactly(schema, limits)
    except Inexact as error:
        raise refusal(error, param) from None


def schema_to_loose_gbnf(
    schema: object, *, param: str | None = "tools", limits: SchemaLimits = LIMITS
) -> Loose:
    """Compiles like `schema_to_gbnf`, but removes keywords that cannot be enforced, and lists them.

    Raises:
        Refusal: there is no conforming value.
    """
    try:
        return loosened(schema, lambda each: compile_exactly(each, limits))
    except Inexact as error:
        raise refusal(error, param) from None


def conforms(
    schema: object, value: object, *, param: str | None = "text.format.schema", limits: SchemaLimits = LIMITS
) -> bool:
    """Returns whether a JSON value conforms to a schema, with the meaning that the grammar gives it.

    Formats are enforced, and patterns never backtrack.

    Raises:
        Refusal: as `schema_to_gbnf`, if the value's type and members lead to a part that cannot be compiled.
    """
    try:
        resolver = resolver_of(schema, limits)
        return resolver.meets(value, lit(resolver.document.root))
    except Inexact as error:
        raise refusal(error, param) from None
    except (TooLarge, RecursionError):
        raise refusal(Inexact("", "the schema needs too much work"), param) from None


def json_object_gbnf() -> str:
    """Returns the GBNF of any JSON object, for `text.format` of type `json_object`."""
    return library.standalone("json_object.gbnf")


def compile_exactly(schema: object, limits: SchemaLimits, budget: Budget | None = None) -> str:
    """Compiles a schema to GBNF exactly.

    Args:
        schema: parsed JSON.
        limits: bounds.
        budget: is spent from; None for one of its own.

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
    """Returns the resolver of a schema.

    Raises:
        Inexact: the schema is over a bound.
    """
    if budget is None:
        budget = Budget(limits.steps)
    check_size(schema, limits)
    return kind(Document(schema), Algebra(limits.expressions, budget.spend), budget.spend)
