"""Arguments of one function as a grammar: exact where that is possible, loosened and reported where not.

The arguments of a call are a JSON object, even if the schema allows other values too. A schema that nothing
can satisfy, or that is malformed, does not fail the request: any object may be written then, and the judge
rejects the finished arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import (
    Arguments,
    Calls,
    JsonArguments,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    QuotedArguments,
    TaggedArguments,
)
from b3node.gbnf import count_repeats
from b3node.grammar.calls.argument_style import ArgumentWriter
from b3node.grammar.calls.argument_styles import KeywordWriter, NestedWriter, QuotedWriter, TaggedWriter
from b3node.grammar.compile import resolver_of
from b3node.grammar.constraints.closed_objects import (
    ClosedObjectResolver,
    allows_undeclared,
    declares_no_members,
)
from b3node.grammar.constraints.literals import lit
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.emit.compiler import JSON_WORDS, PYTHON_WORDS, Compiler
from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Symbols
from b3node.grammar.gbnf.special_tokens import SpecialTokens
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import TooLarge
from b3node.grammar.schema.budget import Budget
from b3node.grammar.schema.limits import SchemaLimits, check_printed, refusal
from b3node.grammar.schema.relax import Loose, loosened

NO_ARGUMENTS: Final[dict[str, object]] = {"type": "object", "additionalProperties": False}
"""Schema of the arguments of a function that declares no parameters."""
ANY_OBJECT: Final[dict[str, object]] = {"type": "object"}
"""Schema of any arguments."""
MIN_FUNCTIONS_PER_BUDGET: Final = 4
"""One function may take this fraction (1/n) of the steps of a request."""
BYTES_PER_STEP: Final = 4
"""Bytes of schema and of grammar that count as a step: reading and printing are work too."""
NOT_ENFORCED: Final = "this is not enforced while a call is written"
NOT_WRITABLE: Final = "the model's way of writing calls cannot be kept to this"
_RENAMED_BYTES_RATIO: Final = 1.2
"""Bytes of a part whose rules were renamed, for each byte of the grammar that it was."""
TOO_MUCH: Final = "the functions of this request take too long to compile, so any arguments may be written"
TOO_LARGE: Final = "together with the other functions it is too large, so any arguments may be written"


class CallStyle(msgspec.Struct, frozen=True):
    """Style in which a dialect writes calls."""

    calls: Calls
    """The calls of the dialect."""
    marks: SpecialTokens
    """The special tokens of its markers."""

    @property
    def arguments(self) -> Arguments:
        """The style of the arguments."""
        body = self.calls.body
        return body.arguments if isinstance(body, NamedBody) else JsonArguments()

    @property
    def words(self) -> Mapping[str, str]:
        """The names of true, false and null."""
        arguments = self.arguments
        python = isinstance(arguments, TaggedArguments) and arguments.python
        return PYTHON_WORDS if python or isinstance(arguments, KeywordArguments) else JSON_WORDS

    @property
    def library(self) -> Mapping[str, str]:
        """The rules that all grammars of arguments share, by name."""
        rules = library.json_rules()
        return (
            rules
            if self.words is JSON_WORDS
            else {**rules, "value": _replace_words(rules["value"], self.words)}
        )


def _replace_words(body: str, words: Mapping[str, str]) -> str:
    """Returns a rule with the names of true, false and null replaced."""
    for word, other in words.items():
        body = body.replace(f'"{word}"', f'"{other}"')
    return body


class Loosened(msgspec.Struct, frozen=True):
    """A place of a function's schema that the grammar does not enforce."""

    param: str
    """The path of the schema in the request (`tools[1].parameters`)."""
    place: str
    """A JSON pointer into the schema (`#/properties/to/pattern`); `#` is all of it.

    Its last part is the keyword.
    """
    why: str = NOT_ENFORCED
    """The reason, for people."""

    def __str__(self) -> str:
        return f"{self.param}{self.place}: {self.why}"


class Function(msgspec.Struct, frozen=True):
    """A function that may be called."""

    index: int
    """Its place in the request."""
    name: str
    """Its name."""
    arguments: Loose
    """The grammar of its arguments."""
    why: str = NOT_ENFORCED
    """The reason for the places that the grammar does not enforce."""

    @property
    def loosened(self) -> list[Loosened]:
        """The places that its grammar does not enforce."""
        return [
            Loosened(f"tools[{self.index}].parameters", place, self.why) for place in self.arguments.loosened
        ]

    def relaxed(self, anything: Loose) -> Function:
        """Returns the function with any arguments, because the whole would be too large."""
        return Function(self.index, self.name, anything, TOO_LARGE)


def shares(gbnf: str, limits: SchemaLimits) -> tuple[float, float, float]:
    """Returns the shares of the bounds of a whole grammar that one part takes.

    They are estimates, as names get longer in the whole.
    """
    return (
        len(gbnf) * _RENAMED_BYTES_RATIO / limits.grammar_bytes,
        gbnf.count("\n") / limits.printed_rules,
        count_repeats(gbnf) / limits.repeats,
    )


