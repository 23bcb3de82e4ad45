"""What may be found at each place of an answer, made once a dialect.

The same marker means different things at different places: a thought's close is stray outside of one, a call's
syntax is thought inside of one, and where the answer's text is marked, nothing spelled out in it counts but its close.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from b3node.dialects.dialect import Body, Calls, Dialect, Hole, KeyedBody, ObjectBody, Pattern, Span
from b3node.dialects.outline import CALL_TYPE, MARK
from b3node.parse.markers import Markers, Spelled, spelled


class Act(enum.Enum):
    """What finding a marker does."""

    THINK = "a thought begins"
    AGAIN = "a thought that has begun begins"
    CLOSE = "the thought is over"
    OPEN = "the marked text begins"
    SHUT = "the marked text is over"
    CALL = "a call begins behind it"
    BARE = "a call begins with it"
    SKIP = "another part of the turn comes"
    DROP = "nothing"
    KEEP = "it is written as it is"


class Found(NamedTuple):
    """A marker's meaning. `plain` ones are spelled out, without special tokens; `calls` says how a call goes on."""

    act: Act
    plain: bool
    calls: Calls | None = None


class Views(NamedTuple):
    """The markers of each place; `beginning` is where an answer may still begin with a bare call.

    `coded` says whether code in the text matters.
    """

    thought: Markers[Found]
    between: Markers[Found]
    beginning: Markers[Found]
    text: Markers[Found]
    coded: bool


Marker = tuple[Spelled, Found]
_NOTHING: Final = Span("", "")


@lru_cache(64)
def views(dialect: Dialect, specials: tuple[str, ...], *, calling: bool) -> Views:
    """The views of a dialect whose markers have those special tokens; with `calling`, calls are read."""
    make = _Maker(dialect, specials, calling=calling)
    text = [*make.text()]
    return Views(
        Markers(make.thought()),
        Markers(make.between()),
        Markers([*make.bare(), *make.between()]),
        Markers(text),
        coded=any(found.plain for _, found in text),
    )


def spellings(dialect: Dialect) -> tuple[Calls, ...]:
    """All spellings of calls, the dialect's own first."""
    return (dialect.calls, *dialect.also) if dialect.calls else dialect.also


def call_head(calls: Calls) -> tuple[str, ...]:
    """The literals that a call's marker is made of; none for a call that has none."""
    head = calls.open[0] if calls.open and isinstance(calls.open[0], str) else ""
    return tuple(part for part in (calls.section.open, head) if part.strip())


class _Maker:
    def __init__(self, dialect: Dialect, specials: tuple[str, ...], *, calling: bool) -> None:
        self._dialect, self._specials, self._calling = dialect, specials, calling
        self._thought, self._text = dialect.thought or _NOTHING, dialect.text or _NOTHING

    def thought(self) -> Iterator[Marker]:
        close = self._marker(Act.CLOSE, self._thought.close)
        yield from close
        yield from self._marker(Act.AGAIN, self._thought.open)
        if not self._thought.close:
            yield from self.between()
        yield from self._rest(keep=True)

    def between(self) -> Iterator[Marker]:
        yield from self._openings()
        yield from self._marker(Act.DROP, self._thought.close, self._text.close)
        yield from self._rest(keep=not self._calling)

    def text(self) -> Iterator[Marker]:
        yield from self._marker(Act.SHUT, self._text.close)
        others = [*self._openings(), *self._marker(Act.DROP, self._thought.close)]
        yield from (marker for marker in others if not (self._text.close and marker[1].plain))
        yield from self._rest(keep=True)

    def bare(self) -> Iterator[Marker]:
        for calls in spellings(self._dialect) if self._calling else ():
            for start in _beginnings(calls.body) if calls.bare else ():
                yield spelled(start, ()), Found(Act.BARE, plain=True, calls=calls)

    def _openings(self) -> Iterator[Marker]:
        yield from self._marker(Act.THINK, self._thought.open)
        yield from self._marker(Act.OPEN, self._text.open)
        for calls in spellings(self._dialect) if self._calling else ():
            yield from self._marker(Act.CALL, "\n".join(call_head(calls)), calls=calls)
        yield from self._marker(Act.SKIP, *self._dialect.skipped)

    def _rest(self, *, keep: bool) -> Iterator[Marker]:
        """Special tokens by themselves: those that only calls have may be kept as text, others mean nothing."""
        others = "".join(_literals(self._dialect))
        for special in self._specials:
            act = Act.KEEP if keep and special not in others else Act.DROP
            yield from self._marker(act, special)

    def _marker(self, act: Act, *literals: str, calls: Calls | None = None) -> Iterator[Marker]:
        for literal in literals:
            elements = spelled(literal, self._specials, word=act in {Act.THINK, Act.AGAIN, Act.OPEN})
            yield elements, Found(act, MARK[0] not in elements, calls)


def _literals(dialect: Dialect) -> Iterable[str]:
    for span in (dialect.thought, dialect.text):
        if span:
            yield from (span.open, span.close)
    yield from dialect.skipped


def _beginnings(body: Body) -> Iterator[str]:
    """What a call's body may begin with, up to the function's name."""
    if isinstance(body, ObjectBody):
        name = f'"{body.before or body.name}" : "'
        yield "{ " + name
        yield '{{ "{}" : "{}" , '.format(*CALL_TYPE) + name
    elif isinstance(body, KeyedBody):
        yield '{ "'


def literal_parts(pattern: Pattern) -> tuple[str | Hole, ...]:
    """A pattern without its first literal, which belongs to the call's marker."""
    return pattern[1:] if pattern and isinstance(pattern[0], str) else pattern
