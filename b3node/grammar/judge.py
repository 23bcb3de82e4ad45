"""Whether the finished arguments of a call are what the function's schema asks for.

Asked in the middle of a stream, so it is bounded: in steps, not in time, so that the same arguments always get the same
verdict. First by the compiler's own reading of the schema, whose patterns never backtrack; each value is looked at
once for each obligation, however the schema refers to itself. A schema that it cannot read is read by `jsonschema`
instead, without patterns, because those are somebody else's regular expressions. Formats are not asked for: they are
annotations to most validators, and a call that a tool would take is no broken one.

What no validator can read (a reference out of the document, a keyword of the wrong form) is not held against a call;
what takes too many steps is, as nobody has seen that it matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from b3node.contract.request import FunctionTool
from b3node.grammar.budget import Budget
from b3node.grammar.document import LISTS, MAPS, ONES, Document
from b3node.grammar.metaschema import draft_of
from b3node.grammar.obligations import Obligations
from b3node.grammar.refusal import Inexact
from b3node.grammar.regular import ALL, Algebra, Lang, TooLarge
from b3node.grammar.shapes import Lits, Text, lit
from b3node.grammar.values import canonical

STEPS: Final = 20_000
"""Steps of one verdict by the compiler's reading, at some microseconds each; a usual call takes some hundred."""
KEYWORDS: Final = 3_000
"""Keywords that `jsonschema` may look at for one verdict, at some ten microseconds each."""
EXPRESSIONS: Final = 20_000
_PER_STEP: Final = 4
"""Characters matched with a pattern that count as a step."""

Judge = Callable[[str, str], bool]
"""A function's name and arguments as JSON text to whether they are a JSON object that matches its schema."""
_decode = msgspec.json.Decoder().decode


def judge(tools: Iterable[FunctionTool]) -> Judge:
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
        try:
            return _Reading(_without_formats(self._schema)).matches(value)
        except (Inexact, TooLarge, RecursionError):
            return _by_keywords(self._schema, value)


class _Reading(Obligations):
    """The compiler's reading of a schema, for one verdict."""

    def __init__(self, schema: object) -> None:
        spend = Budget(STEPS).spend
        super().__init__(Document(schema), Algebra(EXPRESSIONS, spend), spend)
        self._steps = spend
        self._met: dict[tuple[int, Lits], bool] = {}

    def matches(self, value: object) -> bool:
        return self.meets(value, lit(self.document.root))

    def meets(self, value: object, lits: Lits) -> bool:
        """Whether a part of the value meets an obligation; each part is asked once."""
        key = (id(value), lits)  # the parts live as long as this does
        if key not in self._met:
            self._steps(1)
            self._met[key] = (
                self._is_text(value, lits) if isinstance(value, str) else super().meets(value, lits)
            )
        return self._met[key]

    def _is_text(self, text: str, lits: Lits) -> bool:
        shapes = self.shapes(lits, "string")
        return any(self._speaks(shape.lang, text) for shape in shapes if isinstance(shape, Text))

    def _speaks(self, lang: Lang, text: str) -> bool:
        if lang == ALL:
            return True
        self._steps(len(text) // _PER_STEP)
        return self.algebra.matches(lang, text)


# -------------------------------------------------------------------------------------------------------- jsonschema
_PATTERNED: Final = frozenset({"pattern", "patternProperties"})
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
    left = [KEYWORDS]
    draft = draft_of(schema)
    checks = {name: _bounded(check, left) for name, check in draft.VALIDATORS.items()}
    checks["uniqueItems"] = _unique
    try:
        validator = extend(draft, checks)(_without_patterns(schema), registry=Registry())
        return next(validator.iter_errors(value), None) is None
    except (_TooMuch, RecursionError):
        return False
    except Exception:  # noqa: BLE001 - a library's opinion of a schema that it cannot read
        return True


def _bounded(check: Any, left: list[int]) -> Any:
    """A keyword's check that counts, and that says nothing where it cannot read the keyword."""

    def bounded(validator: Any, keyword: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        left[0] -= 1
        if left[0] < 0:
            raise _TooMuch
        try:
            yield from check(validator, keyword, value, schema) or ()
        except (_TooMuch, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - as above, keyword by keyword
            return

    return bounded


def _unique(_: Any, keyword: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    """`uniqueItems` in one pass; the library compares each with each."""
    if keyword is True and isinstance(value, list) and len({canonical(item) for item in value}) < len(value):
        yield ValidationError("items are equal")


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
