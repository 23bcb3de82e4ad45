"""The arguments of one function as a grammar: exact where that is possible, loosened and said so where not.

A call's arguments are a JSON object, whatever the schema allows beside it. A schema that nothing can satisfy, or that is
none, takes no request down: then any object may be written, and whoever judges the finished arguments says no.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
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
from b3node.grammar.calls.argument_style import Spelled
from b3node.grammar.calls.argument_styles import Keyword, Nested, Quoted, Tagged
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
from b3node.grammar.gbnf.rules import Row
from b3node.grammar.gbnf.special_tokens import Marks
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import TooLarge
from b3node.grammar.schema.budget import Budget
from b3node.grammar.schema.limits import Limits, check_printed, refusal, repeats
from b3node.grammar.schema.relax import Loose, loosened

NO_ARGUMENTS: Final[dict[str, object]] = {"type": "object", "additionalProperties": False}
"""What a function takes that declares no parameters."""
ANY: Final[dict[str, object]] = {"type": "object"}
SHARE: Final = 4
"""One function may take this part of the steps of a request."""
PER_STEP: Final = 4
"""Bytes of schema and of grammar that count as a step: reading and printing are work too."""
NOT_ENFORCED: Final = "this is not enforced while a call is written"
UNSPELLABLE: Final = "the model's way of writing calls cannot be kept to this"
_LONGER: Final = 1.2
"""Bytes of a part with names of its own, for each byte of the grammar that it was."""
TOO_MUCH: Final = "the functions of this request take too long to compile, so any arguments may be written"
TOO_LARGE: Final = "together with the other functions it is too large, so any arguments may be written"


class Spelling(msgspec.Struct, frozen=True):
    """How the calls of a dialect are written, and the special tokens that this takes."""

    calls: Calls
    marks: Marks

    @property
    def arguments(self) -> Arguments:
        """How arguments are written."""
        body = self.calls.body
        return body.arguments if isinstance(body, NamedBody) else JsonArguments()

    @property
    def words(self) -> Mapping[str, str]:
        """How true, false and null are written."""
        arguments = self.arguments
        python = isinstance(arguments, TaggedArguments) and arguments.python
        return PYTHON_WORDS if python or isinstance(arguments, KeywordArguments) else JSON_WORDS

    @property
    def library(self) -> Mapping[str, str]:
        """The rules that all grammars of arguments share, by name."""
        rules = library.json_rules()
        return (
            rules if self.words is JSON_WORDS else {**rules, "value": _respelled(rules["value"], self.words)}
        )


def _respelled(body: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        body = body.replace(f'"{word}"', f'"{other}"')
    return body


class Loosened(msgspec.Struct, frozen=True):
    """A place of a function's schema that the grammar does not enforce.

    `param` is the request's path of the schema (`tools[1].parameters`), `place` a JSON pointer in it
    (`#/properties/to/pattern`, its last part the keyword; `#` for all of it), `why` words for people.
    """

    param: str
    place: str
    why: str = NOT_ENFORCED

    def __str__(self) -> str:
        return f"{self.param}{self.place}: {self.why}"


class Function(msgspec.Struct, frozen=True):
    """A function that may be called: its place in the request, its name, the grammar of its arguments."""

    index: int
    name: str
    arguments: Loose
    why: str = NOT_ENFORCED

    @property
    def loosened(self) -> list[Loosened]:
        """What its grammar does not enforce."""
        return [
            Loosened(f"tools[{self.index}].parameters", place, self.why) for place in self.arguments.loosened
        ]

    def given_up(self, plain: Loose) -> Function:
        """The function with any arguments, because the whole would be too large."""
        return Function(self.index, self.name, plain, TOO_LARGE)

    def weight(self, limits: Limits) -> tuple[float, float, float]:
        """How much of each bound of a whole grammar its part will take; names get longer there."""
        gbnf = self.arguments.gbnf
        return (
            len(gbnf) * _LONGER / limits.grammar_bytes,
            gbnf.count("\n") / limits.printed_rules,
            repeats(gbnf) / limits.repeats,
        )


class Compilation:
    """The compilation of the functions of one request, under one budget of steps.

    Args:
        spelling: how arguments are written.
        known: results of earlier requests.
        limits: bounds of each schema, and of the steps.
    """

    def __init__(self, spelling: Spelling, known: MutableMapping[bytes, Loose], limits: Limits) -> None:
        self._spelling = spelling
        self._known = known
        self._limits = limits
        self._left = limits.steps

    def functions(self, tools: Sequence[tuple[int, FunctionTool]]) -> list[Function]:
        """Functions of the request, by their places in it, ready to be called.

        The smallest are compiled first; where the steps do not suffice for all, the largest may get any arguments.

        Raises:
            Refusal: `invalid_request` at `tools[i].parameters`: one is `strict`, and cannot be enforced exactly.
        """
        encoded = [msgspec.json.encode(tool.parameters) for _, tool in tools]
        found: dict[int, Function] = {}
        for _, place in sorted((len(text), place) for place, text in enumerate(encoded)):
            found[place] = self._function(*tools[place], encoded[place])
        return [found[place] for place in range(len(tools))]

    def _function(self, index: int, tool: FunctionTool, schema: bytes) -> Function:
        # Members in the client's order: it is the order in which a call's are written.
        key = msgspec.json.encode((bool(tool.strict), self._spelling.arguments)) + schema
        known = self._known.get(key)
        if known is not None:
            return Function(index, tool.name, known)
        if self._left < len(schema) // PER_STEP and not tool.strict:
            return Function(index, tool.name, Loose(anything(self._spelling, self._limits), ("#",)), TOO_MUCH)
        self._left -= len(schema) // PER_STEP
        enough = self._left >= self._limits.steps // SHARE
        found = self._compiled(index, tool)
        if enough:
            self._known[key] = found
        return Function(index, tool.name, found)

    def _compiled(self, index: int, tool: FunctionTool) -> Loose:
        schema = tool.parameters
        if schema is None or declares_no_members(schema):
            schema = NO_ARGUMENTS
        if not tool.strict:
            return self._loosely(schema)
        try:
            return self._exactly(schema)
        except Inexact as error:
            raise refusal(error, f"tools[{index}].parameters") from None

    def _exactly(self, schema: object) -> Loose:
        notes: dict[str, None] = {}
        text = self._written(schema, notes)
        if notes:
            raise Inexact(next(iter(notes)).removeprefix("#"), UNSPELLABLE)
        return Loose(text, ())

    def _loosely(self, schema: object) -> Loose:
        notes: dict[str, None] = {}

        def write(narrower: object) -> str:
            notes.clear()
            return self._written(narrower, notes)

        try:
            found = loosened(schema, write)
        except Inexact:
            return Loose(anything(self._spelling, self._limits), ("#",))
        return Loose(found.gbnf, tuple(dict.fromkeys((*found.loosened, *notes))))

    def _written(self, schema: object, notes: dict[str, None]) -> str:
        """The grammar of a schema, on account of all steps. Raises `Inexact`."""
        budget = Budget(max(0, min(self._left, self._limits.steps // SHARE)))
        before = budget.left
        try:
            text = written(self._spelling, schema, notes, self._limits, budget)
        finally:
            self._left -= before - max(budget.left, 0)
        self._left -= len(text) // PER_STEP
        return text


def anything(spelling: Spelling, limits: Limits) -> str:
    """The grammar of any arguments."""
    return written(spelling, ANY, {}, limits, Budget(limits.steps))


def written(
    spelling: Spelling, schema: object, notes: dict[str, None], limits: Limits, budget: Budget
) -> str:
    """The grammar of the arguments that conform to a schema, but for the places that `notes` gets.

    Raises:
        Inexact: with the place and the reason.
    """
    try:
        resolver = resolver_of(
            schema, limits, budget, SchemaResolver if allows_undeclared(schema) else ClosedObjectResolver
        )
        compiler = Compiler(resolver, max_rules=limits.rules, max_states=limits.states, words=spelling.words)
        row, found = _row(spelling, resolver, compiler)
        text = compiler.printed(row, spelling.library)
    except TooLarge:
        raise Inexact("", "the patterns together need too many states") from None
    except RecursionError:
        raise Inexact("", "the schema refers to itself too deeply") from None
    check_printed(text, limits)
    notes.update(found)
    return text


def _row(spelling: Spelling, resolver: SchemaResolver, compiler: Compiler) -> tuple[Row, Mapping[str, None]]:
    """The arguments in their spelling, and the places that it does not hold to."""
    arguments, marks = spelling.arguments, spelling.marks
    match arguments:
        case JsonArguments():
            return compiler.value(lit(resolver.document.root), ("object",)), {}
        case TaggedArguments():
            writer: Spelled = Tagged(resolver, compiler, marks, arguments)
        case KeywordArguments():
            writer = Keyword(resolver, compiler, marks)
        case QuotedArguments():
            writer = Quoted(resolver, compiler, marks, arguments)
        case NestedArguments():
            writer = Nested(resolver, compiler, marks, arguments)
    return writer.whole(), writer.notes
