"""Outer layer of calls as rules: section, opening, name and closing.

The arguments inside are rules made elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from b3node.dialects.dialect import Calls, Hole, KeyedBody, NamedBody, ObjectBody, Pattern
from b3node.dialects.outline import CALL_TYPE
from b3node.grammar.gbnf.rules import Rules, Symbols, Times
from b3node.grammar.gbnf.special_tokens import SpecialTokens
from b3node.grammar.gbnf.strings import QUOTE, escaped, literal
from b3node.grammar.gbnf.trie import Entry, trie

ID_RULES: Final = {
    "call-id": "[a-zA-Z0-9]{9}",
    "short-id": "[a-zA-Z0-9]{1,9}",
    "call-index": "[0-9] | [1-9] [0-9]",
}
"""Rules of ids and indices, which are filled in and not kept.

Mistral's ids have exactly nine letters or digits; Cohere's count from 0.
"""
_MAX_INDEXED_NAMES: Final = 256
"""Names times calls up to which indices after a name count up; with more any index may stand there."""
_COMMA: Final[Symbols] = ('","', "ws")
_BLANK: Final = r"[ \t\n\r]*"


class CallRules:
    """Writer of the calls of one answer.

    Args:
        rules: the rules that are added to.
        calls: the style of the dialect.
        marks: its special tokens.
        functions: the names that may be called, each with the symbol of its arguments.
        max_calls: calls that may follow one another.
    """

    def __init__(
        self,
        rules: Rules,
        calls: Calls,
        marks: SpecialTokens,
        functions: Sequence[tuple[str, str]],
        max_calls: int,
    ) -> None:
        self._rules = rules
        self._calls = calls
        self._marks = marks
        self._functions = functions
        self._max_calls = 1 if calls.alone or marks.is_end(calls.close) else max_calls

    def after_head(self) -> Symbols:
        """Returns all calls, after the section's beginning and the opening's first literal."""
        opening = self._calls.open
        return self._sequence(opening[1:] if opening_literal(self._calls) else opening)

    def after_marker(self) -> Symbols:
        """Returns all calls, after a marker that was found without the white space at its end.

        A bare call is found by the beginning of its body, as the model wrote it.
        """
        if self._calls.bare:
            return self._sequence((), begun=True)
        marker = self._calls.section.open + opening_literal(self._calls)
        blank = marker[len(marker.rstrip()) :]
        again: Symbols = (self._rules.of((), (literal(blank),)),) if blank else ()
        return (*again, *self.after_head())

    def _sequence(self, opening: Pattern, *, begun: bool = False) -> Symbols:
        """Returns the calls and the section's end.

        The first call is opened by `opening`, or `begun` by a model.
        """
        end = self._marks.row(self._calls.section.close)
        if not self._counts_indices():
            rest = Times(
                self._rules.of((*self._between(), *self._call(self._calls.open, None))),
                0,
                self._max_calls - 1,
            )
            return (*self._call(opening, None, begun=begun), *((rest,) if self._max_calls > 1 else ()), *end)
        after: Symbols = end
        for index in range(self._max_calls - 1, 0, -1):
            more = (*self._between(), *self._call(self._calls.open, index), *after)
            after = (self._rules.of(end, more),)
        return (*self._call(opening, 0, begun=begun), *after)

    def _counts_indices(self) -> bool:
        """Returns True if each call is written with its own index."""
        if _has_index(self._calls.open):
            return True
        body = self._calls.body
        after_name = isinstance(body, NamedBody) and _has_index(body.between)
        return after_name and self._max_calls * len(self._functions) <= _MAX_INDEXED_NAMES

    def _between(self) -> Symbols:
        return self._marks.row(self._calls.between)

    def _call(self, opening: Pattern, index: int | None, *, begun: bool = False) -> Symbols:
        body = self._body(index, begun=begun)
        return (*self._pattern(opening, index), *body, *self._marks.row(self._calls.close))

    def _pattern(self, pattern: Pattern, index: int | None) -> Symbols:
        return tuple(symbol for part in pattern for symbol in self._part(part, index))

    def _part(self, part: str | Hole, index: int | None) -> Symbols:
        if isinstance(part, str):
            return self._marks.row(part)
        if part.kind == "id":
            return ("call-id",)
        return ("call-index",) if index is None else (literal(str(part.first + index)),)

    # ---------------------------------------------------------------------------------- bodies
    def _body(self, index: int | None, *, begun: bool) -> Symbols:
        body = self._calls.body
        if isinstance(body, ObjectBody):
            return self._object(body, begun=begun)
        if isinstance(body, KeyedBody):
            blank = (_BLANK,) if begun else ()
            return ('"{"', *blank, *self._named(lambda symbol: ('":"', "ws", symbol, '"}"')))
        between = self._pattern(body.between, index)
        return self._names(lambda symbol: (*between, symbol), str)

    def _object(self, body: ObjectBody, *, begun: bool) -> Symbols:
        first = self._begun if begun else _member
        before: Symbols = (*first(body.before), QUOTE, "short-id", QUOTE, *_COMMA) if body.before else ()
        after: Symbols = (*_COMMA, *_member(body.after), QUOTE, "call-id", QUOTE) if body.after else ()
        arguments = (*_COMMA, *_member(body.arguments))
        names = self._named(lambda symbol: (*arguments, symbol))
        name = _member(body.name) if before else first(body.name)
        return ('"{"', *before, *name, *names, *after, '"}"')

    def _begun(self, name: str) -> Symbols:
        """Returns a first member's name up to its value.

        The white space, and the member before it, are the model's own.
        """
        key, value = (QUOTE + literal(word) + QUOTE for word in CALL_TYPE)
        leading = self._rules.of((), (_BLANK, key, _BLANK, '":"', _BLANK, value, _BLANK, '","'))
        return (leading, _BLANK, literal('"' + escaped(name) + '"'), _BLANK, '":"', _BLANK)

    def _named(self, then: Callable[[str], Symbols]) -> Symbols:
        """Returns a name as a JSON string, and the row after it."""
        return (QUOTE, *self._names(lambda symbol: (QUOTE, *then(symbol)), escaped))

    def _names(self, then: Callable[[str], Symbols], escape: Callable[[str], str]) -> Symbols:
        """Returns the names as a trie, each with the row after it."""
        entries: list[Entry] = [(escape(name), then(symbol)) for name, symbol in self._functions]
        return trie(self._rules, entries)


def opening_literal(calls: Calls) -> str:
    """Returns the literal that a call's opening begins with."""
    first = calls.open[0] if calls.open else ""
    return first if isinstance(first, str) else ""


def _has_index(pattern: Pattern) -> bool:
    """Returns True if the pattern has a hole for an index."""
    return any(isinstance(part, Hole) and part.kind == "index" for part in pattern)


def _member(name: str) -> Symbols:
    """Returns a member's name, up to its value."""
    return (literal('"' + escaped(name) + '":'), "ws")