class FunctionCompiler:
    """Compiler of the functions of one request, under one budget of steps.

    Args:
        style: how arguments are written.
        known: results of earlier requests; it is added to.
        limits: bounds of each schema, and of the steps.
    """

    def __init__(self, style: CallStyle, known: MutableMapping[bytes, Loose], limits: SchemaLimits) -> None:
        self._style = style
        self._known = known
        self._limits = limits
        self._steps_left = limits.steps

    @cached_property
    def anything(self) -> Loose:
        """Grammar of any arguments."""
        budget = Budget(self._limits.steps)
        return Loose(write_arguments(self._style, ANY_OBJECT, {}, self._limits, budget), ("#",))

    def functions(self, tools: Sequence[tuple[int, FunctionTool]]) -> list[Function]:
        """Returns functions of the request, given by their places in it, with their grammars.

        The smallest are compiled first. If the steps do not suffice for all, the largest may get any
        arguments.

        Raises:
            Refusal: `invalid_request` at `tools[i].parameters`: one is `strict`, and cannot be enforced
                exactly.
        """
        encoded = [msgspec.json.encode(tool.parameters) for _, tool in tools]
        found: dict[int, Function] = {}
        for _, place in sorted((len(text), place) for place, text in enumerate(encoded)):
            found[place] = self._function(*tools[place], encoded[place])
        return [found[place] for place in range(len(tools))]

    def _function(self, index: int, tool: FunctionTool, schema: bytes) -> Function:
        """Returns one function, from the cache if it is known."""
        # The key has the members in the client's order, because calls are written in it.
        key = msgspec.json.encode((bool(tool.strict), self._style.arguments)) + schema
        known = self._known.get(key)
        if known is not None:
            return Function(index, tool.name, known)
        if self._steps_left < len(schema) // BYTES_PER_STEP and not tool.strict:
            return Function(index, tool.name, self.anything, TOO_MUCH)
        self._steps_left -= len(schema) // BYTES_PER_STEP
        is_full_share = self._steps_left >= self._limits.steps // MIN_FUNCTIONS_PER_BUDGET
        found = self._compile(index, tool)
        if is_full_share:
            self._known[key] = found
        return Function(index, tool.name, found)

    def _compile(self, index: int, tool: FunctionTool) -> Loose:
        schema = tool.parameters
        if schema is None or declares_no_members(schema):
            schema = NO_ARGUMENTS
        if not tool.strict:
            return self._compile_loosely(schema)
        try:
            return self._compile_exactly(schema)
        except Inexact as error:
            raise refusal(error, f"tools[{index}].parameters") from None

    def _compile_exactly(self, schema: object) -> Loose:
        notes: dict[str, None] = {}
        text = self._write(schema, notes)
        if notes:
            raise Inexact(next(iter(notes)).removeprefix("#"), NOT_WRITABLE)
        return Loose(text, ())

    def _compile_loosely(self, schema: object) -> Loose:
        notes: dict[str, None] = {}

        def write(narrower: object) -> str:
            notes.clear()
            return self._write(narrower, notes)

        try:
            found = loosened(schema, write)
        except Inexact:
            return self.anything
        return Loose(found.gbnf, tuple(dict.fromkeys((*found.loosened, *notes))))

    def _write(self, schema: object, notes: dict[str, None]) -> str:
        """Returns the grammar of a schema and charges the steps for it. Raises `Inexact`."""
        budget = Budget(max(0, min(self._steps_left, self._limits.steps // MIN_FUNCTIONS_PER_BUDGET)))
        before = budget.left
        try:
            text = write_arguments(self._style, schema, notes, self._limits, budget)
        finally:
            self._steps_left -= before - max(budget.left, 0)
        self._steps_left -= len(text) // BYTES_PER_STEP
        return text


def write_arguments(
    style: CallStyle, schema: object, notes: dict[str, None], limits: SchemaLimits, budget: Budget
) -> str:
    """Returns the grammar of the arguments that conform to a schema.

    Args:
        style: how arguments are written.
        schema: of the arguments.
        notes: gets the places that the grammar does not enforce.
        limits: bounds of the grammar.
        budget: spent by the compilation.

    Raises:
        Inexact: with the place and the reason.
    """
    try:
        resolver = resolver_of(
            schema, limits, budget, SchemaResolver if allows_undeclared(schema) else ClosedObjectResolver
        )
        compiler = Compiler(resolver, max_rules=limits.rules, max_states=limits.states, words=style.words)
        row, found = _write_row(style, resolver, compiler)
        text = compiler.printed(row, style.library)
    except TooLarge:
        raise Inexact("", "the patterns together need too many states") from None
    except RecursionError:
        raise Inexact("", "the schema refers to itself too deeply") from None
    check_printed(text, limits)
    notes.update(found)
    return text


def _write_row(
    style: CallStyle, resolver: SchemaResolver, compiler: Compiler
) -> tuple[Symbols, Mapping[str, None]]:
    """Returns the row of the arguments in their style, and the places that it does not enforce."""
    arguments, marks = style.arguments, style.marks
    match arguments:
        case JsonArguments():
            return compiler.value(lit(resolver.document.root), ("object",)), {}
        case TaggedArguments():
            writer: ArgumentWriter = TaggedWriter(resolver, compiler, marks, arguments)
        case KeywordArguments():
            writer = KeywordWriter(resolver, compiler, marks)
        case QuotedArguments():
            writer = QuotedWriter(resolver, compiler, marks, arguments)
        case NestedArguments():
            writer = NestedWriter(resolver, compiler, marks, arguments)
    return writer.write(), writer.notes
