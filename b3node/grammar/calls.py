"""The calls of an answer as one grammar: the dialect's markers around declared names and their arguments.

A call is spelled in two layers. The outer one is the dialect's: section, opening, name, closing, written here from
`Calls`. The inner one is the arguments of one function, compiled by itself (`arguments`), so that it can be kept
from request to request, and put under a name of its own into the whole (`fragments`).

What is decided here:

* Declared names only, as a trie, so that a hundred functions are one live stack for the engine.
* A call that the model may choose not to make (`auto` without an answer format) has a grammar that begins behind the
  marker that opens it (`trigger`); everything else has one that holds from the beginning of the answer.
* At most `MOST_CALLS` calls in a row, so that no model calls forever.
* A grammar that would pass the engine's bounds gets smaller, never fails: the largest schemas are loosened first, down
  to any object.
* Special tokens are token elements (`marks`); what ends a generation ends the grammar and is not written.

It must not know a model's name, a request's path to the engine, or how a call is read back (`parse`).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final

import msgspec

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.dialects.dialect import Calls, Dialect, KeyedBody, NamedBody, ObjectBody
from b3node.grammar.arguments import Compilation, Function, Loosened, Spelling, anything, weight
from b3node.grammar.callrules import IDS, CallRules
from b3node.grammar.fragments import renamed
from b3node.grammar.freely import unlike
from b3node.grammar.front import LIMITS, Limits, check_printed, refusal
from b3node.grammar.loosening import Loose
from b3node.grammar.marks import NO_MARKS, Marks
from b3node.grammar.refusal import Inexact
from b3node.grammar.rules import Row, Rules, printed
from b3node.grammar.strings import escaped

MOST_CALLS: Final = 16
"""Calls of one answer: more than agents make, and an end for a model that repeats itself."""


class CallGrammar(msgspec.Struct, frozen=True):
    """The grammar of an answer that may or must call.

    With `triggered` it holds from behind the marker that opens the first call (`trigger`) and not before; white space
    at that marker's end may come once more, as a parser does not wait for it.
    """

    grammar: str
    triggered: bool
    loosened: tuple[Loosened, ...] = ()


def trigger(calls: Calls) -> str:
    """The marker behind which a triggered grammar begins: the text before the first call's body or first hole.

    Empty for `bare` calls, whose grammar always holds from the beginning.
    """
    return calls.section.open + head(calls)


def head(calls: Calls) -> str:
    """The literal that a call's opening begins with."""
    first = calls.open[0] if calls.open else ""
    return first if isinstance(first, str) else ""


class Answer(msgspec.Struct, frozen=True):
    """What an answer is that does not call, and where it begins.

    `grammar` is the GBNF (start symbol `root`) of its text, None for free text. `begun` says that the prompt ends inside
    the text, where the dialect marks its beginning; `thought` that a thought comes before, so that line ends may stand in
    front of whatever follows.
    """

    grammar: str | None = None
    begun: bool = False
    thought: bool = False


FREE: Final = Answer()
"""Free text."""


def calls_gbnf(
    dialect: Dialect,
    tools: Sequence[FunctionTool],
    choice: ToolChoice,
    *,
    parallel: bool = True,
    answer: Answer = FREE,
    marks: Marks = NO_MARKS,
    known: MutableMapping[bytes, Loose] | None = None,
    limits: Limits = LIMITS,
) -> CallGrammar:
    """The grammar of an answer of a request with functions.

    Args:
        dialect: how calls, thoughts and answers are spelled; its `calls` are set.
        tools: the declared functions, at least one, names unique.
        choice: any mode but "none".
        parallel: whether several calls may follow one another.
        answer: what may be written instead of calls, where nothing forces one.
        marks: the special tokens that exist in the vocabulary.
        known: grammars of single functions, of one vocabulary; read and added to, so that a later request is faster.
            Whoever gives it bounds it.
        limits: bounds of the whole and of each schema.

    Raises:
        Refusal: `invalid_request` at `tools[i].parameters`: a `strict` function's schema cannot be enforced exactly.
            At `text.format.schema`: the answer's grammar is so large that it leaves no room for any function.
        ValueError: there is nothing to call.
    """
    calls = dialect.calls
    called = [(i, tool) for i, tool in enumerate(tools) if choice.name in {None, tool.name}]
    if calls is None or not called or choice.mode == "none":
        raise ValueError("there is nothing to call")
    spelling = Spelling(calls, marks)
    compilation = Compilation(spelling, {} if known is None else known, limits)
    functions = [compilation.function(i, tool) for i, tool in called]
    frame = _Frame(dialect, choice.mode == "auto", MOST_CALLS if parallel else 1, answer)
    return _fitted(frame, spelling, functions, limits)


