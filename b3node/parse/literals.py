"""Reads values in Python's, JSON's or a dialect's own quotes and writes them as JSON, as they grow.

One reader for all three, because models mix them: Python's words in JSON's brackets, JSON's strings in a
Python call.
"""

from __future__ import annotations

import re
from typing import Final

from b3node.contract.strict_json import MAX_LEVELS
from b3node.dialects.outline import MARK
from b3node.parse.call import JsonText, encode, escaped
from b3node.parse.markers import MarkerSet
from b3node.parse.source import MAX_NAME_BYTES, Mismatch, ReadSteps, Source
from b3node.parse.utf8 import Utf8Decoder

END: Final = MARK
"""The end of a text (`Source.text`)."""

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

_MAX_NUMBER_BYTES: Final = 512
"""Bytes of a number: more digits than a double has, and than JSON readers accept."""
_PAIRS: Final = dict(zip(b"{[(", b"}])", strict=True))
_BACKSLASH, _COMMA, _COLON, _EQUALS, _BRACE, _PARENTHESIS, _MARK = b"\\,:={(" + MARK


class LiteralReader:
    """Reads bytes that may be a literal, as they come; any chunking of them gives the same result.

    Attributes:
        possible: whether they may still be one.
    """

    def __init__(self) -> None:
        self.possible = True
        self._utf8, self._source, self._out = Utf8Decoder(), Source(NOTHING), JsonText()
        self._steps, self._whole = self._read(), False

    def feed(self, data: bytes) -> None:
        """Takes more bytes; they may end inside a character."""
        self._advance(self._utf8.feed(data))

    def text(self) -> str | None:
        """Returns the JSON text of the literal, None if the bytes are none. Must be the last call."""
        self._advance(self._utf8.finish() + " ")  # a number or a word ends only with the next byte
        return self._out.take() if self.possible and self._whole else None

    def _advance(self, text: str) -> None:
        if text and self.possible:
            self._source.feed(text.encode())
            try:
                next(self._steps)
            except Mismatch:
                self.possible = False

    def _read(self) -> ReadSteps[None]:
        yield from value(self._source, self._out, NOTHING)
        self._whole = True
        yield from self._source.space()
        raise Mismatch


def keyword_arguments(source: Source, out: JsonText) -> ReadSteps[None]:
    """Reads the arguments of a Python call, from the parenthesis on."""
    yield from source.expect(_PARENTHESIS)
    yield from _members(source, out, NOTHING, 1, closed=_PAIRS[_PARENTHESIS], named=_EQUALS)


def quoted_arguments(source: Source, out: JsonText, quotes: MarkerSet[bytes]) -> ReadSteps[None]:
    """Reads an object whose strings stand between `quotes`, whose meaning is `END`."""
    if (yield from source.space()) != _BRACE:
        raise Mismatch
    yield from value(source, out, quotes)


def value(source: Source, out: JsonText, quotes: MarkerSet[bytes], depth: int = 0) -> ReadSteps[None]:
    """Reads any value.

    Raises:
        Mismatch: it is none, or nests too deep.
    """
    first = yield from source.space()
    if depth == MAX_LEVELS and first in _PAIRS:
        raise Mismatch
    if (yield from _quoted(source, out, quotes, first)):
        return
    if first == _BRACE:
        source.at += 1
        yield from _members(source, out, quotes, depth + 1, closed=_PAIRS[first], named=_COLON)
    elif first in _PAIRS:
        source.at += 1
        yield from _elements(source, out, quotes, depth + 1, closed=_PAIRS[first])
    else:
        out.write(_plain((yield from source.run(_word, _MAX_NUMBER_BYTES))))


def _plain(word: bytes) -> str:
    if word in _WORDS:
        return _WORDS[word]
    said = word.decode()
    if _number(said):
        return said
    try:
        return encode(float(said) if set(said) & set(".eE") else int(said)).decode()
    except (ValueError, OverflowError):
        raise Mismatch from None


def _members(
    source: Source, out: JsonText, quotes: MarkerSet[bytes], depth: int, *, closed: int, named: int
) -> ReadSteps[None]:
    """Reads members up to and with the closing bracket."""
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
    source: Source, out: JsonText, quotes: MarkerSet[bytes], depth: int, *, closed: int
) -> ReadSteps[None]:
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


def _name(source: Source, out: JsonText, quotes: MarkerSet[bytes]) -> ReadSteps[None]:
    first = yield from source.space()
    if (yield from _quoted(source, out, quotes, first)):
        return
    out.write('"')
    out.string((yield from source.run(_key, MAX_NAME_BYTES)))
    out.settle()
    out.write('"')


def _quoted(source: Source, out: JsonText, quotes: MarkerSet[bytes], first: int) -> ReadSteps[bool]:
    """Reads a string, if one begins here; returns whether it does."""
    if first in _odd:
        source.at += 1
        out.write('"')
        yield from _escaping(source, out, first)
    else:
        found = yield from source.here(quotes)
        if found is None:
            return False
        if found != END:
            raise Mismatch
        out.write('"')
        yield from source.text(quotes, out.string)
    out.settle()
    out.write('"')
    return True


def _escaping(source: Source, out: JsonText, quote: int) -> ReadSteps[None]:
    """Reads a string with escapes, after its first quote."""
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


def _escape(source: Source, out: JsonText) -> ReadSteps[None]:
    letter = yield from source.byte()
    if letter in _escapes:
        source.at += 1
        out.string(_escapes[letter].encode())
    elif letter in _hex:
        source.at += 1
        yield from _code(source, out, letter)
    else:
        out.string(b"\\")


def _code(source: Source, out: JsonText, letter: int) -> ReadSteps[None]:
    """Reads a character by its number; halves of surrogate pairs are passed through as JSON escapes."""
    digit, count = _hex[letter]
    digits = b""
    while len(digits) < count:
        byte = bytes([(yield from source.byte())])
        if not digit.match(byte):
            raise Mismatch
        source.at += 1
        digits += byte
    number = int(digits, 16)
    out.settle()
    if 0xD800 <= number < 0xE000:
        out.write(f"\\u{number:04x}")
    elif number <= 0x10FFFF:
        out.write(escaped(chr(number)))
    else:
        raise Mismatch


NOTHING: Final[MarkerSet[bytes]] = MarkerSet(())
"""Quotes of a dialect that has none of its own."""
