r"""The spelling of calls in a template, read off its output.

The template writes one call with a text and a number, and three calls in a row; the text around the known
words shows the spelling. Cut at the words, a turn of calls is

    BEFORE name TO_KEY key TO_VALUE value AFTER name TO_KEY key ... value END

and each kind of body and of arguments leaves its own traces in these: `{"` before a key and `":"` after it is
JSON, a key that comes again after the value is an element named after it, and so on. Ids and indices, which
differ from call to call, become holes. A spelling that fits no kind is not guessed: there is no dialect then.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from b3node.dialects.dialect import (
    Arguments,
    Body,
    Calls,
    Hole,
    JsonArguments,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    Pattern,
    QuotedArguments,
    Span,
    TaggedArguments,
    TypeMark,
)
from b3node.prompt.probe.literals import common_head, markers, split_literal
from b3node.prompt.probe.samples import ANSWER, KEY, NAME, NUMBER, NUMBER_KEY, VALUE, Samples

_ID, _INDEX = "\ue000", "\ue001"
"""Placeholders of holes in literals."""
_IDS: Final = re.compile(r"call0000\d")
_CALL: Final = re.compile(f"(.*?){NAME}(.*?){KEY}(.*?){VALUE}", re.DOTALL)
_OBJECT: Final = re.compile(
    rf'\{{\s*(?:"(?P<id>\w+)"\s*:\s*"?[{_ID}{_INDEX}]"?\s*,\s*)?"(?P<name>\w+)"\s*:\s*"\Z'
)
_KEYED: Final = re.compile(r'\{\s*"\Z')
_ARGUMENTS: Final = re.compile(r'"\s*,\s*"(\w+)"\s*:\s*')
_OBJECT_END: Final = rf'(?:\s*,\s*"(?P<id>\w+)"\s*:\s*"?[{_ID}{_INDEX}]"?)?\s*\}}'
_NOTHING: Final = re.compile(r"\Z(?!)")


class _Pieces(msgspec.Struct, frozen=True):
    """Literals of a turn of calls, with placeholders for holes."""

    before: str
    """Before the first name."""
    to_key: str
    """Between a name and its first argument's name."""
    to_value: str
    """Between that and its value, a text."""
    middle: str | None
    """Between the last value of a call and the name of the next; None if there is one call at most."""
    end: str
    """After the last value."""
    to_number_key: str
    """Between the text and the second argument's name."""
    to_number: str
    """Between that and its value, a number."""
    first: int
    """The first index, if there are indices."""


_TYPE_MARKS: Final[tuple[tuple[TypeMark, str, tuple[str, ...]], ...]] = (
    ("flag", "true", ("false",)),
    ("type", "string", ("number", "integer")),
)
"""Marks of a value's type, each with its text for a string and its texts for a number."""


def read_call_format(samples: Samples, thinking: Span | None) -> Calls | None:
    """Returns the spelling of calls in a template; None if it writes none, or in no kind that is known here.

    Args:
        samples: the template's.
        thinking: its markers of thinking: some templates write an empty span before a call.
    """
    pieces = _pieces(samples, thinking)
    found = _body(pieces, samples) if pieces else None
    if pieces is None or found is None:
        return None
    body, opener, closer = found
    before, end = opener.sub("", pieces.before), closer.sub("", pieces.end)
    if pieces.middle is None:
        return Calls(body, open=_pattern(before, pieces.first), close=end, bare=not before, alone=True)
    parts = split_literal(before, opener.sub("", closer.sub("", pieces.middle)), end)
    opening = before[: len(before) - len(parts.open)]
    return Calls(
        body,
        Span(opening, end[len(parts.close) :]) if opening.strip() else Span("", ""),
        _pattern(parts.open, pieces.first),
        parts.close,
        parts.between,
    )


def _pattern(literal: str, first: int) -> Pattern:
    """Returns a literal with placeholders as a pattern."""
    holes = {_ID: Hole("id"), _INDEX: Hole("index", first)}
    return tuple(holes.get(part, part) for part in re.split(f"([{_ID}{_INDEX}])", literal) if part)


# ----------------------------------------------------------------------------------------------- the cuts


def _pieces(samples: Samples, thinking: Span | None) -> _Pieces | None:
    one = _turn(samples, thinking, {KEY: VALUE, NUMBER_KEY: NUMBER})
    count = 3 if samples.capabilities.parallel else 1
    many = _turn(samples, thinking, *(dict[str, object]({KEY: VALUE}) for _ in range(count)))
    number = re.search(f"{VALUE}(.*?){NUMBER_KEY}(.*?){NUMBER}", one, re.DOTALL)
    calls = [_restated(*found.groups()) for found in _CALL.finditer(many)]
    if number is None or len(calls) != count:
        return None
    _, _, end = many.rpartition(VALUE)
    fronts, to_keys, to_values = zip(*calls, strict=True)
    (before, first), (to_key, also_first) = _numbered(fronts), _numbered(to_keys)
    middle = _numbered(fronts[1:])[0] if count > 1 else None
    return _Pieces(before, to_key, to_values[0], middle, end, number[1], number[2], first or also_first)


