"""A section of calls: the markers around each, and how its body is read.

What is read here begins behind the marker that opens the first call (`parse.channels`). Ids and indices are read
and forgotten. A closing marker that is missing is forgiven: what ends a generation is not sent, and whether a call is
complete is a question of its arguments.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import (
    Arguments,
    Calls,
    Hole,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    Pattern,
    QuotedArguments,
    TaggedArguments,
)
from b3node.parse.call import Call, Judge
from b3node.parse.deltas import Delta
from b3node.parse.literals import END, keyword_arguments, quoted_arguments
from b3node.parse.markers import Markers, marked, spelled
from b3node.parse.nested import elements, nested_arguments
from b3node.parse.objects import json_object, keyed_body, object_body
from b3node.parse.source import HELD, Source, Step, Unlike
from b3node.parse.tagged import tagged_arguments, tags, texts
from b3node.parse.views import literal_parts

_identifier = re.compile(rb"[A-Za-z0-9_\-]+")
_forgotten: Final = {"id": re.compile(rb"[A-Za-z0-9_.:\-]+"), "index": re.compile(rb"[0-9]+")}
_MOST_HOLE: Final = 256
"""Bytes of an id or an index."""
_AT_ONCE: Final = 64 * 1024
"""Bytes that are read together: fewer than may be held, so that what is held is counted to the byte."""

Parts = tuple[Markers[bool] | Hole, ...]


class Spelling(NamedTuple):
    """How calls are spelled, made ready for reading.

    `following` is what stands between two calls (True) or ends the section (False).
    """

    calls: Calls
    specials: tuple[str, ...]
    texts: Markers[bytes]
    head: Parts
    rest: Parts
    between: Parts
    closers: tuple[Markers[bool], ...]
    following: Markers[bool]
    quotes: Markers[bytes]


@lru_cache(64)
def spelling(calls: Calls, specials: tuple[str, ...]) -> Spelling:
    """The spelling of `calls`, with those special tokens in its markers."""
    first = calls.open[:1] if calls.open and isinstance(calls.open[0], str) else ()
    closers = tuple(Markers([(spelled(part, specials), True)]) for part in calls.close.split())
    upcoming = "\n".join([calls.between, *(part for part in first if isinstance(part, str))])
    return Spelling(
        calls,
        specials,
        Markers(texts(specials)),
        _parts(first, specials),
        _parts(literal_parts(calls.open), specials),
        _parts(calls.body.between if isinstance(calls.body, NamedBody) else (), specials),
        closers[1:] if _tagged(calls) else closers,
        Markers([(spelled(calls.section.close, specials), False), (spelled(upcoming, specials), True)]),
        _quotes(calls, specials),
    )


def _parts(pattern: Pattern, specials: Sequence[str]) -> Parts:
    made = (
        part if isinstance(part, Hole) else Markers([(spelled(part, specials), True)]) for part in pattern
    )
    return tuple(part for part in made if isinstance(part, Hole) or part)


class Outcome(enum.Enum):
    """How the reading of calls stands."""

    OPEN = "more belongs to it"
    OVER = "what is left belongs to it no longer"
    REFUSED = "what was written since the last call is none"
    BROKEN = "the last call is none that can be ended"


class Section:
    """Reads calls until they are over."""

    def __init__(self, how: Spelling, tools: Mapping[str, FunctionTool], judge: Judge) -> None:
        self._how, self._tools, self._judge = how, tools, judge
        self._source = Source(how.texts)
        self._out: list[Delta] = []
        self._calls = 0
        self._call = Call(self._source, tools, judge, self._out)
        self._steps = self._read()
        self._source.keep()
        self.outcome = Outcome.OPEN

    @property
    def begun(self) -> bool:
        """Whether there is a call; until then, all that was read may turn out to be text."""
        return self._calls > 0 or self._call.tool is not None

    @property
    def written(self) -> bytes:
        """What is refused."""
        return self._source.written()

    @property
    def rest(self) -> bytes:
        """What was not read of what was fed."""
        return self._source.rest()

    def feed(self, piece: bytes, out: list[Delta]) -> None:
        """Tells `out` what is certain once `piece` is known. Not to be called but while it is open."""
        source, at = self._source, 0
        while at < len(piece) and self.outcome is Outcome.OPEN:
            room = min(_AT_ONCE, HELD - source.size) if source.keeping else _AT_ONCE
            if room:
                self._advance(piece[at : at + room], out)
            else:
                self.outcome = Outcome.REFUSED
            at += room
        if at < len(piece):
            source.feed(piece[at:])

    def finish(self, out: list[Delta]) -> None:
        """Tells `out` what is certain now that nothing follows: the end of a call that only lacks its closing."""
        if self._call.whole:
            self._call.out = out
            self._end()

    def _advance(self, piece: bytes, out: list[Delta]) -> None:
        self._source.feed(piece)
        self._out = self._call.out = out
        try:
            next(self._steps)
        except StopIteration:
            self.outcome = Outcome.OVER
        except Unlike:
            self.outcome = Outcome.REFUSED if self._source.keeping else Outcome.BROKEN
        self._call.flush()

    def _end(self) -> None:
        try:
            self._call.end()
        except Unlike:
            self.outcome = Outcome.BROKEN

    def _read(self) -> Step[None]:
        how, source = self._how, self._source
        while True:
            yield from _pattern(source, how.rest)
            yield from self._body()
            self._call.end()
            for closer in how.closers:
                if not (yield from source.take(closer)):
                    return
            if how.calls.alone or not (yield from self._another()):
                return
            self._calls += 1
            self._call = Call(source, self._tools, self._judge, self._out)

    def _another(self) -> Step[bool]:
        """Whether another call comes in this section; takes what stands before it, or the section's end."""
        how, source = self._how, self._source
        source.keep()
        if not how.calls.section.open and not (how.calls.bare and how.following):
            return False
        found = yield from source.take(how.following)
        if found is None and not how.calls.between.strip() and not how.head:
            found = (yield from source.space()) == _BRACE
        if not found:
            source.release()
        return bool(found)

    def _body(self) -> Step[None]:
        body, source, call = self._how.calls.body, self._source, self._call
        if isinstance(body, ObjectBody):
            yield from object_body(source, call, body)
        elif isinstance(body, KeyedBody):
            yield from keyed_body(source, call)
        else:
            name = yield from _name(source, call)
            yield from _pattern(source, self._how.between)
            call.start(name)
            yield from self._arguments(body.arguments)

    def _arguments(self, form: Arguments) -> Step[None]:
        source, call, specials = self._source, self._call, self._how.specials
        close = next(iter(self._how.calls.close.split()), "")
        if isinstance(form, TaggedArguments):
            yield from tagged_arguments(source, call, form, tags(form, close, specials), closed=bool(close))
        elif isinstance(form, NestedArguments):
            yield from nested_arguments(source, call, elements(form, close, specials), closed=bool(close))
        elif isinstance(form, KeywordArguments):
            yield from keyword_arguments(source, call)
        elif isinstance(form, QuotedArguments):
            yield from quoted_arguments(source, call, self._how.quotes)
        else:
            yield from json_object(source, call)


