"""Calls and arguments that are JSON: their text is passed through as it is, and only followed.

Followed are strings and the depth of brackets; whether the whole is JSON is asked once, at its end. The one thing
that is mended is a control character inside a string, which JSON wants escaped and models write bare.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from b3node.dialects.dialect import ObjectBody
from b3node.dialects.outline import MARK
from b3node.parse.call import DEEPEST, Call, escaped
from b3node.parse.source import HELD, Sink, Source, Step, Unlike

_outside = re.compile(rb'["{}\[\]\xff]').search
_inside = re.compile(rb'["\\\x00-\x1f\xff]').search
_scalar = re.compile(rb"[A-Za-z0-9+.\-]+")
_string = msgspec.json.Decoder(str).decode

_QUOTE, _BACKSLASH, _COLON, _COMMA, _MARK = b'"\\:,' + MARK
_OPEN, _CLOSE = b"{}"
_MOST_NAME: Final = 256
"""Bytes of a name, or of a scalar that nobody needs."""


def object_body(source: Source, call: Call, body: ObjectBody) -> Step[None]:
    """A call as an object with a name and arguments; other members mean nothing.

    Arguments before the name are held back. `parameters` and `arguments` are taken for each other.
    """
    places = {body.arguments, "arguments", "parameters"}
    held: list[bytes] | None = None
    yield from source.expect(_OPEN)
    more = yield from _more(source, first=True)
    while more:
        key = yield from text(source, _MOST_NAME)
        yield from source.expect(_COLON)
        if key == body.name and call.tool is None:
            call.start((yield from name(source, call)))
            for data in held or ():
                call.raw(data)
        elif key in places and held is None:
            held = []
            yield from _arguments(source, call.raw if call.tool else held.append)
        else:
            yield from value(source, _drop)
        call.whole = call.tool is not None and held is not None
        more = yield from _more(source, first=False)
    if call.tool is None:
        raise Unlike


def keyed_body(source: Source, call: Call) -> Step[None]:
    """A call as an object with the function's name for its one member."""
    yield from source.expect(_OPEN)
    call.start((yield from name(source, call)))
    yield from source.expect(_COLON)
    yield from _arguments(source, call.raw)
    call.whole = True
    yield from source.expect(_CLOSE)


def json_object(source: Source, call: Call) -> Step[None]:
    """Arguments that are an object."""
    if (yield from source.space()) != _OPEN:
        raise Unlike
    yield from value(source, call.raw)


def name(source: Source, call: Call) -> Step[str]:
    """A function's name as a JSON string; refused as soon as no function's name begins so."""
    if (yield from source.space()) != _QUOTE:
        raise Unlike
    while True:
        said = source.data[source.at + 1 : source.at + 1 + _MOST_NAME]
        end = said.find(b'"')
        begun = said if end < 0 else said[:end]
        if (end < 0 and len(said) == _MOST_NAME) or not call.may_be(begun.partition(b"\\")[0]):
            raise Unlike
        if end >= 0:
            return (yield from text(source, _MOST_NAME))
        yield


def text(source: Source, most: int) -> Step[str]:
    """A JSON string of at most `most` bytes."""
    pieces: list[bytes] = []
    left = most

    def sink(data: bytes) -> None:
        nonlocal left
        pieces.append(data)
        left -= len(data)
        if left < 0:
            raise Unlike

    if (yield from source.space()) != _QUOTE:
        raise Unlike
    yield from value(source, sink)
    try:
        return _string(b"".join(pieces))
    except msgspec.DecodeError:
        raise Unlike from None


def value(source: Source, sink: Sink) -> Step[None]:
    """Any value; its bytes go to `sink`, but for the `MARK`s in its strings.

    Raises:
        Unlike: it nests too deep, or a special token stands outside of its strings.
    """
    if (yield from source.space()) not in b'"{[':
        sink((yield from source.run(_scalar, _MOST_NAME)))
        return
    depth, quoted = 0, False
    start = at = source.at
    while True:
        found = (_inside if quoted else _outside)(source.data, at)
        if found is None:
            sink(source.data[start:] if start else source.data)
            source.at = len(source.data)
            yield
            start = at = 0
            continue
        at = found.end()
        byte = source.data[at - 1]
        if byte == _QUOTE:
            quoted = not quoted
        elif quoted:
            sink(source.data[start : at - 1])
            source.at = at - 1
            yield from _odd(source, sink, byte)
            start = at = source.at
            continue
        elif byte == _MARK or (byte in b"{[" and depth == DEEPEST):
            sink(source.data[start : at - 1])
            source.at = at - 1
            raise Unlike
        else:
            depth += 1 if byte in b"{[" else -1
        if not (quoted or depth):
            sink(source.data[start:at])
            source.at = at
            return


def _odd(source: Source, sink: Sink, byte: int) -> Step[None]:
    """What in a string is no character of it: an escape, a special token, a control character."""
    if byte == _MARK:
        special = yield from source.special()
        sink(special if special == MARK else escaped(special.decode()).encode())
        return
    source.at += 1
    if byte == _BACKSLASH:
        sink(bytes((byte, (yield from source.byte()))))
        source.at += 1
    else:
        sink(escaped(chr(byte)).encode())


def _arguments(source: Source, sink: Sink) -> Step[None]:
    """An object; a string that has the object's text; or null, which is an empty one."""
    first = yield from source.space()
    if first == _OPEN:
        yield from value(source, sink)
    elif first == _QUOTE:
        said = yield from text(source, HELD)
        sink(said.strip().encode() or b"{}")
    elif (yield from source.run(_scalar, _MOST_NAME)) == b"null":
        sink(b"{}")
    else:
        raise Unlike


def _more(source: Source, *, first: bool) -> Step[bool]:
    """Whether another member comes; takes the comma before it, or the object's end."""
    if (yield from source.space()) == _CLOSE:
        source.at += 1
        return False
    if not first:
        yield from source.expect(_COMMA)
    return True


def _drop(data: bytes) -> None:
    """Nobody needs it."""