def _turn(samples: Samples, thinking: Span | None, *arguments: dict[str, object]) -> str:
    """Returns a turn of calls without the frame of the turn and without empty thinking."""
    written = samples.calls(*arguments)
    answers = samples.answer(), samples.answer_and_more()
    head = common_head(answers[0], written)
    frame = [*markers(head), *(end for answer in answers for end in _ends(answer.partition(ANSWER)[2]))]
    body = _IDS.sub(_ID, written[len(head) :])
    if thinking:
        body = re.sub(rf"\A\s*{re.escape(thinking.open)}\s*{re.escape(thinking.close)}", "", body)
    last = max(body.rfind(str(NUMBER)), body.rfind(VALUE))
    ends = [place for marker in frame if (place := body.find(marker, max(last, 0))) >= 0]
    return body[: min(ends, default=len(body))].strip("\n ")


def _ends(after_answer: str) -> list[str]:
    """Returns the texts that may end a turn: the markers after an answer, its first line if it has none."""
    line = after_answer.strip().partition("\n")[0]
    return markers(after_answer) + ([line] if line and not markers(line) else [])


def _restated(before: str, to_key: str, to_value: str) -> tuple[str, str, str]:
    """Moves the cut to the last place of a name that is written twice."""
    first, again, last = to_key.rpartition(NAME)
    return (before + _ID + first.replace(NAME, _ID), last, to_value) if again else (before, to_key, to_value)


def _numbered(literals: tuple[str, ...]) -> tuple[str, int]:
    """Returns the first literal and an index: a number that grows by one with each literal becomes a hole."""
    first = literals[0]
    for found in re.finditer(r"\d+", first) if len(literals) > 1 else ():
        ahead = [text[len(text) - (len(first) - found.start()) :] for text in literals]
        begin = int(found[0])
        if all(text.startswith(str(begin + place)) for place, text in enumerate(ahead)):
            return f"{first[: found.start()]}{_INDEX}{first[found.end() :]}", begin
    return first, 0


# -------------------------------------------------------------------------------------- bodies, arguments


_BodyMatch = tuple[Body, re.Pattern[str], re.Pattern[str]]
"""A body, and its parts in the literals around it: the end of the one before, the beginning of the next."""


def _body(pieces: _Pieces, samples: Samples) -> _BodyMatch | None:
    found = _arguments(pieces, samples)
    if found is None:
        return None
    arguments, between, closing = found
    if isinstance(arguments, JsonArguments):
        if object_ := _object_body(pieces, between, closing):
            return object_
        if _KEYED.search(pieces.before) and re.fullmatch(r'"\s*:\s*', between):
            return KeyedBody(), _KEYED, re.compile(rf"\A{closing}\s*\}}")
    return NamedBody(_pattern(between, pieces.first), arguments), _NOTHING, re.compile(rf"\A{closing}")


def _object_body(pieces: _Pieces, between: str, closing: str) -> _BodyMatch | None:
    closer = re.compile(rf"\A{closing}{_OBJECT_END}")
    before, arguments, after = (
        _OBJECT.search(pieces.before),
        _ARGUMENTS.fullmatch(between),
        closer.match(pieces.end),
    )
    if not (before and arguments and after):
        return None
    body = ObjectBody(before["name"], arguments[1], before["id"] or "", after["id"] or "")
    return body, _OBJECT, closer


def _arguments(pieces: _Pieces, samples: Samples) -> tuple[Arguments, str, str] | None:
    """Returns the arguments, the text between the name and them, and a regular expression of their end."""
    to_key, to_value, end = pieces.to_key, pieces.to_value, pieces.end
    json = re.search(r'\{\s*"\Z', to_key)
    if json and re.fullmatch(r'"\s*:\s*"', to_value):
        return JsonArguments(), to_key[: json.start()], r'"\s*\}'
    if to_key == "(" and to_value in ("='", '="'):
        return KeywordArguments(), "", r"['\"]\)"
    if to_key.endswith("{") and pieces.to_number == ":" and end.startswith(f"{to_value[1:]}}}"):
        return QuotedArguments(to_value[1:]), to_key[:-1], re.escape(f"{to_value[1:]}}}")
    lead, tag, _ = end.partition(f"</{KEY}>")
    if tag and to_value == ">" and to_key.endswith(f"{lead}<"):
        between = to_key[: -len(lead) - 1]
        return NestedArguments(lead, _item(samples)), between, re.escape(f"{lead}</{KEY}>")
    return _tagged(pieces, samples)


def _item(samples: Samples) -> str:
    found = re.search(rf"<(\w+)>{VALUE}", samples.calls({KEY: [VALUE]}))
    return found[1] if found else "item"


def _tagged(pieces: _Pieces, samples: Samples) -> tuple[Arguments, str, str] | None:
    parts = split_literal(pieces.to_key, pieces.to_number_key, pieces.end)
    if parts.between.strip() or not (parts.open and parts.close and pieces.to_value):
        return None
    close = parts.close + parts.between
    close = close if pieces.end.startswith(close) else parts.close
    named, kind, kind_close = _kind(pieces.to_value, pieces.to_number)
    python = "True" in samples.calls({KEY: {VALUE: [True]}})
    arguments = TaggedArguments(parts.open, named, close, kind, kind_close, python)
    return arguments, pieces.to_key[: -len(parts.open)], re.escape(close)


def _kind(to_text: str, to_number: str) -> tuple[str, TypeMark, str]:
    """Returns the text after a name, the kind of mark for types ("" for none), and the text after it."""
    for kind, text, numbers in _TYPE_MARKS:
        named, found, kind_close = to_text.rpartition(text)
        if found and any(to_number == named + number + kind_close for number in numbers):
            return named, kind, kind_close
    return to_text, "", ""