def _tagged(calls: Calls) -> bool:
    """Whether nothing but what closes a call says that its arguments are over."""
    return isinstance(calls.body, NamedBody) and isinstance(
        calls.body.arguments, TaggedArguments | NestedArguments
    )


def _quotes(calls: Calls, specials: tuple[str, ...]) -> Markers[bytes]:
    form = calls.body.arguments if isinstance(calls.body, NamedBody) else None
    quote = form.quote if isinstance(form, QuotedArguments) else ""
    return Markers([(tuple(marked(quote, specials)), END), *texts(specials)] if quote else ())


_BRACE: Final = 0x7B


def _pattern(source: Source, parts: Parts) -> Step[None]:
    for part in parts:
        if isinstance(part, Hole):
            yield from source.space()
            yield from source.run(_forgotten[part.kind], _MOST_HOLE)
        else:
            yield from source.must(part)


def _name(source: Source, call: Call) -> Step[str]:
    """A function's name; refused as soon as no function's name begins so."""
    yield from source.space()
    while True:
        found = _identifier.match(source.data, source.at)
        said = found[0] if found else b""
        if not call.may_be(said):
            raise Unlike
        if source.at + len(said) < len(source.data):
            if not call.is_one(said.decode()):
                raise Unlike
            source.at += len(said)
            return said.decode()
        yield
