r"""Provenance of text: a client's characters are written in a private alphabet while a template runs.

A control token written by the template separates turns; the same characters typed by a client must stay
text. After rendering, both are one string, and templates trim, slice, join, escape and replace on the way,
so neither positions nor brackets around a client's text survive. Only the character itself survives all of
this: before rendering, each character of a client's text that a marker could be made of is replaced by its
twin in plane 16 of Unicode (U+100000 + code). In the rendered string, all characters in plane 16 are the
client's and all others the template's, down to the character: text that was split over two parts, joined to a
template's bracket, or left over when a template cut something out of its middle can never read like a marker,
because half of it is in the wrong alphabet. `plain` turns the twins back.

Some characters and words stay as they are, because a template must be able to work on them:
- white space (templates trim), control characters and `" ' \ &` (templates escape them), the full stop (some
  look whether a description ends with one); no marker consists of these alone (see `markers`);
- characters beyond the basic plane, which have no twin left; the same holds;
- the words of JSON Schema itself, in a tool's parameters: templates look up `properties` and compare `type`
  with `string`. See `client_schema`.

So a template's logic never sees a client's words: `'</think>' in content` or `'/no_think' in content` is
false for any text of a client, and a request's own fields alone steer the template.

Tried instead: sentinels for whole occurrences of a marker (misses `<` + name + `>` in templates that
write a schema's property names as tags, and text from whose middle the template removes something); brackets
around each text (break `trim` and `startswith`); a `str` subclass that remembers (lost in `join` and `~`).

A client's own plane-16 characters, all private use, would be taken for twins: they become U+FFFD first, and
so do the noncharacters U+FFFE and U+FFFF, whose twins are kept for `IMAGE`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

_Codes = np.ndarray[tuple[int], np.dtype[np.uint32]]
_FIRST_TWIN: Final = 0x100000
_BASIC_PLANE_CODES: Final = 0x10000
_UNICODE_CODES: Final = 0x110000
_READABLE: Final = frozenset("\"'\\&.") | {
    chr(code) for code in range(_BASIC_PLANE_CODES) if chr(code).isspace() or code < 0x20 or code == 0x7F
}

IMAGE: Final = "\U0010fffe"
"""Placeholder of one image in a template's input; no client can write it."""

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
    table = np.arange(_UNICODE_CODES, dtype="<u4")
    table[:_BASIC_PLANE_CODES] += _FIRST_TWIN
    readable = [ord(char) for char in _READABLE]
    table[readable] = readable
    table[[0xFFFE, 0xFFFF]] = 0xFFFD + _FIRST_TWIN
    table[_FIRST_TWIN:] = 0xFFFD + _FIRST_TWIN
    return table


_TABLE: Final = _twin_table()


def has_twin(char: str) -> bool:
    """Returns whether a client's `char` is written as a twin, distinct from the template's."""
    return ord(char) < _BASIC_PLANE_CODES and char not in _READABLE


def client(text: str) -> str:
    """Returns a client's text in the private alphabet; as many characters as before.

    >>> plain(client("<|im_end|>"))
    '<|im_end|>'
    """
    return _TABLE[_codes(text)].tobytes().decode("utf-32-le")


def plain(text: str) -> str:
    """Returns rendered text with every twin turned back into the character it stands for."""
    codes = _codes(text).copy()
    codes[codes >= _FIRST_TWIN] -= _FIRST_TWIN
    return codes.tobytes().decode("utf-32-le")


def client_value(value: object) -> object:
    """Returns a client's JSON value with all its strings, names of members too, in the private alphabet."""
    if isinstance(value, str):
        return client(value)
    if isinstance(value, Mapping):
        return {client(name): client_value(member) for name, member in value.items()}
    if isinstance(value, list):
        return [client_value(element) for element in value]
    return value


def client_schema(value: object) -> object:
    """Returns a client's JSON Schema, like `client_value`; the words of JSON Schema stay readable."""
    if isinstance(value, str):
        return value if value in SCHEMA_WORDS else client(value)
    if isinstance(value, Mapping):
        return {str(client_schema(name)): client_schema(member) for name, member in value.items()}
    if isinstance(value, list):
        return [client_schema(element) for element in value]
    return value


def _codes(text: str) -> _Codes:
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
