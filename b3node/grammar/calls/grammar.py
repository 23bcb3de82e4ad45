"""Calls of an answer as one grammar: the dialect's markers around declared names and their arguments.

A call is written in two layers. The outer one is the dialect's: section, opening, name, closing, written from
`Calls` (`envelope`). The inner one is the arguments of one function, compiled by itself (`arguments`), so
that it can be kept from request to request, and renamed for the whole (`gbnf.rename`).

Decisions made here:

* Declared names only, as a trie, so that a hundred functions are one live stack for the engine.
* A call that the model may choose not to make (`auto` without an answer format) has a grammar that begins
  where the scanner finds the call (`parse.channels`): after the marker that opens it, or, where calls are
  bare, with the body. Every other grammar holds from the beginning of the answer.
* Other styles of a family are not required. But a model that has begun a call in one goes on in it
  (`begun_as`), in the first of those that begin so. Arguments that two of them write alike stand in the
  grammar once, and so do those of functions that take the same.
* At most `MAX_CALLS` calls in a row, so that no model calls forever.
* A grammar that would pass the engine's bounds gets smaller and never fails: the largest schemas are relaxed
  first, down to any object.
* Special tokens are token elements (`special_tokens`); a token that ends a generation ends the grammar and is
  not written.

It must not know a model's name, how the engine runs a grammar, or how a call is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final, NamedTuple

import msgspec

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.dialects.dialect import Calls, Dialect
from b3node.dialects.outline import ALSO, begun_as
from b3node.grammar.calls.arguments import CallStyle, Function, FunctionCompiler, Loosened, shares
from b3node.grammar.calls.envelope import ID_RULES, CallRules, opening_literal
from b3node.grammar.gbnf.rename import renamed
from b3node.grammar.gbnf.rules import Rules, Symbols, printed
from b3node.grammar.gbnf.special_tokens import NO_SPECIAL_TOKENS, SpecialTokens
from b3node.grammar.inexact import Inexact
from b3node.grammar.schema.limits import LIMITS, SchemaLimits, check_printed, refusal
from b3node.grammar.schema.relax import Loose

_ROOT: Final = "root"
MAX_CALLS: Final = 16
"""Calls of one answer: more than agents make, and an end for a model that repeats itself."""


class CallGrammar(msgspec.Struct, frozen=True):
    """Grammar of an answer that may or must call.

    A call in the dialect's `also[k]` is found the same way as one in its own style, and goes on with
    `begun_as(grammar, k)`, if no earlier style begins with the same marker: then that one is found.
    """

    grammar: str
    """The GBNF."""
    triggered: bool
    """Whether the grammar holds only from where a call was found.

    That is after the marker (section and the literal that a call's opening begins with), whose last white
    space may come first, or from a bare call's first character.
    """
    loosened: tuple[Loosened, ...] = ()
    """The places of schemas that the grammar does not enforce."""


class TextAnswer(msgspec.Struct, frozen=True):
    """Answer without calls, and where it begins."""

    grammar: str | None = None
    """The GBNF (start symbol `root`) of its text, None for free text."""
    inside: bool = False
    """Whether the prompt ends inside the text, where the dialect marks its beginning."""
    begun: str = ""
    """The end of the prompt, where that is the beginning of a marker (`>>>`)."""
    thinking: bool = False
    """Whether thinking may come before, so that line ends may stand in front of the answer."""


FREE_TEXT: Final = TextAnswer()
"""Answer of free text."""


def calls_gbnf(
    dialect: Dialect,
    tools: Sequence[FunctionTool],
    choice: ToolChoice,
    *,
    parallel: bool = True,
    answer: TextAnswer = FREE_TEXT,
    marks: SpecialTokens = NO_SPECIAL_TOKENS,
    known: MutableMapping[bytes, Loose] | None = None,
    limits: SchemaLimits = LIMITS,
) -> CallGrammar:
    """Returns the grammar of an answer to a request with functions.

    Args:
        dialect: how calls, thinking and answers are written; its `calls` are set.
        tools: the declared functions, at least one, names unique.
        choice: any mode but "none".
        parallel: whether several calls may follow one another.
        answer: the answer that may be written instead of calls, unless a call is forced.
        marks: the special tokens that exist in the vocabulary.
        known: grammars of single functions, of one vocabulary; read and added to, so that a later request is
            faster. The caller bounds it.
        limits: bounds of the whole and of each schema.

    Raises:
        Refusal: `invalid_request` at `tools[i].parameters`: a `strict` function's schema cannot be enforced
            exactly. At `text.format.schema`: the answer's grammar is so large that it leaves no room for any
            function.
        ValueError: no function can be called.
    """
    called = [(i, tool) for i, tool in enumerate(tools) if choice.name in {None, tool.name}]
    if dialect.calls is None or not called or choice.mode == "none":
        raise ValueError("there is nothing to call")
    optional = choice.mode == "auto"
    triggered = optional and answer.grammar is None
    cache: MutableMapping[bytes, Loose] = {} if known is None else known
    context = _AnswerContext(dialect, answer, optional, triggered, MAX_CALLS if parallel else 1)
    parts = []
    for styles in _group_styles(context, marks):
        compiler = FunctionCompiler(next(iter(styles.values())), cache, limits)
        parts.append(_StyleGroup(styles, compiler, compiler.functions(called)))
    return _within_bounds(context, parts, limits)


class _AnswerContext(msgspec.Struct, frozen=True):
    """The answer around the functions of a request: see `calls_gbnf`."""

    dialect: Dialect
    """As in `calls_gbnf`."""
    answer: TextAnswer
    """The answer without calls."""
    optional: bool
    """Whether the answer may be written without a call."""
    triggered: bool
    """As in `CallGrammar`."""
    max_calls: int
    """Calls that may follow one another."""


_CallStyles = dict[str, CallStyle]
"""Styles of calls, by the names of their start symbols."""


class _StyleGroup(NamedTuple):
    """Styles of calls that write arguments alike, and the functions, which are relaxed in place."""

    styles: _CallStyles
    compiler: FunctionCompiler
    functions: list[Function]


def _group_styles(context: _AnswerContext, marks: SpecialTokens) -> list[_CallStyles]:
    """Returns the styles that the grammar needs, grouped by the way they write arguments.

    The dialect's own style is in the first group.
    """
    own = context.dialect.calls
    if own is None:
        return []
    groups = [{_ROOT: CallStyle(own, marks)}]
    markers = {_marker(own)}
    for which, calls in enumerate(context.dialect.also if context.triggered else ()):
        style = CallStyle(calls, marks)
        if _marker(calls) in markers:
            continue
        markers.add(_marker(calls))
        if style.arguments == groups[0][_ROOT].arguments:
            groups[0][f"{ALSO}{which}"] = style
        else:
            groups.append({f"{ALSO}{which}": style})
    return groups


def _marker(calls: Calls) -> tuple[object, ...]:
    """Returns the text by which a call is found, up to white space."""
    return (calls.bare and calls.body, *calls.section.open.split(), *opening_literal(calls).split())


def _within_bounds(context: _AnswerContext, parts: list[_StyleGroup], limits: SchemaLimits) -> CallGrammar:
    """Returns the grammar, with the largest schemas relaxed until it is within the bounds.

    Raises:
        Refusal: `invalid_request` at `text.format.schema`: the answer's grammar leaves no room for any
            function.
    """
    relaxing = _relax_one_by_one(parts, limits)
    while _is_likely_too_large(context, parts, limits) and next(relaxing, False):
        pass
    while True:
        text = _print_all(context, parts, limits)
        try:
            check_printed(begun_as(text, len(context.dialect.also)) if context.triggered else text, limits)
        except Inexact as error:
            if not next(relaxing, False):
                raise refusal(error, "text.format.schema") from None
            continue
        loosened = dict.fromkeys(each for part in parts for one in part.functions for each in one.loosened)
        return CallGrammar(text, context.triggered, tuple(loosened))


def _is_likely_too_large(context: _AnswerContext, parts: list[_StyleGroup], limits: SchemaLimits) -> bool:
    """Returns True if the parts are likely to be too large together.

    The estimate saves writing them out in vain.
    """
    texts = [text for part in parts for text in _argument_symbols(part.functions)]
    if context.answer.grammar is not None:
        texts.append(context.answer.grammar)
    all_shares = [shares(text, limits) for text in texts]
    return any(sum(each) > 1 for each in zip(*all_shares, strict=True))


def _relax_one_by_one(parts: list[_StyleGroup], limits: SchemaLimits) -> Iterator[bool]:
    """Relaxes one function to any arguments at each step, the largest first; yields True after each."""
    places = [(part, at) for part in parts for at in range(len(part.functions))]
    places.sort(
        key=lambda place: max(shares(place[0].functions[place[1]].arguments.gbnf, limits)), reverse=True
    )
    for part, at in places:
        if part.functions[at].arguments.gbnf != part.compiler.anything.gbnf:
            part.functions[at] = part.functions[at].relaxed(part.compiler.anything)
            yield True


def _argument_symbols(functions: Sequence[Function]) -> dict[str, str]:
    """Returns the symbol of each grammar of arguments: functions with the same one share it."""
    symbols: dict[str, str] = {}
    for each in functions:
        symbols.setdefault(each.arguments.gbnf, f"t{each.index}")
    return symbols


def _print_all(context: _AnswerContext, parts: list[_StyleGroup], limits: SchemaLimits) -> str:
    """Returns the grammar with every style that it needs; it may pass the bounds."""
    out = ""
    for part in parts:
        shared: set[str] = set()
        for symbol, style in part.styles.items():
            text, library = _AnswerWriter(context, style, part.functions, limits).write()
            if symbol == _ROOT:
                shared = {line.partition(" ")[0] for line in text.splitlines()} & library.keys()
                out += text
            else:
                rules = renamed(text, symbol, shared)
                out += "".join(f"{name} ::= {body}\n" for name, body in rules.items())
    return out


class _AnswerWriter:
    """Writer of the grammar of one style.

    Args:
        context: the answer around the functions.
        style: of the calls.
        functions: those that may be called.
        limits: the bound of its rules.
    """

    def __init__(
        self, context: _AnswerContext, style: CallStyle, functions: Sequence[Function], limits: SchemaLimits
    ) -> None:
        self._context = context
        self._answer = context.answer
        self._style = style
        self._symbols = _argument_symbols(functions)
        self._rules = Rules(limits.rules)
        named = [(each.name, self._symbols[each.arguments.gbnf]) for each in functions]
        self._calls = CallRules(self._rules, style.calls, style.marks, named, context.max_calls)

    def write(self) -> tuple[str, dict[str, str]]:
        """Returns the GBNF, and the shared rules; those of them that it needs are part of the GBNF."""
        if self._context.triggered:
            row = self._calls.after_marker()
        else:
            row = (*self._lead(), self._rules.of(*self._choices()))
        table, library = self._rules.simplified(self._rules.of(row)), self._library()
        return printed(table or [], library), library

    def _library(self) -> dict[str, str]:
        """Returns the rules that the grammar may name next to its own."""
        shared = self._style.library
        out = {**shared, **ID_RULES}
        for gbnf, symbol in self._symbols.items():
            out |= renamed(gbnf, symbol, shared)
        return out if self._answer.grammar is None else out | renamed(self._answer.grammar, "answer")

    def _lead(self) -> Symbols:
        """Returns the beginning: line ends after thinking, and the markers between the parts of a turn."""
        blank: Symbols = (r"[\n]{0,2}",) if self._answer.thinking else ()
        skipped = [self._style.marks.row(text) for text in self._context.dialect.skipped]
        return (*blank, *(self._rules.of((), row) for row in skipped))

    def _choices(self) -> Iterator[Symbols]:
        """Yields the calls, and the answer that may be written instead."""
        calls = self._style.calls
        yield (*self._opening(calls.section.open + opening_literal(calls)), *self._calls.after_head())
        if self._context.optional:
            text = self._context.dialect.text if not self._answer.inside else None
            close = self._context.dialect.text.close if self._context.dialect.text else ""
            yield (*self._opening(text.open if text else ""), "answer", *self._style.marks.row(close))

    def _opening(self, marker: str) -> Symbols:
        """Returns a marker without the beginning that the prompt may have written.

        After thinking the marker may be written in full.
        """
        begun = self._answer.begun
        if not begun or not marker.startswith(begun):
            return self._style.marks.row(marker)
        rest = self._style.marks.row(marker[len(begun) :])
        return (self._rules.of((), self._style.marks.row(begun)), *rest) if self._answer.thinking else rest
