"""Reads arguments between tags. Values are bare, so the schema gives their type.

A string is emitted as it grows, and so is an object or an array where no string is possible. Where a string
and another type are possible, the value is held back as long as it may be either (`BareValue`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from b3node.dialects.dialect import TaggedArguments
from b3node.dialects.kinds import STRING, Kinds, kind_of, kinds, member
from b3node.parse.call import OpenCall, encode, escaped
from b3node.parse.literals import END, NOTHING, LiteralReader, value
from b3node.parse.markers import MarkerElements, MarkerSet, marked, spelled
from b3node.parse.source import MAX_HELD_BYTES, MAX_NAME_BYTES, Mismatch, ReadSteps, Source

_decode = msgspec.json.Decoder().decode
_numeric = re.compile(rb"[+-]?[0-9][0-9_.eE+\-]{0,400}").fullmatch

_MAX_LITERAL_BYTES: Final = 1024
"""Bytes that decide whether a value is a number or a word; more white space before it makes it a string."""
_BRACE: Final = 0x7B
_LITERALS: Final = (
    (b"true", "boolean"), (b"True", "boolean"), (b"false", "boolean"), (b"False", "boolean"),
    (b"null", "null"), (b"None", "null"),
)  # fmt: skip


class Tags(NamedTuple):
    """The tags of a dialect.

    `turn` matches the beginning of an argument (True) or the end of all (False); `gap` is the white space
    that a template writes between the last tag and the value.
    """

    turn: MarkerSet[bool]
    named: MarkerSet[bool]
    kind: MarkerSet[bool]
    gap: MarkerSet[bool]
    ends: MarkerSet[bytes]


@lru_cache(64)
def tags(form: TaggedArguments, close: str, specials: tuple[str, ...]) -> Tags:
    """Returns the tags of `form`; `close` ends the arguments, if known."""
    last = form.kind_close if form.kind else form.named
    gap = last[len(last.rstrip()) :]
    before = form.close[: len(form.close) - len(form.close.lstrip())]
    core = spelled(form.close, specials)
    return Tags(
        MarkerSet([(spelled(form.open, specials), True), (spelled(close, specials), False)]),
        MarkerSet([(spelled(form.named, specials), True)]),
        MarkerSet([(spelled(form.kind_close, specials), True)]),
        MarkerSet([(tuple(gap.encode()), True)]),
        MarkerSet([((*before.encode(), *core), END), (core, END), *texts(specials)]),
    )


def texts(specials: tuple[str, ...]) -> list[tuple[MarkerElements, bytes]]:
    """Special tokens that mean their own text."""
    return [(tuple(marked(special, specials)), special.encode()) for special in specials]


def tagged_arguments(
    source: Source, call: OpenCall, form: TaggedArguments, how: Tags, *, closed: bool
) -> ReadSteps[None]:
    """Reads all arguments and their end; with `closed`, that end is required."""
    schema = call.tool.parameters if call.tool else None
    before = "{"
    while found := (yield from source.take(how.turn)):
        name = (yield from source.until(how.named, MAX_NAME_BYTES)).decode(errors="replace").strip()
        possible = kinds(member(schema, schema, name), schema)
        if form.kind:
            said = (yield from source.until(how.kind, MAX_NAME_BYTES)).strip()
            possible = _said(possible, said)
        call.write(f'{before}"{escaped(name)}":')
        before = ","
        yield from source.here(how.gap)
        yield from _value(source, call, possible, how.ends)
    if found is None and closed:
        raise Mismatch
    call.write("{}" if before == "{" else "}")


def _value(source: Source, call: OpenCall, possible: Kinds, ends: MarkerSet[bytes]) -> ReadSteps[None]:
    """Reads a value and the tag after it."""
    if "string" not in possible and (yield from source.space()) in b"{[":
        yield from value(source, call, NOTHING, 1)
        if (yield from source.take(ends)) != END:
            raise Mismatch
        return
    guess = BareValue(call, possible)
    yield from source.text(ends, guess.feed)
    guess.end()


def _said(possible: Kinds, kind: bytes) -> Kinds:
    """Returns the possible types of a value that is declared to be a string, or not to be one."""
    if possible == STRING or "string" not in possible:
        return possible
    return STRING if kind in {b"true", b"string"} else possible - STRING


class BareValue:
    """A bare value, which may be a string.

    An object or an array is read while it is held back: at its end, 256 KiB would hold up every other answer.
    """

    def __init__(self, call: OpenCall, possible: Kinds) -> None:
        self._call, self._kinds = call, possible
        self._held = bytearray()
        self._string = False
        self._literal: LiteralReader | None = None  # of a value that is held back as an object or an array
        if possible == STRING:
            self._begin()

    @property
    def blank(self) -> bool:
        """Whether only white space came, none of it emitted."""
        return not self._string and not self._held.strip()

    def feed(self, data: bytes) -> None:
        """Takes more of the value.

        Raises:
            Mismatch: it is no string, and too long to hold.
        """
        if self._string:
            self._call.string(data)
            return
        self._held += data
        if self._literal:
            self._literal.feed(data)
        other = self._other()
        if "string" in self._kinds and (len(self._held) > MAX_HELD_BYTES or not other):
            self._begin()
        elif len(self._held) > MAX_HELD_BYTES:
            raise Mismatch

    def end(self) -> None:
        """Ends the value."""
        if self._string:
            self._call.settle()
            self._call.write('"')
        else:
            self._call.write(self._json())

    def _begin(self) -> None:
        self._string = True
        self._call.write('"')
        self._call.string(bytes(self._held))
        self._held.clear()

    def _other(self) -> bool:
        """Returns whether it may still be of another type than string."""
        if self._literal:
            return self._literal.possible
        said = bytes(self._held[:_MAX_LITERAL_BYTES]).strip()
        if not said:
            return len(self._held) <= _MAX_LITERAL_BYTES
        if said[0] in b"{[":
            if ("object" if said[0] == _BRACE else "array") not in self._kinds:
                return False
            self._literal = _literal(self._held)
            return self._literal.possible
        if "integer" in self._kinds and (_numeric(said) or said in {b"+", b"-"}):
            return True
        return any(word.startswith(said) and kind in self._kinds for word, kind in _LITERALS)

    def _json(self) -> str:
        """Returns the JSON text of the held value: a literal where one is possible, else a string."""
        text = (self._literal or _literal(self._held)).text()
        if text is not None and self._takes(text):
            return text
        return encode(self._held.decode(errors="replace")).decode()

    def _takes(self, text: str) -> bool:
        """Returns whether the literal may stand for the value; half of a surrogate pair is no JSON."""
        try:
            found = _decode(text)
        except msgspec.DecodeError:
            return False
        return "string" not in self._kinds or fits(found, self._kinds)


def _literal(held: bytearray) -> LiteralReader:
    reader = LiteralReader()
    reader.feed(bytes(held))
    return reader


def fits(value: object, possible: Kinds) -> bool:
    """Returns whether a value has one of the types."""
    kind = kind_of(value)
    if kind in possible:
        return True
    return isinstance(value, float) and kind == "number" and "integer" in possible and value.is_integer()