class _Frame(msgspec.Struct, frozen=True):
    """What stands around the functions of a request: see `calls_gbnf`."""

    dialect: Dialect
    optional: bool
    most: int
    answer: Answer


def _fitted(frame: _Frame, spelling: Spelling, functions: list[Function], limits: Limits) -> CallGrammar:
    """The grammar, with the largest schemas given up until it is within the bounds.

    Raises:
        Refusal: `invalid_request` at `text.format.schema`: the answer's grammar leaves no room for any function.
    """
    plain = Loose(anything(limits), ("#",))
    while True:
        written = _Writer(frame, spelling, functions, limits)
        text = written.text()
        try:
            check_printed(text, limits)
        except Inexact as error:
            largest = max(functions, key=lambda each: weight(each.arguments.gbnf, limits))
            if largest.arguments.gbnf == plain.gbnf:
                raise refusal(error, "text.format.schema") from None
            functions = [each.given_up(plain) if each is largest else each for each in functions]
            continue
        loosened = tuple(each for one in functions for each in one.loosened)
        return CallGrammar(text, written.triggered, loosened)


class _Writer:
    """The writer of one whole grammar.

    Args:
        frame: what stands around the functions.
        spelling: the dialect's, with calls.
        functions: those that may be called.
    """

    def __init__(
        self, frame: _Frame, spelling: Spelling, functions: Sequence[Function], limits: Limits
    ) -> None:
        self._frame = frame
        self._spelling = spelling
        self._functions = functions
        self._rules = Rules(limits.rules)
        named = [(each.name, f"t{each.index}") for each in functions]
        self._calls = CallRules(self._rules, spelling.calls, spelling.marks, named, frame.most)
        self.triggered: Final = frame.optional and frame.answer.grammar is None and not spelling.calls.bare

    def text(self) -> str:
        """The GBNF."""
        if self.triggered:
            row = self._calls.behind(head(self._spelling.calls))
        else:
            row = (*self._lead(), self._rules.of(*self._choices()))
        table = self._rules.cleaned(self._rules.of(row))
        return printed(table or [], self._library())

    def _library(self) -> dict[str, str]:
        shared = self._spelling.library
        out = {**shared, **IDS}
        for each in self._functions:
            out |= renamed(each.arguments.gbnf, f"t{each.index}", shared)
        return (
            out if self._frame.answer.grammar is None else out | renamed(self._frame.answer.grammar, "answer")
        )

    def _lead(self) -> Row:
        """What may stand in front: line ends behind a thought, and the markers between the parts of a turn."""
        blank: Row = (r"[\n]{0,2}",) if self._frame.answer.thought else ()
        skipped = [self._spelling.marks.row(text) for text in self._frame.dialect.skipped]
        return (*blank, *(self._rules.of((), row) for row in skipped))

    def _choices(self) -> Iterator[Row]:
        """Calls, and what may be written instead."""
        yield self._calls.whole()
        if not self._frame.optional:
            return
        if self._frame.answer.grammar is None:
            yield unlike(self._rules, list(beginnings(self._spelling.calls, self._functions)))
            return
        text = self._frame.dialect.text
        opening = self._spelling.marks.row(text.open) if text and not self._frame.answer.begun else ()
        yield (*opening, "answer", *(self._spelling.marks.row(text.close) if text else ()))


def beginnings(calls: Calls, functions: Sequence[Function]) -> Iterator[str]:
    """The texts that a call without a marker begins with, as far as nobody's free text would."""
    front, body = trigger(calls), calls.body
    if isinstance(body, ObjectBody):
        yield f'{front}{{"{body.before or body.name}"'
        return
    for each in functions:
        if isinstance(body, KeyedBody):
            yield f'{front}{{"{escaped(each.name)}"'
        elif isinstance(body, NamedBody):
            first = body.between[0] if body.between else ""
            yield front + each.name + (first if isinstance(first, str) else "")
