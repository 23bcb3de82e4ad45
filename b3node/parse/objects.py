"""Reads calls and arguments that are JSON: the text is passed through and only followed.

Followed are strings and the depth of brackets; whether the whole is JSON is checked once, at its end. One
thing is repaired: a control character in a string, which JSON wants escaped and models write bare.
"""

from __future__ import annotations

import re

import msgspec

from b3node.contract.strict_json import MAX_LEVELS
from b3node.dialects.dialect import ObjectBody
from b3node.dialects.outline import MARK
from b3node.parse.call import OpenCall, escaped
from b3node.parse.source import MAX_HELD_BYTES, MAX_NAME_BYTES, ByteSink, Mismatch, ReadSteps, Source

_outside = re.compile(rb'["{}\[\]\xff]').search
_inside = re.compile(rb'["\\\x00-\x1f\xff]').search
_scalar = re.compile(rb"[A-Za-z0-9+.\-]+")
_string = msgspec.json.Decoder(str).decode

_QUOTE, _BACKSLASH, _COLON, _COMMA, _MARK = b'"\\:,' + MARK
_OPEN, _CLOSE = b"{}"


def object_body(source: Source, call: OpenCall, body: ObjectBody) -> ReadSteps[None]:
    """Reads a call as an object with a name and arguments; other members are dropped.

    Arguments before the name are held back. `parameters` and `arguments` are synonyms.
    """
    places = {body.arguments, "arguments", "parameters"}
    held: list[bytes] | None = None
    yield from source.expect(_OPEN)
    more = yield from _more(source, first=True)
    while more:
        key = yield from text(source, MAX_NAME_BYTES)
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
        raise Mismatch


def keyed_body(source: Source, call: OpenCall) -> ReadSteps[None]:
    """Reads a call as an object whose only member is named after the function."""
    yield from source.expect(_OPEN)
    call.start((yield from name(source, call)))
    yield from source.expect(_COLON)
    yield from _arguments(source, call.raw)
    call.whole = True
    yield from source.expect(_CLOSE)


def json_object(source: Source, call: OpenCall) -> ReadSteps[None]:
    """Reads arguments that are an object."""
    if (yield from source.space()) != _OPEN:
        raise Mismatch
    yield from value(source, call.raw)


def name(source: Source, call: OpenCall) -> ReadSteps[str]:
    """Reads a function's name as a JSON string; fails as soon as no declared name begins so."""
    if (yield from source.space()) != _QUOTE:
        raise Mismatch
    while True:
        said = source.data[source.at + 1 : source.at + 1 + MAX_NAME_BYTES]
        end = said.find(b'"')
        begun = said if end < 0 else said[:end]
        if (end < 0 and len(said) == MAX_NAME_BYTES) or not call.may_become(begun.partition(b"\\")[0]):
            raise Mismatch
        if end >= 0:
            return (yield from text(source, MAX_NAME_BYTES))
        yield


def text(source: Source, most: int) -> ReadSteps[str]:
    """Reads a JSON string of at most `most` bytes."""
    pieces: list[bytes] = []
    left = most

    def sink(data: bytes) -> None:
        nonlocal left
        pieces.append(data)
        left -= len(data)
        if left < 0:
            raise Mismatch

    if (yield from source.space()) != _QUOTE:
        raise Mismatch
    yield from value(source, sink)
    try:
        return _string(b"".join(pieces))
    except msgspec.DecodeError:
        raise Mismatch from None


def value(source: Source, sink: ByteSink) -> ReadSteps[None]:
    """Reads any value; its bytes go to `sink`, without the `MARK`s in its strings.

    Raises:
        Mismatch: it nests too deep, or a special token stands outside its strings.
    """
    if (yield from source.space()) not in b'"{[':
        sink((yield from source.run(_scalar, MAX_NAME_BYTES)))
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
        elif byte == _MARK or (byte in b"{[" and depth == MAX_LEVELS):
            sink(source.data[start : at - 1])
            source.at = at - 1
            raise Mismatch
        else:
            depth += 1 if byte in b"{[" else -1
        if not (quoted or depth):
            sink(source.data[start:at])
            source.at = at
            return


def _odd(source: Source, sink: ByteSink, byte: int) -> ReadSteps[None]:
    """Reads an escape, a special token or a control character in a string."""
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


def _arguments(source: Source, sink: ByteSink) -> ReadSteps[None]:
    """Reads an object, a string with the text of an object, or null for an empty one."""
    first = yield from source.space()
    if first == _OPEN:
        yield from value(source, sink)
    elif first == _QUOTE:
        said = yield from text(source, MAX_HELD_BYTES)
        sink(said.strip().encode() or b"{}")
    elif (yield from source.run(_scalar, MAX_NAME_BYTES)) == b"null":
        sink(b"{}")
    else:
        raise Mismatch


def _more(source: Source, *, first: bool) -> ReadSteps[bool]:
    """Returns whether another member follows; takes the comma before it, or the object's end."""
    if (yield from source.space()) == _CLOSE:
        source.at += 1
        return False
    if not first:
        yield from source.expect(_COMMA)
    return True


def _drop(data: bytes) -> None:
    """Drops bytes."""
