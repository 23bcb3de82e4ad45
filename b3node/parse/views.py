"""The markers that count at each place of an answer, compiled once a dialect.

The same marker means different things at different places: the close of thinking is stray outside of it, the
syntax of calls is thinking inside of it, and where the answer's text is marked, no spelled-out marker in it
counts but its close.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from b3node.dialects.dialect import Body, Calls, Dialect, Hole, KeyedBody, ObjectBody, Pattern, Span
from b3node.dialects.outline import CALL_TYPE, MARK
from b3node.parse.markers import MarkerElements, MarkerSet, spelled


class Act(enum.Enum):
    """The effect of a marker."""

    THINK = "thinking begins"
    AGAIN = "thinking that has begun begins again"
    CLOSE = "thinking ends"
    OPEN = "the marked text begins"
    SHUT = "the marked text ends"
    CALL = "a call begins after it"
    BARE = "a call begins with it"
    SKIP = "another part of the turn begins"
    DROP = "it is dropped"
    KEEP = "it is text"


class Found(NamedTuple):
    """A marker's meaning. `plain`: spelled out, without special tokens; `calls`: the spelling of the call."""

    act: Act
    plain: bool
    calls: Calls | None = None


class Views(NamedTuple):
    """The markers of each place; `beginning` is the place where an answer may still be a bare call.

    `coded` says whether code in the text matters.
    """

    thinking: MarkerSet[Found]
    between: MarkerSet[Found]
    beginning: MarkerSet[Found]
    text: MarkerSet[Found]
    coded: bool


MarkerMeaning = tuple[MarkerElements, Found]
_NOTHING: Final = Span("", "")


@lru_cache(64)
def views(dialect: Dialect, specials: tuple[str, ...], *, calling: bool) -> Views:
    """Compiles the views of a dialect with these special tokens; with `calling`, calls are read."""
    make = _Maker(dialect, specials, calling=calling)
    text = [*make.text()]
    return Views(
        MarkerSet(make.thinking()),
        MarkerSet(make.between()),
        MarkerSet([*make.bare(), *make.between()]),
        MarkerSet(text),
        coded=any(found.plain for _, found in text),
    )


def spellings(dialect: Dialect) -> tuple[Calls, ...]:
    """Returns all spellings of calls, the dialect's own first."""
    return (dialect.calls, *dialect.also) if dialect.calls else dialect.also


def call_head(calls: Calls) -> tuple[str, ...]:
    """Returns the literals of a call's marker; none for a bare call."""
    head = calls.open[0] if calls.open and isinstance(calls.open[0], str) else ""
    return tuple(part for part in (calls.section.open, head) if part.strip())


class _Maker:
    def __init__(self, dialect: Dialect, specials: tuple[str, ...], *, calling: bool) -> None:
        self._dialect, self._specials, self._calling = dialect, specials, calling
        self._thinking, self._text = dialect.thinking or _NOTHING, dialect.text or _NOTHING

    def thinking(self) -> Iterator[MarkerMeaning]:
        close = self._marker(Act.CLOSE, self._thinking.close)
        yield from close
        yield from self._marker(Act.AGAIN, self._thinking.open)
        if not self._thinking.close:
            yield from self.between()
        yield from self._rest(keep=True)

    def between(self) -> Iterator[MarkerMeaning]:
        yield from self._openings()
        yield from self._marker(Act.DROP, self._thinking.close, self._text.close)
        yield from self._rest(keep=not self._calling)

    def text(self) -> Iterator[MarkerMeaning]:
        yield from self._marker(Act.SHUT, self._text.close)
        others = [*self._openings(), *self._marker(Act.DROP, self._thinking.close)]
        yield from (marker for marker in others if not (self._text.close and marker[1].plain))
        yield from self._rest(keep=True)

    def bare(self) -> Iterator[MarkerMeaning]:
        for calls in spellings(self._dialect) if self._calling else ():
            for start in _beginnings(calls.body) if calls.bare else ():
                yield spelled(start, ()), Found(Act.BARE, plain=True, calls=calls)

    def _openings(self) -> Iterator[MarkerMeaning]:
        yield from self._marker(Act.THINK, self._thinking.open)
        yield from self._marker(Act.OPEN, self._text.open)
        for calls in spellings(self._dialect) if self._calling else ():
            yield from self._marker(Act.CALL, "\n".join(call_head(calls)), calls=calls)
        yield from self._marker(Act.SKIP, *self._dialect.skipped)

    def _rest(self, *, keep: bool) -> Iterator[MarkerMeaning]:
        """Yields lone special tokens: those of calls only may be kept as text, others are dropped."""
        others = "".join(_literals(self._dialect))
        for special in self._specials:
            act = Act.KEEP if keep and special not in others else Act.DROP
            yield from self._marker(act, special)

    def _marker(self, act: Act, *literals: str, calls: Calls | None = None) -> Iterator[MarkerMeaning]:
        for literal in literals:
            elements = spelled(literal, self._specials, word=act in {Act.THINK, Act.AGAIN, Act.OPEN})
            yield elements, Found(act, MARK[0] not in elements, calls)


def _literals(dialect: Dialect) -> Iterable[str]:
    for span in (dialect.thinking, dialect.text):
        if span:
            yield from (span.open, span.close)
    yield from dialect.skipped


def _beginnings(body: Body) -> Iterator[str]:
    """Yields the beginnings of a call's body, up to the function's name."""
    if isinstance(body, ObjectBody):
        name = f'"{body.before or body.name}" : "'
        yield "{ " + name
        yield '{{ "{}" : "{}" , '.format(*CALL_TYPE) + name
    elif isinstance(body, KeyedBody):
        yield '{ "'


def literal_parts(pattern: Pattern) -> tuple[str | Hole, ...]:
    """Returns a pattern without its first literal, which belongs to the call's marker."""
    return pattern[1:] if pattern and isinstance(pattern[0], str) else pattern
