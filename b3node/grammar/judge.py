"""Validation of the finished arguments of a call against the function's schema.

A verdict is needed in the middle of a stream, so its work is bounded: in steps, not in time, so that the
same arguments always get the same verdict. The compiler's resolver is tried first; its patterns never
backtrack, and it checks each value once for each constraint, even in recursive schemas. If it cannot read
the schema, or not in that many steps, `jsonschema` validates instead, without patterns, because the client's
regular expressions may backtrack, and without `unevaluated*`, which follow references uncounted. Formats are
ignored: they are annotations to most validators, and a tool may accept the call.

A part of a schema that no validator can read (a reference out of the document, a keyword of the wrong form)
makes no call invalid. A call whose verdict would pass the bound of steps is invalid, as no match was shown.

Setup and lookups are work too, so the size of the schema, the size of values that are compared as a whole,
and comparisons of names count as steps: the worst case found takes some 60 ms, a usual call 1 ms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final

import msgspec

from b3node.contract.request import FunctionTool
from b3node.contract.tools import MAX_SCHEMA_BYTES
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
"""Steps of one verdict by the resolver, at some 8 microseconds each. Of 721 calls of 300 schemas from the
wild half took less than 120, and none more than 4,700."""
MAX_KEYWORDS: Final = 1_500
"""Keywords that `jsonschema` may check for one verdict, at some 10 microseconds each."""
MAX_EXPRESSIONS: Final = 20_000
"""Interned expressions of the algebra for one verdict."""
MAX_JUDGED_SCHEMA_BYTES: Final = 2 * MAX_SCHEMA_BYTES
"""Bytes of a schema that calls are validated against: twice the bound for a grammar."""
_CHARS_PER_STEP: Final = 4
"""Characters matched with a pattern that count as a step."""
_SCHEMA_BYTES_PER_STEP: Final = 48
"""Bytes of a schema that count as a step: it is taken apart before a value is checked."""
_VALUE_BYTES_PER_STEP: Final = 32
"""Bytes of a value that count as a step where it is compared as a whole."""
_COMPARISONS_PER_STEP: Final = 128
"""Comparisons of names that count as a step: each member with each known name."""
_PATTERN_MATCHES_PER_STEP: Final = 2
"""Names of members matched with a pattern that count as a step."""
_ITEMS_PER_KEYWORD: Final = 8
"""Members or items that count as a keyword of `jsonschema`."""

ArgumentsJudge = Callable[[str, str], bool]
"""Takes a function's name and its arguments as JSON text; returns whether they are a JSON object that matches
the function's schema."""
_decode = msgspec.json.Decoder().decode


def judge(tools: Iterable[FunctionTool]) -> ArgumentsJudge:
    """Returns the judge of the calls of one request, which never raises.

    A schema is read only to judge a call. A name that is not in `tools` is invalid. A function
    without `parameters` takes `{}` alone.
    """
    verdicts = {tool.name: _SchemaJudge(tool.parameters) for tool in tools}

    def matches(name: str, arguments: str) -> bool:
        known = verdicts.get(name)
        try:
            value = _decode(arguments)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return False
        return known is not None and isinstance(value, dict) and known.matches(value)

    return matches


class _SchemaJudge:
    """Validator of the arguments of one function."""

    def __init__(self, schema: dict[str, object] | None) -> None:
        self._schema = schema

    def matches(self, value: dict[str, object]) -> bool:
        if self._schema is None:
            return not value
        if _size(self._schema) > MAX_JUDGED_SCHEMA_BYTES:
            return False
        try:
            return _CountedResolver(_without_formats(self._schema)).matches(value)
        except (Inexact, TooLarge, RecursionError):
            return _by_jsonschema(self._schema, value)


