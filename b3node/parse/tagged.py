"""Arguments one by one between tags. What stands in a tag is bare, so its schema says what kind of value it is.

A string is told as it grows, and so is an object or an array where no string may stand. Where a string and something
else are possible, a value is held back for as long as it may be either (`Guess`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from b3node.dialects.dialect import TaggedArguments
from b3node.dialects.kinds import STRING, Kinds, kind_of, kinds, member
from b3node.parse.call import Call, encode, escaped
from b3node.parse.literals import END, NOTHING, converted, value
from b3node.parse.markers import Markers, Spelled, marked, spelled
from b3node.parse.source import HELD, Source, Step, Unlike

_decode = msgspec.json.Decoder().decode
_numeric = re.compile(rb"[+-]?[0-9][0-9_.eE+\-]{0,400}").fullmatch

_MOST_NAME: Final = 256
"""Bytes of an argument's name, or of a value's kind."""
_LOOK: Final = 1024
"""Bytes by which a value is told to be a number or a word, or not; more white space before it is a string's."""
_BRACE: Final = 0x7B
_LITERALS: Final = (
    (b"true", "boolean"), (b"True", "boolean"), (b"false", "boolean"), (b"False", "boolean"),
    (b"null", "null"), (b"None", "null"),
)  # fmt: skip


class Tags(NamedTuple):
    """The tags of a dialect.

    `turn` is what an argument begins with (True) or the end of them (False); `gap` is the white space that a template
    writes between the last tag and the value.
    """

    turn: Markers[bool]
    named: Markers[bool]
    kind: Markers[bool]
    gap: Markers[bool]
    ends: Markers[bytes]


@lru_cache(64)
def tags(form: TaggedArguments, close: str, specials: tuple[str, ...]) -> Tags:
    """The tags of `form`; `close` is what ends the arguments, if anything is known to."""
    last = form.kind_close if form.kind else form.named
    gap = last[len(last.rstrip()) :]
    before = form.close[: len(form.close) - len(form.close.lstrip())]
    core = spelled(form.close, specials)
    return Tags(
        Markers([(spelled(form.open, specials), True), (spelled(close, specials), False)]),
        Markers([(spelled(form.named, specials), True)]),
        Markers([(spelled(form.kind_close, specials), True)]),
        Markers([(tuple(gap.encode()), True)]),
        Markers([((*before.encode(), *core), END), (core, END), *texts(specials)]),
    )


def texts(specials: tuple[str, ...]) -> list[tuple[Spelled, bytes]]:
    """Special tokens that mean their own text."""
    return [(tuple(marked(special, specials)), special.encode()) for special in specials]


def tagged_arguments(
    source: Source, call: Call, form: TaggedArguments, how: Tags, *, closed: bool
) -> Step[None]:
    """All arguments, and what ends them; with `closed` nothing else may."""
    schema = call.tool.parameters if call.tool else None
    before = "{"
    while found := (yield from source.take(how.turn)):
        name = (yield from source.until(how.named, _MOST_NAME)).decode(errors="replace").strip()
        possible = kinds(member(schema, schema, name), schema)
        if form.kind:
            said = (yield from source.until(how.kind, _MOST_NAME)).strip()
            possible = _said(possible, said)
        call.write(f'{before}"{escaped(name)}":')
        before = ","
        yield from source.here(how.gap)
        yield from _value(source, call, possible, how.ends)
    if found is None and closed:
        raise Unlike
    call.write("{}" if before == "{" else "}")


def _value(source: Source, call: Call, possible: Kinds, ends: Markers[bytes]) -> Step[None]:
    """A value and the tag behind it."""
    if "string" not in possible and (yield from source.space()) in b"{[":
        yield from value(source, call, NOTHING, 1)
        if (yield from source.take(ends)) != END:
            raise Unlike
        return
    guess = Guess(call, possible)
    yield from source.text(ends, guess.feed)
    guess.end()


def _said(possible: Kinds, kind: bytes) -> Kinds:
    """What remains of the kinds when a value is said to be a string or not."""
    if possible == STRING or "string" not in possible:
        return possible
    return STRING if kind in {b"true", b"string"} else possible - STRING


class Guess:
    """A bare value, which may be a string or not."""

    def __init__(self, call: Call, possible: Kinds) -> None:
        self._call, self._kinds = call, possible
        self._held = bytearray()
        self._string = False
        self._bracketed = False  # held back as an object or an array
        if possible == STRING:
            self._begin()

    @property
    def blank(self) -> bool:
        """Whether nothing but white space came, and is not told."""
        return not self._string and not self._held.strip()

    def feed(self, data: bytes) -> None:
        """More of it.

        Raises:
            Unlike: it is no string, and too long to hold.
        """
        if self._string:
            self._call.string(data)
            return
        self._held += data
        if "string" in self._kinds and (len(self._held) > HELD or not self._other()):
            self._begin()
        elif len(self._held) > HELD:
            raise Unlike

    def end(self) -> None:
        """Nothing more comes."""
        if self._string:
            self._call.settle()
            self._call.write('"')
        else:
            self._call.write(_json(self._held.decode(errors="replace"), self._kinds))

    def _begin(self) -> None:
        self._string = True
        self._call.write('"')
        self._call.string(bytes(self._held))
        self._held.clear()

    def _other(self) -> bool:
        """Whether it may still be something else than a string."""
        if self._bracketed:
            return True
        said = bytes(self._held[:_LOOK]).strip()
        if not said:
            return len(self._held) <= _LOOK
        if said[0] in b"{[":
            self._bracketed = ("object" if said[0] == _BRACE else "array") in self._kinds
            return self._bracketed
        if "integer" in self._kinds and (_numeric(said) or said in {b"+", b"-"}):
            return True
        return any(word.startswith(said) and kind in self._kinds for word, kind in _LITERALS)


def _json(said: str, possible: Kinds) -> str:
    """A bare value's JSON text: that of a literal, if there may be one, or else a string's."""
    text = converted(said)
    if text is not None and (fits(_decode(text), possible) or "string" not in possible):
        return text
    return encode(said).decode()


def fits(value: object, possible: Kinds) -> bool:
    """Whether a value is of one of the kinds."""
    kind = kind_of(value)
    return kind in possible or (kind == "number" and "integer" in possible and float.is_integer(value))  # type: ignore[arg-type]  # a number is a float
