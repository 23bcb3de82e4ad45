"""Random schemas and values that have a good chance to meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "x-c", "d"]
PATTERNS = ["^a", "b$", "^[ab]*$", "^(?!b)", "x|^$", "^..?$", "[^a]"]
scalars = st.sampled_from(
    [None, True, False, 0, 1, 2, 5, -3, 7, 2.5, -0.25, 10, "", "a", "b", "ab", "abc", 'x"', "é"]
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "", "ab"]), inner, max_size=3)
    ),
    max_leaves=6,
)

_numbers = st.sampled_from([0, 1, 2, 5, -3, 2.5, 10])
_sizes = st.integers(0, 3)
_types = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def _leaves() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.booleans(),
        st.builds(lambda t: {"type": t}, _types),
        st.builds(lambda ts: {"type": ts}, st.lists(_types, min_size=1, max_size=3, unique=True)),
        st.builds(lambda v: {"const": v}, values),
        st.builds(lambda vs: {"enum": vs}, st.lists(values, min_size=1, max_size=3, unique_by=repr)),
        st.builds(lambda n: {"minimum": n}, _numbers),
        st.builds(lambda n: {"exclusiveMaximum": n}, _numbers),
        st.builds(lambda n: {"multipleOf": n}, st.sampled_from([1, 2, 0.5, 3])),
        st.builds(lambda p: {"pattern": p}, st.sampled_from(PATTERNS)),
        st.builds(lambda low, more: {"minLength": low, "maxLength": low + more}, _sizes, _sizes),
        st.builds(lambda names: {"required": names}, _names(1)),
        st.builds(lambda low: {"minItems": low}, _sizes),
        st.builds(lambda high: {"maxItems": high}, _sizes),
        st.builds(lambda low: {"minProperties": low}, st.integers(0, 2)),
        st.builds(lambda high: {"maxProperties": high}, _sizes),
        st.builds(lambda a, b: {"dependentRequired": {a: b}}, st.sampled_from(NAMES), _names(0)),
        st.builds(lambda p: {"propertyNames": {"pattern": p}}, st.sampled_from(PATTERNS)),
    )


def _names(least: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(NAMES), min_size=least, max_size=2, unique=True)


def _merged(parts: list[Any]) -> Any:
    return {key: value for part in parts if isinstance(part, dict) for key, value in part.items()} or parts[0]


def _above(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    keywords = st.one_of(
        st.builds(lambda t: {"properties": t}, st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)),
        st.builds(
            lambda t: {"patternProperties": t},
            st.dictionaries(st.sampled_from(PATTERNS), inner, min_size=1, max_size=2),
        ),
        st.builds(lambda s: {"additionalProperties": s}, inner),
        st.builds(lambda s: {"items": s}, inner),
        st.builds(lambda row: {"prefixItems": row}, some),
        st.builds(lambda s, n: {"contains": s, "minContains": n}, inner, st.integers(0, 2)),
        st.builds(lambda s, n: {"contains": s, "maxContains": n}, inner, st.integers(0, 2)),
        st.builds(lambda row: {"allOf": row}, some),
        st.builds(lambda row: {"anyOf": row}, some),
        st.builds(lambda row: {"oneOf": row}, some),
        st.builds(lambda s: {"not": s}, inner),
        st.builds(lambda a, b, c: {"if": a, "then": b, "else": c}, inner, inner, inner),
        st.builds(lambda n, s: {"dependentSchemas": {n: s}}, st.sampled_from(NAMES), inner),
        st.builds(lambda s: {"unevaluatedProperties": s}, inner),
        st.builds(lambda s: {"unevaluatedItems": s}, inner),
        st.just({"$ref": "#/$defs/d"}),
        _leaves(),
    )
    return st.builds(_merged, st.lists(keywords, min_size=1, max_size=3))


def _defined(schema: Any, definition: Any) -> Any:
    return {**schema, "$defs": {"d": definition}} if isinstance(schema, dict) else schema


_open = st.recursive(_leaves(), _above, max_leaves=8)
schemas = st.builds(
    _defined, _open, st.one_of(_leaves(), st.builds(lambda s: {"items": s}, st.just({"$ref": "#/$defs/d"})))
)
"""Schemas over `NAMES`; the one definition may refer to itself within an array."""
