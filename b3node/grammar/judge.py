"""Whether the finished arguments of a call are what the function's schema asks for.

Asked in the middle of a stream, so it is bounded: in steps, not in time, so that the same arguments always get the same
verdict. First by the compiler's own reading of the schema, whose patterns never backtrack; each value is looked at
once for each obligation, however the schema refers to itself. A schema that it cannot read, or not in that many steps, is
read by `jsonschema` instead, without patterns, because those are somebody else's regular expressions, and without
`unevaluated*`, which follow references uncounted. Formats are not asked for: they are
annotations to most validators, and a call that a tool would take is no broken one.

What no validator can read (a reference out of the document, a keyword of the wrong form) is not held against a call;
what takes too many steps is, as nobody has seen that it matches.

Setting up and looking things up is work too, so the size of the schema, of values that are compared as a whole, and
names matched with names count as well: the worst that was found takes some 60 ms, a usual call one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final

import msgspec

from b3node.contract.request import FunctionTool
from b3node.dialects.kinds import json_type
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.literals import Lits, lit
from b3node.grammar.constraints.object_shape import ObjectShape
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import StringShape
from b3node.grammar.constraints.values import canonical
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import ALL, Algebra, Lang, TooLarge
from b3node.grammar.schema.budget import Budget
from b3node.grammar.schema.document import LISTS, MAPS, ONES, Document
from b3node.grammar.schema.metaschema import LIBRARY, draft_of

MAX_STEPS: Final = 5_500
"""Steps of one verdict by the compiler's reading, at some 8 microseconds each. Of 721 calls of 300 schemas from the wild
half took less than 120, and none more than 4,700."""
MAX_KEYWORDS: Final = 1_500
"""Keywords that `jsonschema` may look at for one verdict, at some ten microseconds each."""
MAX_EXPRESSIONS: Final = 20_000
MAX_SCHEMA_BYTES: Final = 128 * 1024
"""Bytes of a schema that is read at all: twice of what a grammar is made for."""
_CHARS_PER_STEP: Final = 4
"""Characters matched with a pattern that count as a step."""
_SCHEMA_BYTES_PER_STEP: Final = 48
"""Bytes of a schema that count as a step: it is taken apart before anything is asked of it."""
_VALUE_BYTES_PER_STEP: Final = 32
"""Bytes of a value that count as a step where it is compared as a whole."""
_LOOKS_PER_STEP: Final = 128
"""Comparisons of names, one for each member and each name that is known, that count as a step."""
_PATTERNS_PER_STEP: Final = 2
"""Names of members matched with a pattern that count as a step."""
_ITEMS_PER_KEYWORD: Final = 8
"""Members or items that `jsonschema` goes through at the price of a keyword."""

CallJudge = Callable[[str, str], bool]
"""A function's name and arguments as JSON text to whether they are a JSON object that matches its schema."""
_decode = msgspec.json.Decoder().decode


