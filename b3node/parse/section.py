"""Reads a section of calls: the markers around each call, and its body.

Input begins after the marker that opens the first call (`parse.channels`). Ids and indices are read and
dropped. A missing closing marker is forgiven: the token that ends a generation is not sent, and completeness
of a call is a question of its arguments.
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
from b3node.parse.call import CallCheck, OpenCall
from b3node.parse.deltas import Delta
from b3node.parse.literals import END, keyword_arguments, quoted_arguments
from b3node.parse.markers import MarkerSet, marked, spelled
from b3node.parse.nested import elements, nested_arguments
from b3node.parse.objects import json_object, keyed_body, object_body
from b3node.parse.source import MAX_HELD_BYTES, Mismatch, ReadSteps, Source
from b3node.parse.tagged import tagged_arguments, tags, texts
from b3node.parse.views import literal_parts

_identifier = re.compile(rb"[A-Za-z0-9_\-]+")
_forgotten: Final = {"id": re.compile(rb"[A-Za-z0-9_.:\-]+"), "index": re.compile(rb"[0-9]+")}
_MAX_HOLE_BYTES: Final = 256
"""Bytes of an id or an index."""
_BATCH_BYTES: Final = 64 * 1024
"""Bytes that are read together: fewer than may be held, so that held bytes are counted exactly."""

Parts = tuple[MarkerSet[bool] | Hole, ...]


class CallSpelling(NamedTuple):
    """The spelling of calls, compiled for reading.

    `following` matches the separator of two calls (True) or the end of the section (False).
    """

    calls: Calls
    specials: tuple[str, ...]
    texts: MarkerSet[bytes]
    head: Parts
    rest: Parts
    between: Parts
    closers: tuple[MarkerSet[bool], ...]
    following: MarkerSet[bool]
    quotes: MarkerSet[bytes]


@lru_cache(64)
def spelling(calls: Calls, specials: tuple[str, ...]) -> CallSpelling:
    """Compiles the spelling of `calls`, with `specials` as special tokens in its markers."""
    first = calls.open[:1] if calls.open and isinstance(calls.open[0], str) else ()
    closers = tuple(MarkerSet([(spelled(part, specials), True)]) for part in calls.close.split())
    upcoming = "\n".join([calls.between, *(part for part in first if isinstance(part, str))])
    return CallSpelling(
        calls,
        specials,
        MarkerSet(texts(specials)),
        _parts(first, specials),
        _parts(literal_parts(calls.open), specials),
        _parts(calls.body.between if isinstance(calls.body, NamedBody) else (), specials),
        closers[1:] if _tagged(calls) else closers,
        MarkerSet([(spelled(calls.section.close, specials), False), (spelled(upcoming, specials), True)]),
        _quotes(calls, specials),
    )


def _parts(pattern: Pattern, specials: Sequence[str]) -> Parts:
    made = (
        part if isinstance(part, Hole) else MarkerSet([(spelled(part, specials), True)]) for part in pattern
    )
    return tuple(part for part in made if isinstance(part, Hole) or part)


class SectionOutcome(enum.Enum):
    """State of a section."""

    OPEN = "more bytes may belong to it"
    OVER = "the section has ended; the rest is outside"
    REFUSED = "the bytes since the last call are no call"
    BROKEN = "the last call cannot be completed"


class Section:
    """Reads calls until the section is over."""

    def __init__(self, how: CallSpelling, tools: Mapping[str, FunctionTool], judge: CallCheck) -> None:
        self._how, self._tools, self._judge = how, tools, judge
        self._source = Source(how.texts)
        self._out: list[Delta] = []
        self._calls = 0
        self._call = OpenCall(self._source, tools, judge, self._out)
        self._steps = self._read()
        self._source.keep()
        self.outcome = SectionOutcome.OPEN

    @property
    def begun(self) -> bool:
        """Whether a call was recognised; until then, the bytes may turn out to be text."""
        return self._calls > 0 or self._call.tool is not None

    @property
    def written(self) -> bytes:
        """The refused bytes."""
        return self._source.written()

    @property
    def rest(self) -> bytes:
        """The bytes that were fed and not read."""
        return self._source.rest()

    def feed(self, piece: bytes, out: list[Delta]) -> None:
        """Appends to `out` the deltas that are certain with `piece`. The section must be open."""
        source, at = self._source, 0
        while at < len(piece) and self.outcome is SectionOutcome.OPEN:
            room = min(_BATCH_BYTES, MAX_HELD_BYTES - source.size) if source.keeping else _BATCH_BYTES
            if room:
                self._advance(piece[at : at + room], out)
            else:
                self.outcome = SectionOutcome.REFUSED
            at += room
        if at < len(piece):
            source.feed(piece[at:])

    def finish(self, out: list[Delta]) -> None:
        """Appends to `out` the end of a call that lacks only its closing marker."""
        if self._call.whole:
            self._call.out = out
            self._end()

    def _advance(self, piece: bytes, out: list[Delta]) -> None:
        self._source.feed(piece)
        self._out = self._call.out = out
        try:
            next(self._steps)
        except StopIteration:
            self.outcome = SectionOutcome.OVER
        except Mismatch:
            self.outcome = SectionOutcome.REFUSED if self._source.keeping else SectionOutcome.BROKEN
        self._call.flush()

    def _end(self) -> None:
        try:
            self._call.end()
        except Mismatch:
            self.outcome = SectionOutcome.BROKEN

    def _read(self) -> ReadSteps[None]:
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
            self._call = OpenCall(source, self._tools, self._judge, self._out)

    def _another(self) -> ReadSteps[bool]:
        """Returns whether another call follows; takes the separator, or the section's end."""
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

    def _body(self) -> ReadSteps[None]:
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

    def _arguments(self, form: Arguments) -> ReadSteps[None]:
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
    """Returns whether only the close of a call ends its arguments."""
    return isinstance(calls.body, NamedBody) and isinstance(
        calls.body.arguments, TaggedArguments | NestedArguments
    )


def _quotes(calls: Calls, specials: tuple[str, ...]) -> MarkerSet[bytes]:
    form = calls.body.arguments if isinstance(calls.body, NamedBody) else None
    quote = form.quote if isinstance(form, QuotedArguments) else ""
    return MarkerSet([(tuple(marked(quote, specials)), END), *texts(specials)] if quote else ())


_BRACE: Final = 0x7B


def _pattern(source: Source, parts: Parts) -> ReadSteps[None]:
    for part in parts:
        if isinstance(part, Hole):
            yield from source.space()
            yield from source.run(_forgotten[part.kind], _MAX_HOLE_BYTES)
        else:
            yield from source.must(part)


def _name(source: Source, call: OpenCall) -> ReadSteps[str]:
    """Reads a function's name; fails as soon as no declared name begins so."""
    yield from source.space()
    while True:
        found = _identifier.match(source.data, source.at)
        said = found[0] if found else b""
        if not call.may_become(said):
            raise Mismatch
        if source.at + len(said) < len(source.data):
            if not call.declares(said.decode()):
                raise Mismatch
            source.at += len(said)
            return said.decode()
        yield
