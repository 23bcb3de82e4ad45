"""The judge of finished calls against an independent validator, and within its bounds."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from b3node.contract.request import FunctionTool
from b3node.grammar import judge
from b3node.grammar.judge import _by_keywords
from tests.grammar.schemas import NAMES, schemas, values


def verdict(schema, arguments) -> bool:
    return judge([FunctionTool("f", parameters=schema)])("f", json.dumps(arguments))


def conforms(schema, value) -> bool:
    """By an implementation that is not ours, formats aside."""
    return jsonschema_rs.validator_for(schema).is_valid(value)


objects = st.dictionaries(st.sampled_from([*NAMES, "ab"]), values, max_size=3)
_relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@_relaxed
@given(schemas.filter(lambda schema: isinstance(schema, dict)), st.lists(objects, min_size=1, max_size=4))
def test_arguments_match_exactly_when_they_conform(schema, candidates) -> None:
    """As another validator says, for schemas that nobody wrote."""
    for value in candidates:
        assert verdict(schema, value) == conforms(schema, value), value


@_relaxed
@given(schemas.filter(lambda schema: isinstance(schema, dict)), st.lists(objects, min_size=1, max_size=4))
def test_the_reading_without_patterns_refuses_nothing_that_conforms(schema, candidates) -> None:
    """What it leaves out makes it milder only; without patterns it is exact."""
    for value in candidates:
        said, right = _by_keywords(schema, value), conforms(schema, value)
        assert said == right or (said and "attern" in json.dumps(schema)), value


@pytest.mark.parametrize(
    ("schema", "arguments", "right"),
    [
        (None, "{}", True),
        (None, '{"a": 1}', False),
        ({}, "[]", False),
        ({}, "{", False),
        ({}, '{"a": 1} ', True),
        ({}, "[" * 100_000, False),
        ({"properties": {"a": {"type": "string", "format": "email"}}}, '{"a": "nobody"}', True),
        ({"properties": {"a": {"pattern": r"(x)\1"}, "b": {"type": "integer"}}}, '{"a": "y", "b": 1}', True),
        ({"properties": {"a": {"pattern": r"(x)\1"}, "b": {"type": "integer"}}}, '{"a": "y", "b": "1"}', False),
        ({"properties": {"a": {"not": {"pattern": r"(x)\1"}}}}, '{"a": "y"}', True),
        ({"patternProperties": {r"(x)\1": {}}, "additionalProperties": False}, '{"xx": 1}', True),
        ({"properties": {"a": {"$ref": "https://example.com/schema"}, "b": {"type": "null"}}}, '{"a": 1, "b": null}', True),
        ({"properties": {"a": {"$ref": "https://example.com/schema"}, "b": {"type": "null"}}}, '{"a": 1, "b": 2}', False),
        ({"type": 5}, "{}", True),
        ({"$ref": "#"}, "{}", True),
        ({"properties": {"format": {"type": "string"}}}, '{"format": 1}', False),
    ],
)  # fmt: skip
def test_what_is_judged_how(schema, arguments, right) -> None:
    """Objects alone, formats never, patterns where they can be read, and nothing that cannot be read."""
    assert judge([FunctionTool("f", parameters=schema)])("f", arguments) is right


def test_a_name_that_is_not_declared_matches_nothing() -> None:
    """Nobody said what it takes."""
    assert not judge([FunctionTool("f")])("g", "{}")


def test_a_schema_that_doubles_with_every_level_comes_to_an_end() -> None:
    """Two ways at each of sixty levels are looked at once each."""
    members = [{"n": {"$ref": "#/$defs/t"}, kind: {"type": "null"}} for kind in ("a", "b")]
    branch = [{"type": "object", "properties": each} for each in members]
    schema: dict[str, object] = {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [*branch, {"type": "null"}]}}}
    value: object = {"n": 1}
    for _ in range(50):
        value = {"n": value, "a": None}
    assert not verdict(schema, value)
    assert not _by_keywords(schema, value)


def test_a_regular_expression_that_backtracks_is_never_run() -> None:
    """Read by the compiler it is linear; what the compiler cannot read is left out."""
    for pattern in ("^(a+)+$", r"^(a+)+\1$"):
        schema = {"properties": {"t": {"type": "string", "pattern": pattern}}}
        assert verdict(schema, {"t": "a" * 5000 + "!"}) is ("\\1" in pattern)