def judge(tools: Iterable[FunctionTool]) -> CallJudge:
    """The judge of the calls of one request; it never raises, and reads a schema when it is first asked about it.

    A name that is not among `tools` matches nothing. A function without `parameters` takes `{}` alone.
    """
    verdicts = {tool.name: _Verdicts(tool.parameters) for tool in tools}

    def matches(name: str, arguments: str) -> bool:
        known = verdicts.get(name)
        try:
            value = _decode(arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return False
        return known is not None and isinstance(value, dict) and known.matches(value)

    return matches


class _Verdicts:
    """The verdicts by one schema."""

    def __init__(self, schema: dict[str, object] | None) -> None:
        self._schema = schema

    def matches(self, value: dict[str, object]) -> bool:
        if self._schema is None:
            return not value
        if _size(self._schema) > MAX_SCHEMA_BYTES:
            return False
        try:
            return _CountedResolver(_without_formats(self._schema)).matches(value)
        except (Inexact, TooLarge, RecursionError):
            return _by_keywords(self._schema, value)


class _CountedResolver(SchemaResolver):
    """The compiler's reading of a schema, for one verdict."""

    def __init__(self, schema: object) -> None:
        spend = Budget(MAX_STEPS).spend
        spend(_size(schema) // _SCHEMA_BYTES_PER_STEP)
        super().__init__(Document(schema), Algebra(MAX_EXPRESSIONS, spend), spend)
        self._steps = spend
        self._met: dict[tuple[int, Lits], bool] = {}
        self._sizes: dict[int, int] = {}

    def matches(self, value: object) -> bool:
        return self.meets(value, lit(self.document.root))

    def meets(self, value: object, lits: Lits) -> bool:
        """Whether a part of the value meets an obligation; each part is asked once."""
        key = (id(value), lits)  # the parts live as long as this does
        if key not in self._met:
            self._steps(1)
            if isinstance(value, str):
                self._met[key] = self._is_text(value, lits)
            else:
                if isinstance(value, dict | list):
                    self._charge(value, lits)
                self._met[key] = super().meets(value, lits)
        return self._met[key]

    def _charge(self, value: dict[str, object] | list[object], lits: Lits) -> None:
        """Counts what looking at a value takes beside its parts."""
        for shape in self.shapes(lits, json_type(value)):
            looks, whole = 0, False
            if isinstance(shape, ObjectShape):
                wide = len(shape.name_sets) * _LOOKS_PER_STEP // _PATTERNS_PER_STEP
                looks = len(value) * (1 + len(shape.properties) + wide + len(shape.clauses))
                whole = shape.values is not None
            elif isinstance(shape, ArrayShape):
                looks = len(value) * (1 + len(shape.counts) + len(shape.clauses))
                whole = shape.values is not None or bool(shape.unique)
            if whole and id(value) not in self._sizes:
                self._sizes[id(value)] = _size(value)
            self._steps(
                looks // _LOOKS_PER_STEP + (self._sizes[id(value)] // _VALUE_BYTES_PER_STEP if whole else 0)
            )

    def _is_text(self, text: str, lits: Lits) -> bool:
        shapes = self.shapes(lits, "string")
        return any(self._speaks(shape.lang, text) for shape in shapes if isinstance(shape, StringShape))

    def _speaks(self, lang: Lang, text: str) -> bool:
        if lang == ALL:
            return True
        self._steps(len(text) // _CHARS_PER_STEP)
        return self.algebra.matches(lang, text)


# -------------------------------------------------------------------------------------------------------- jsonschema
_PATTERNED: Final = frozenset({"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"})
"""What is left out: regular expressions of somebody else's, and what follows references without counting them."""
_CONTRARY: Final = frozenset({"not", "if", "oneOf", "contains", "dependencies", "dependentSchemas"})
_LEANS_ON: Final = {
    "patternProperties": ("additionalProperties", "unevaluatedProperties"),
    "if": ("then", "else"),
    "contains": ("unevaluatedItems",),
}
"""Keywords that speak of what another one leaves, and would forbid more without it."""


class _TooMuch(Exception):  # noqa: N818 - it is a verdict
    """The steps are used up."""


def _by_keywords(schema: dict[str, object], value: object) -> bool:
    """The verdict of `jsonschema` on a schema without patterns and formats, within bounds."""
    draft = draft_of(schema)
    work = _Work(msgspec.json.encode(schema))
    checks = {**draft.VALIDATORS, "uniqueItems": _unique}
    checks = {name: _bounded(name, check, work) for name, check in checks.items()}
    try:
        bounded = import_module(f"{LIBRARY}.validators").extend(draft, checks)
        validator = bounded(_without_patterns(schema), registry=import_module("referencing").Registry())
        return next(validator.iter_errors(value), None) is None
    except (_TooMuch, RecursionError):
        return False
    except Exception:  # noqa: BLE001 - a library's opinion of a schema that it cannot read
        return True


class _Work:
    """Counts the work of one verdict of `jsonschema` by a schema, given as JSON."""

    def __init__(self, schema: bytes) -> None:
        self._left = MAX_KEYWORDS - len(schema) // _SCHEMA_BYTES_PER_STEP
        self._search = 1 + len(schema) // _SCHEMA_BYTES_PER_STEP
        self._embedded = len(_IDENTIFIED.findall(schema)) > 1

    def count(self, name: str, keyword: object, value: object) -> None:
        """Counts one keyword of a schema for a value, before it is looked at. Raises `_TooMuch`."""
        steps = 1
        if name in _COMPARING:
            compared = len(keyword) if isinstance(keyword, list) else 1
            steps += compared // _ITEMS_PER_KEYWORD + compared * _size(value) // _VALUE_BYTES_PER_STEP
        elif name in _REFERRING:
            near = isinstance(keyword, str) and (keyword == "#" or keyword.startswith("#/"))
            steps = 1 if near and not self._embedded else self._search
        elif isinstance(keyword, dict | list):
            steps += len(keyword) // _ITEMS_PER_KEYWORD
        if isinstance(value, dict | list):
            steps += len(value) // _ITEMS_PER_KEYWORD
        self._left -= steps
        if self._left < 0:
            raise _TooMuch


_COMPARING: Final = frozenset({"const", "enum", "uniqueItems"})
_REFERRING: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_IDENTIFIED: Final = re.compile(rb'"\$?id":"')
"""A schema with a name of its own: where others are embedded, and by an anchor, each reference is looked for in all."""


def _bounded(name: str, check: Any, work: _Work) -> Any:
    """A keyword's check that counts, and that says nothing where it cannot read the keyword."""

    def bounded(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Exception]:
        work.count(name, keyword, value)
        try:
            yield from check(validator, keyword, value, schema) or ()
        except (_TooMuch, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - as above, keyword by keyword
            return

    return bounded


def _size(value: object) -> int:
    """Bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def _unique(_: Any, keyword: Any, value: Any, __: Any) -> Iterator[Exception]:
    """`uniqueItems` in one pass; the library compares each with each."""
    if keyword is True and isinstance(value, list) and len({canonical(item) for item in value}) < len(value):
        yield import_module(LIBRARY).ValidationError("items are equal")


def _without_formats(schema: object) -> object:
    return _mapped(schema, lambda table: {key: each for key, each in table.items() if key != "format"})


def _without_patterns(schema: object) -> object:
    return _mapped(schema, _plainer)


def _plainer(table: dict[str, object]) -> dict[str, object]:
    """A subschema without patterns of its own, and without what would then mean the contrary of them."""
    dropped = {
        key for key, each in table.items() if key in _PATTERNED or (key in _CONTRARY and _has_pattern(each))
    }
    dropped.update(other for key in dropped.copy() for other in _LEANS_ON.get(key, ()))
    return {key: each for key, each in table.items() if key not in dropped and key != "format"}


def _has_pattern(value: object) -> bool:
    """Whether a pattern may be asked for somewhere below; references are not followed, so all of them may."""
    if isinstance(value, list):
        return any(map(_has_pattern, value))
    if not isinstance(value, dict):
        return False
    return any(key in {*_PATTERNED, "$ref"} or _has_pattern(each) for key, each in value.items())


def _mapped(schema: object, change: Callable[[dict[str, object]], dict[str, object]]) -> object:
    """A copy of a schema with each of its subschemas changed, from the outside in."""
    if not isinstance(schema, dict):
        return schema
    out = change(schema)
    for key, value in out.items():
        if key in MAPS and isinstance(value, dict):
            out[key] = {name: _mapped(each, change) for name, each in value.items()}
        elif key in LISTS and isinstance(value, list):
            out[key] = [_mapped(each, change) for each in value]
        elif key in ONES:
            out[key] = _mapped(value, change)
    return out