class _CountedResolver(SchemaResolver):
    """Resolver of a schema for one verdict, with its work counted."""

    def __init__(self, schema: object) -> None:
        spend = Budget(MAX_STEPS).spend
        spend(_size(schema) // _SCHEMA_BYTES_PER_STEP)
        super().__init__(Document(schema), Algebra(MAX_EXPRESSIONS, spend), spend)
        self._verdicts: dict[tuple[int, Lits], bool] = {}
        self._sizes: dict[int, int] = {}

    def matches(self, value: object) -> bool:
        return self.meets(value, lit(self.document.root))

    def meets(self, value: object, lits: Lits) -> bool:
        """Returns whether a part of the value meets a constraint; each pair is checked once."""
        key = (id(value), lits)  # the parts live as long as this does
        if key not in self._verdicts:
            self._spend(1)
            if isinstance(value, str):
                self._verdicts[key] = self._matches_text(value, lits)
            else:
                if isinstance(value, dict | list):
                    self._charge(value, lits)
                self._verdicts[key] = super().meets(value, lits)
        return self._verdicts[key]

    def _charge(self, value: dict[str, object] | list[object], lits: Lits) -> None:
        """Counts the work for a value itself, without its parts."""
        for shape in self.shapes(lits, json_type(value)):
            comparisons, whole = 0, False
            if isinstance(shape, ObjectShape):
                pattern_matches = len(shape.name_sets) * _COMPARISONS_PER_STEP // _PATTERN_MATCHES_PER_STEP
                comparisons = len(value) * (1 + len(shape.properties) + pattern_matches + len(shape.clauses))
                whole = shape.values is not None
            elif isinstance(shape, ArrayShape):
                comparisons = len(value) * (1 + len(shape.counts) + len(shape.clauses))
                whole = shape.values is not None or bool(shape.unique)
            if whole and id(value) not in self._sizes:
                self._sizes[id(value)] = _size(value)
            self._spend(
                comparisons // _COMPARISONS_PER_STEP
                + (self._sizes[id(value)] // _VALUE_BYTES_PER_STEP if whole else 0)
            )

    def _matches_text(self, text: str, lits: Lits) -> bool:
        shapes = self.shapes(lits, "string")
        return any(
            self._matches_language(shape.lang, text) for shape in shapes if isinstance(shape, StringShape)
        )

    def _matches_language(self, lang: Lang, text: str) -> bool:
        if lang == ALL:
            return True
        self._spend(len(text) // _CHARS_PER_STEP)
        return self.algebra.matches(lang, text)


# ------------------------------------------------------------------------------------------------ jsonschema
_UNSUPPORTED: Final = frozenset({"pattern", "patternProperties", "unevaluatedItems", "unevaluatedProperties"})
"""Keywords that are left out: the client's regular expressions may backtrack, and `unevaluated*` follow
references uncounted."""
_CONTRAVARIANT: Final = frozenset({"not", "if", "oneOf", "contains", "dependencies", "dependentSchemas"})
"""Keywords that may forbid more if a pattern in them is left out."""
_DEPENDENTS: Final = {
    "patternProperties": ("additionalProperties", "unevaluatedProperties"),
    "if": ("then", "else"),
    "contains": ("unevaluatedItems",),
}
"""Keywords that constrain only what another one leaves: without the other they would forbid more."""


class _StepsExceededError(Exception):
    """The bound of steps is passed."""


def _by_jsonschema(schema: dict[str, object], value: object) -> bool:
    """Returns the verdict of `jsonschema` on a schema without patterns and formats, within bounds."""
    draft = draft_of(schema)
    work = _WorkCounter(msgspec.json.encode(schema))
    checks = {**draft.VALIDATORS, "uniqueItems": _unique}
    checks = {name: _bounded(name, check, work) for name, check in checks.items()}
    try:
        bounded = import_module(f"{LIBRARY}.validators").extend(draft, checks)
        validator = bounded(_without_patterns(schema), registry=import_module("referencing").Registry())
        return next(validator.iter_errors(value), None) is None
    except (_StepsExceededError, RecursionError):
        return False
    except Exception:  # noqa: BLE001 - any error of the library on a schema that it cannot read
        return True


class _WorkCounter:
    """Counter of the work of one verdict of `jsonschema`.

    Args:
        schema: as JSON; its size counts too.
    """

    def __init__(self, schema: bytes) -> None:
        self._left = MAX_KEYWORDS - len(schema) // _SCHEMA_BYTES_PER_STEP
        self._search = 1 + len(schema) // _SCHEMA_BYTES_PER_STEP
        self._embedded = len(_IDENTIFIED.findall(schema)) > 1

    def count(self, name: str, keyword: object, value: object) -> None:
        """Counts one keyword for a value, before it is checked; may raise `_StepsExceededError`."""
        steps = 1
        if name in _COMPARING_KEYWORDS:
            compared = len(keyword) if isinstance(keyword, list) else 1
            steps += compared // _ITEMS_PER_KEYWORD + compared * _size(value) // _VALUE_BYTES_PER_STEP
        elif name in _REFERENCE_KEYWORDS:
            near = isinstance(keyword, str) and (keyword == "#" or keyword.startswith("#/"))
            steps = 1 if near and not self._embedded else self._search
        elif isinstance(keyword, dict | list):
            steps += len(keyword) // _ITEMS_PER_KEYWORD
        if isinstance(value, dict | list):
            steps += len(value) // _ITEMS_PER_KEYWORD
        self._left -= steps
        if self._left < 0:
            raise _StepsExceededError


_COMPARING_KEYWORDS: Final = frozenset({"const", "enum", "uniqueItems"})
"""Keywords that compare whole values."""
_REFERENCE_KEYWORDS: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
_IDENTIFIED: Final = re.compile(rb'"\$?id":"')
"""A schema with an `$id`. With an embedded one, each reference is searched for in the whole schema, as one
by an anchor always is."""


def _bounded(name: str, check: Any, work: _WorkCounter) -> Any:
    """Wraps a keyword's check: it counts its work, and finds no fault where it cannot read the keyword."""

    def bounded(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[Exception]:
        work.count(name, keyword, value)
        try:
            yield from check(validator, keyword, value, schema) or ()
        except (_StepsExceededError, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - as above, keyword by keyword
            return

    return bounded


def _size(value: object) -> int:
    """Returns the bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def _unique(_: Any, keyword: Any, value: Any, __: Any) -> Iterator[Exception]:
    """Checks `uniqueItems` in one pass; the library compares each item with each."""
    if keyword is True and isinstance(value, list) and len({canonical(item) for item in value}) < len(value):
        yield import_module(LIBRARY).ValidationError("items are equal")


def _without_formats(schema: object) -> object:
    return _map_subschemas(
        schema, lambda table: {key: each for key, each in table.items() if key != "format"}
    )


def _without_patterns(schema: object) -> object:
    return _map_subschemas(schema, _drop_patterns)


def _drop_patterns(table: dict[str, object]) -> dict[str, object]:
    """Returns a subschema without its patterns, and without keywords that would forbid more without them."""
    dropped = {
        key
        for key, each in table.items()
        if key in _UNSUPPORTED or (key in _CONTRAVARIANT and _has_pattern(each))
    }
    dropped.update(other for key in dropped.copy() for other in _DEPENDENTS.get(key, ()))
    return {key: each for key, each in table.items() if key not in dropped and key != "format"}


def _has_pattern(value: object) -> bool:
    """Returns whether a value may hold a pattern; a reference counts as one, as it is not followed."""
    if isinstance(value, list):
        return any(map(_has_pattern, value))
    if not isinstance(value, dict):
        return False
    return any(key in {*_UNSUPPORTED, "$ref"} or _has_pattern(each) for key, each in value.items())


def _map_subschemas(schema: object, change: Callable[[dict[str, object]], dict[str, object]]) -> object:
    """Returns a copy of a schema with each subschema changed, from the outside in."""
    if not isinstance(schema, dict):
        return schema
    out = change(schema)
    for key, value in out.items():
        if key in MAPS and isinstance(value, dict):
            out[key] = {name: _map_subschemas(each, change) for name, each in value.items()}
        elif key in LISTS and isinstance(value, list):
            out[key] = [_map_subschemas(each, change) for each in value]
        elif key in ONES:
            out[key] = _map_subschemas(value, change)
    return out
