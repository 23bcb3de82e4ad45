r"""Whose text is it: a client's characters are written in a private alphabet while a template runs.

A control token written by the template separates turns; the same characters typed by a client must stay
text. After rendering, both are one string, and templates trim, slice, join, escape and replace on the way,
so neither positions nor brackets around a client's text survive. What survives everything is the character
itself: before rendering, each character of a client's text that a marker could be made of is replaced by its
twin in plane 16 of Unicode (U+100000 + code). In the rendered string, whatever stands in plane 16 is the
client's and everything else the template's, down to the character: text that was split over two parts,
joined to a template's bracket, or left over when a template cut something out of its middle can never read
like a marker, because half of it is in the wrong alphabet. `plain` turns the twins back.

What stays as it is, because a template must be able to work on it:
- white space (templates trim), control characters and `" ' \ &` (templates escape them), the full stop (some
  look whether a description ends with one); no marker consists of these alone (see `markers`);
- characters beyond the basic plane, which have no twin left; the same holds;
- the words of JSON Schema itself, in a tool's parameters: templates look up `properties` and compare `type`
  with `string`. See `client_schema`.

So a template's logic never sees a client's words: `'</think>' in content` or `'/no_think' in content` is false
whatever the client wrote, and a request's own fields alone steer the template.

What was tried instead: sentinels for whole occurrences of a marker (misses `<` + name + `>` in templates that
write a schema's property names as tags, and text from whose middle the template removes something); brackets
around each text (break `trim` and `startswith`); a `str` subclass that remembers (lost in `join` and `~`).

A client's own plane-16 characters, all private use, would be taken for twins: they become U+FFFD first, and so
do the noncharacters U+FFFE and U+FFFF, whose twins are kept for `IMAGE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

_Codes = np.ndarray[tuple[int], np.dtype[np.uint32]]
_TWINS: Final = 0x100000
_BASIC: Final = 0x10000
_CODES: Final = 0x110000
_READABLE: Final = frozenset("\"'\\&.") | {
    chr(code) for code in range(_BASIC) if chr(code).isspace() or code < 0x20 or code == 0x7F
}

IMAGE: Final = "\U0010fffe"
"""Stands for one image in what a template is given; no client can write it."""

SCHEMA_WORDS: Final = frozenset(
    "$anchor $comment $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary additionalItems "  # noqa: SIM905 - a table
    "additionalProperties allOf anyOf array boolean const contains contentEncoding contentMediaType "
    "contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated "
    "description else enum example examples exclusiveMaximum exclusiveMinimum format if integer items "
    "maxContains maxItems maxLength maxProperties maximum minContains minItems minLength minProperties "
    "minimum multipleOf not null nullable number object oneOf pattern patternProperties prefixItems "
    "properties propertyNames readOnly required string then title type unevaluatedItems "
    "unevaluatedProperties uniqueItems writeOnly".split()
)
"""The keywords and type names of JSON Schema up to 2020-12, and OpenAPI's `nullable` and `example`."""


def _twin_table() -> _Codes:
    table = np.arange(_CODES, dtype="<u4")
    table[:_BASIC] += _TWINS
    readable = [ord(char) for char in _READABLE]
    table[readable] = readable
    table[[0xFFFE, 0xFFFF]] = 0xFFFD + _TWINS
    table[_TWINS:] = 0xFFFD + _TWINS
    return table


_TABLE: Final = _twin_table()


def has_twin(char: str) -> bool:
    """Whether a client's `char` is told apart from the template's."""
    return ord(char) < _BASIC and char not in _READABLE


def client(text: str) -> str:
    """A client's text, written in the private alphabet; as many characters as before.

    >>> plain(client("<|im_end|>"))
    '<|im_end|>'
    """
    return _TABLE[_codes(text)].tobytes().decode("utf-32-le")


def plain(text: str) -> str:
    """Rendered text with every twin turned back into the character it stands for."""
    codes = _codes(text).copy()
    codes[codes >= _TWINS] -= _TWINS
    return codes.tobytes().decode("utf-32-le")


def client_value(value: object) -> object:
    """A client's JSON value with every string in it, names of members too, written in the private alphabet."""
    if isinstance(value, str):
        return client(value)
    if isinstance(value, Mapping):
        return {client(name): client_value(member) for name, member in value.items()}
    if isinstance(value, list):
        return [client_value(element) for element in value]
    return value


def client_schema(value: object) -> object:
    """A client's JSON Schema, like `client_value`, but strings that are just a word of JSON Schema stay readable."""
    if isinstance(value, str):
        return value if value in SCHEMA_WORDS else client(value)
    if isinstance(value, Mapping):
        return {str(client_schema(name)): client_schema(member) for name, member in value.items()}
    if isinstance(value, list):
        return [client_schema(element) for element in value]
    return value


def _codes(text: str) -> _Codes:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
