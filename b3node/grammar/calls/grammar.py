"""The calls of an answer as one grammar: the dialect's markers around declared names and their arguments.

A call is spelled in two layers. The outer one is the dialect's: section, opening, name, closing, written from `Calls`
(`callrules`). The inner one is the arguments of one function, compiled by itself (`arguments`), so that it can be kept
from request to request, and put under a name of its own into the whole (`fragments`).

What is decided here:

* Declared names only, as a trie, so that a hundred functions are one live stack for the engine.
* A call that the model may choose not to make (`auto` without an answer format) has a grammar that begins where the
  scanner hands the call over (`parse.channels`): behind the marker that opens it, or, where calls are bare, with the
  body. Everything else has one that holds from the beginning of the answer.
* A family's other spellings are not asked for; but a model that has begun a call in one goes on in it (`begun_as`), in
  the first of those that begin so. Arguments that two of them spell alike stand there once.
* At most `MOST_CALLS` calls in a row, so that no model calls forever.
* A grammar that would pass the engine's bounds gets smaller and never fails: the largest schemas are given up first,
  down to any object.
* Special tokens are token elements (`marks`); what ends a generation ends the grammar and is not written.

It must not know a model's name, how the engine runs a grammar, or how a call is read back.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Final, NamedTuple

import msgspec

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.dialects.dialect import Calls, Dialect
from b3node.dialects.outline import ALSO, begun_as
from b3node.grammar.calls.arguments import Compilation, Function, Loosened, Spelling, anything
from b3node.grammar.calls.envelope import IDS, CallRules, head
from b3node.grammar.gbnf.rename import renamed
from b3node.grammar.gbnf.rules import Row, Rules, printed
from b3node.grammar.gbnf.special_tokens import NO_MARKS, Marks
from b3node.grammar.inexact import Inexact
from b3node.grammar.schema.limits import LIMITS, Limits, check_printed, refusal
from b3node.grammar.schema.relax import Loose

_ROOT: Final = "root"
MOST_CALLS: Final = 16
"""Calls of one answer: more than agents make, and an end for a model that repeats itself."""


class CallGrammar(msgspec.Struct, frozen=True):
    """The grammar of an answer that may or must call.

    With `triggered` it holds from where a call was found and not before: behind the marker (section and the literal
    that a call's opening begins with), whose last white space may come first, or from a bare call's first character.
    A call in the dialect's `also[k]` is found the same way, and goes on with `begun_as(grammar, k)`, if none before it
    begins with the same marker: then that one is found.
    """

    grammar: str
    triggered: bool
    loosened: tuple[Loosened, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What an answer is that does not call, and where it begins.

    `grammar` is the GBNF (start symbol `root`) of its text, None for free text. `inside` says that the prompt ends inside
    the text, where the dialect marks its beginning; `begun` is the end of the prompt where that is the beginning of a
    marker (`>>>`); `thought` says that a thought may come before, so that line ends may stand in front of what follows.
    """

    grammar: str | None = None
    inside: bool = False
    begun: str = ""
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
    called = [(i, tool) for i, tool in enumerate(tools) if choice.name in {None, tool.name}]
    if dialect.calls is None or not called or choice.mode == "none":
        raise ValueError("there is nothing to call")
    optional = choice.mode == "auto"
    triggered = optional and answer.grammar is None
    cache: MutableMapping[bytes, Loose] = {} if known is None else known
    frame = _Frame(dialect, answer, optional, triggered, MOST_CALLS if parallel else 1)
    parts = [
        _Part(spellings, Compilation(next(iter(spellings.values())), cache, limits).functions(called))
        for spellings in _grouped(frame, marks)
    ]
    return _fitted(frame, parts, limits)


class _Frame(msgspec.Struct, frozen=True):
    """What stands around the functions of a request: see `calls_gbnf`."""

    dialect: Dialect
    answer: Answer
    optional: bool
    triggered: bool
    most: int


_Spellings = dict[str, Spelling]
"""Spellings of calls, by the names of their start symbols."""


class _Part(NamedTuple):
    """Spellings of calls that spell arguments alike, and the functions, of which the largest are given up in place."""

    spellings: _Spellings
    functions: list[Function]


def _grouped(frame: _Frame, marks: Marks) -> list[_Spellings]:
    """The spellings that the grammar needs, those together whose arguments are spelled like the dialect's own."""
    own = frame.dialect.calls
    if own is None:
        return []
    groups = [{_ROOT: Spelling(own, marks)}]
    markers = {_marker(own)}
    for which, calls in enumerate(frame.dialect.also if frame.triggered else ()):
        spelling = Spelling(calls, marks)
        if _marker(calls) in markers:
            continue
        markers.add(_marker(calls))
        if spelling.arguments == groups[0][_ROOT].arguments:
            groups[0][f"{ALSO}{which}"] = spelling
        else:
            groups.append({f"{ALSO}{which}": spelling})
    return groups


def _marker(calls: Calls) -> tuple[object, ...]:
    """What a call is found by, up to white space."""
    return (calls.bare and calls.body, *calls.section.open.split(), *head(calls).split())


def _fitted(frame: _Frame, parts: list[_Part], limits: Limits) -> CallGrammar:
    """The grammar, with the largest schemas given up until it is within the bounds.

    Raises:
        Refusal: `invalid_request` at `text.format.schema`: the answer's grammar leaves no room for any function.
    """
    while _is_heavy(frame, parts, limits) and _give_up(parts, limits):
        pass
    while True:
        text = _whole(frame, parts, limits)
        try:
            check_printed(begun_as(text, len(frame.dialect.also)) if frame.triggered else text, limits)
        except Inexact as error:
            if not _give_up(parts, limits):
                raise refusal(error, "text.format.schema") from None
            continue
        loosened = dict.fromkeys(each for part in parts for one in part.functions for each in one.loosened)
        return CallGrammar(text, frame.triggered, tuple(loosened))


def _is_heavy(frame: _Frame, parts: list[_Part], limits: Limits) -> bool:
    """Whether the parts are likely to be too much together; a look that saves writing them out in vain."""
    weights = [one.weight(limits) for part in parts for one in part.functions]
    if frame.answer.grammar is not None:
        weights.append(Function(0, "", Loose(frame.answer.grammar, ())).weight(limits))
    return any(sum(shares) > 1 for shares in zip(*weights, strict=True))


def _give_up(parts: list[_Part], limits: Limits) -> bool:
    """Lets the largest function of all take any arguments; False if that makes nothing smaller."""
    part, at = max(
        ((part, at) for part in parts for at in range(len(part.functions))),
        key=lambda place: max(place[0].functions[place[1]].weight(limits)),
    )
    before = part.functions[at]
    spelling = next(iter(part.spellings.values()))
    part.functions[at] = after = before.given_up(Loose(anything(spelling, limits), ("#",)))
    return after.weight(limits) < before.weight(limits)


def _whole(frame: _Frame, parts: list[_Part], limits: Limits) -> str:
    """The grammar with every spelling that it needs, bounds or not."""
    out = ""
    for part in parts:
        shared: set[str] = set()
        for symbol, spelling in part.spellings.items():
            text, library = _Writer(frame, spelling, part.functions, limits).written()
            if symbol == _ROOT:
                shared = {line.partition(" ")[0] for line in text.splitlines()} & library.keys()
                out += text
            else:
                rules = renamed(text, symbol, shared)
                out += "".join(f"{name} ::= {body}\n" for name, body in rules.items())
    return out


class _Writer:
    """The writer of the grammar of one spelling.

    Args:
        frame: what stands around the functions.
        spelling: of the calls.
        functions: those that may be called.
        limits: the bound of its rules.
    """

    def __init__(
        self, frame: _Frame, spelling: Spelling, functions: Sequence[Function], limits: Limits
    ) -> None:
        self._frame = frame
        self._answer = frame.answer
        self._spelling = spelling
        self._functions = functions
        self._rules = Rules(limits.rules)
        named = [(each.name, f"t{each.index}") for each in functions]
        self._calls = CallRules(self._rules, spelling.calls, spelling.marks, named, frame.most)

    def written(self) -> tuple[str, dict[str, str]]:
        """The GBNF, and the rules of which it has those that it needs beside its own."""
        if self._frame.triggered:
            row = self._calls.behind_marker()
        else:
            row = (*self._lead(), self._rules.of(*self._choices()))
        table, library = self._rules.cleaned(self._rules.of(row)), self._library()
        return printed(table or [], library), library

    def _library(self) -> dict[str, str]:
        shared = self._spelling.library
        out = {**shared, **IDS}
        for each in self._functions:
            out |= renamed(each.arguments.gbnf, f"t{each.index}", shared)
        return out if self._answer.grammar is None else out | renamed(self._answer.grammar, "answer")

    def _lead(self) -> Row:
        """What may stand in front: line ends behind a thought, and the markers between the parts of a turn."""
        blank: Row = (r"[\n]{0,2}",) if self._answer.thought else ()
        skipped = [self._spelling.marks.row(text) for text in self._frame.dialect.skipped]
        return (*blank, *(self._rules.of((), row) for row in skipped))

    def _choices(self) -> Iterator[Row]:
        """Calls, and what may be written instead."""
        calls = self._spelling.calls
        yield (*self._opening(calls.section.open + head(calls)), *self._calls.behind_head())
        if self._frame.optional:
            text = self._frame.dialect.text if not self._answer.inside else None
            close = self._frame.dialect.text.close if self._frame.dialect.text else ""
            yield (*self._opening(text.open if text else ""), "answer", *self._spelling.marks.row(close))

    def _opening(self, marker: str) -> Row:
        """A marker, of which the prompt may have written the beginning; behind a thought it is written in full."""
        begun = self._answer.begun
        if not begun or not marker.startswith(begun):
            return self._spelling.marks.row(marker)
        rest = self._spelling.marks.row(marker[len(begun) :])
        return (self._rules.of((), self._spelling.marks.row(begun)), *rest) if self._answer.thought else rest
