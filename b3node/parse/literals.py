"""Values as Python writes them, as JSON does, or between quotes of a dialect's own: all to JSON, as they grow.

One reader for the three, because models mix them: Python's words in JSON's brackets, JSON's strings in a Python call.
"""

from __future__ import annotations

import re
from typing import Final

from b3node.dialects.outline import MARK
from b3node.parse.call import DEEPEST, JsonText, encode, escaped
from b3node.parse.markers import Markers
from b3node.parse.source import Source, Step, Unlike

END: Final = MARK
"""Means the end of a text (`Source.text`)."""

_WORDS: Final = {
    b"true": "true", b"True": "true", b"false": "false", b"False": "false", b"null": "null", b"None": "null",
}  # fmt: skip
_word = re.compile(rb"[A-Za-z0-9_+.\-]+")
_number = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?").fullmatch
_odd = {quote: re.compile(b"[\\\\\xff" + bytes([quote]) + b"]").search for quote in b"\"'"}
_hex = {
    letter: (re.compile(rb"[0-9A-Fa-f]"), digits) for letter, digits in zip(b"xuU", (2, 4, 8), strict=True)
}
_escapes: Final = dict(zip(b"\"'\\/bfnrtav0\n", ('"', "'", "\\", "/", *"\b\f\n\r\t\a\v\0", ""), strict=True))
_key = re.compile(rb"[^\s:=,{}\[\]()\"'\xff]+")

_MOST_NAME: Final = 256
"""Bytes of a member's name."""
_MOST_WORD: Final = 512
"""Bytes of a number: more digits than a double has, and than JSON readers take."""
_PAIRS: Final = dict(zip(b"{[(", b"}])", strict=True))
_BACKSLASH, _COMMA, _COLON, _EQUALS, _BRACE, _PARENTHESIS, _MARK = b"\\,:={(" + MARK


def converted(text: str) -> str | None:
    """A literal's JSON text; None if `text` is no literal."""
    source, out = Source(NOTHING), JsonText()
    source.feed(text.encode(errors="replace") + b" ")
    try:
        for _ in value(source, out, NOTHING):
            return None
        for _ in source.space():
            return out.take()
    except Unlike:
        pass
    return None


def keyword_arguments(source: Source, out: JsonText) -> Step[None]:
    """What stands behind a function's name in a call of Python."""
    yield from source.expect(_PARENTHESIS)
    yield from _members(source, out, NOTHING, 1, closed=_PAIRS[_PARENTHESIS], named=_EQUALS)


def quoted_arguments(source: Source, out: JsonText, quotes: Markers[bytes]) -> Step[None]:
    """An object whose strings stand between `quotes`, which mean `END`."""
    if (yield from source.space()) != _BRACE:
        raise Unlike
    yield from value(source, out, quotes)


def value(source: Source, out: JsonText, quotes: Markers[bytes], depth: int = 0) -> Step[None]:
    """Any value.

    Raises:
        Unlike: it is none, or nests too deep.
    """
    first = yield from source.space()
    if depth == DEEPEST:
        raise Unlike
    if (yield from _quoted(source, out, quotes, first)):
        return
    if first == _BRACE:
        source.at += 1
        yield from _members(source, out, quotes, depth + 1, closed=_PAIRS[first], named=_COLON)
    elif first in _PAIRS:
        source.at += 1
        yield from _elements(source, out, quotes, depth + 1, closed=_PAIRS[first])
    else:
        out.write(_plain((yield from source.run(_word, _MOST_WORD))))


def _plain(word: bytes) -> str:
    if word in _WORDS:
        return _WORDS[word]
    said = word.decode()
    if _number(said):
        return said
    try:
        return encode(float(said) if set(said) & set(".eE") else int(said)).decode()
    except (ValueError, OverflowError):
        raise Unlike from None


def _members(
    source: Source, out: JsonText, quotes: Markers[bytes], depth: int, *, closed: int, named: int
) -> Step[None]:
    """Members up to the bracket that closes them, which is taken."""
    before = "{"
    while (yield from source.space()) != closed:
        if before == ",":
            yield from source.expect(_COMMA)
            if (yield from source.space()) == closed:
                break
        out.write(before)
        before = ","
        yield from _name(source, out, quotes)
        yield from source.expect(named)
        out.write(":")
        yield from value(source, out, quotes, depth)
    source.at += 1
    out.write("{}" if before == "{" else "}")


def _elements(
    source: Source, out: JsonText, quotes: Markers[bytes], depth: int, *, closed: int
) -> Step[None]:
    before = "["
    while (yield from source.space()) != closed:
        if before == ",":
            yield from source.expect(_COMMA)
            if (yield from source.space()) == closed:
                break
        out.write(before)
        before = ","
        yield from value(source, out, quotes, depth)
    source.at += 1
    out.write("[]" if before == "[" else "]")


def _name(source: Source, out: JsonText, quotes: Markers[bytes]) -> Step[None]:
    first = yield from source.space()
    if (yield from _quoted(source, out, quotes, first)):
        return
    out.write('"')
    out.string((yield from source.run(_key, _MOST_NAME)))
    out.settle()
    out.write('"')


def _quoted(source: Source, out: JsonText, quotes: Markers[bytes], first: int) -> Step[bool]:
    """A string, if one stands here."""
    if first in _odd:
        source.at += 1
        out.write('"')
        yield from _escaping(source, out, first)
    else:
        found = yield from source.here(quotes)
        if found is None:
            return False
        if found != END:
            raise Unlike
        out.write('"')
        yield from source.text(quotes, out.string)
    out.settle()
    out.write('"')
    return True


def _escaping(source: Source, out: JsonText, quote: int) -> Step[None]:
    """A string with escapes, behind its first quote."""
    while True:
        found = _odd[quote](source.data, source.at)
        upto = found.start() if found else len(source.data)
        if upto > source.at:
            out.string(source.data[source.at : upto])
            source.at = upto
        if not found:
            yield
            continue
        if found[0][0] == _MARK:
            out.string((yield from source.special()))
            continue
        source.at += 1
        if found[0][0] == quote:
            return
        yield from _escape(source, out)


def _escape(source: Source, out: JsonText) -> Step[None]:
    letter = yield from source.byte()
    if letter in _escapes:
        source.at += 1
        out.string(_escapes[letter].encode())
    elif letter in _hex:
        source.at += 1
        yield from _code(source, out, letter)
    else:
        out.string(b"\\")


def _code(source: Source, out: JsonText, letter: int) -> Step[None]:
    """A character by its number; halves of surrogate pairs stand in JSON as they do here."""
    digit, count = _hex[letter]
    digits = b""
    while len(digits) < count:
        byte = bytes([(yield from source.byte())])
        if not digit.match(byte):
            raise Unlike
        source.at += 1
        digits += byte
    number = int(digits, 16)
    out.settle()
    if 0xD800 <= number < 0xE000:
        out.write(f"\\u{number:04x}")
    elif number <= 0x10FFFF:
        out.write(escaped(chr(number)))
    else:
        raise Unlike


NOTHING: Final[Markers[bytes]] = Markers(())
"""No quotes of a dialect's own."""
