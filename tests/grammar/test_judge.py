"""The judge of finished calls against an independent validator, and within its bounds."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from b3node.contract.request import FunctionTool
from b3node.grammar import judge
from b3node.grammar.judge import MAX_STEPS, _by_jsonschema
from b3node.grammar.schema.budget import Budget
from tests.grammar.schemas import NAMES, schemas, values


def verdict(schema, arguments) -> bool:
    return judge([FunctionTool("f", parameters=schema)])("f", json.dumps(arguments))


def conforms(schema, value) -> bool:
    """Returns the verdict of an independent implementation, without formats."""
    return jsonschema_rs.validator_for(schema).is_valid(value)


objects = st.dictionaries(st.sampled_from([*NAMES, "ab"]), values, max_size=3)
_relaxed = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@_relaxed
@given(schemas.filter(lambda schema: isinstance(schema, dict)), st.lists(objects, min_size=1, max_size=4))
def test_arguments_match_exactly_when_they_conform(schema, candidates) -> None:
    """The verdict is that of another validator, on random schemas."""
    for value in candidates:
        assert verdict(schema, value) == conforms(schema, value), value


@_relaxed
@given(schemas.filter(lambda schema: isinstance(schema, dict)), st.lists(objects, min_size=1, max_size=4))
def test_the_reading_without_patterns_refuses_nothing_that_conforms(schema, candidates) -> None:
    """Left-out keywords only widen it; without patterns and `unevaluated*` it is exact."""
    for value in candidates:
        said, right = _by_jsonschema(schema, value), conforms(schema, value)
        milder = any(word in json.dumps(schema) for word in ("attern", "unevaluated"))
        assert said == right or (said and milder), value


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
def test_verdicts(schema, arguments, right) -> None:
    """Objects alone, formats never, patterns where they can be read, and nothing that cannot be read."""
    assert judge([FunctionTool("f", parameters=schema)])("f", arguments) is right


def test_a_name_that_is_not_declared_matches_nothing() -> None:
    """It has no schema."""
    assert not judge([FunctionTool("f")])("g", "{}")


def test_a_schema_that_doubles_with_every_level_comes_to_an_end() -> None:
    """Two branches at each of 60 levels are checked once each."""
    members = [{"n": {"$ref": "#/$defs/t"}, kind: {"type": "null"}} for kind in ("a", "b")]
    branch = [{"type": "object", "properties": each} for each in members]
    schema: dict[str, object] = {"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [*branch, {"type": "null"}]}}}
    value: object = {"n": 1}
    for _ in range(50):
        value = {"n": value, "a": None}
    assert not verdict(schema, value)
    assert not _by_jsonschema(schema, value)


def test_a_regular_expression_that_backtracks_is_never_run() -> None:
    """The compiler's automaton is linear; a pattern that it cannot read is left out."""
    for pattern in ("^(a+)+$", r"^(a+)+\1$"):
        schema = {"properties": {"t": {"type": "string", "pattern": pattern}}}
        assert verdict(schema, {"t": "a" * 5000 + "!"}) is ("\\1" in pattern)


N = 300
HOSTILE: dict[str, tuple[dict[str, object], object]] = {
    "patterns of names": (
        {"patternProperties": {f"^x{i}.*y{i}": {} for i in range(N)}, "required": ["z"]},
        {f"x{i}y{i}": 1 for i in range(N)},
    ),
    "alternatives of many": (
        {"items": {"anyOf": [{"required": [f"k{i}"], "properties": {f"k{i}": {"const": 1}}} for i in range(N)]}},
        [{f"k{i}": 0} for i in range(N)],
    ),
    "equal lists": ({"items": {"enum": [[i, *range(20)] for i in range(N)]}}, [[N, *range(20)]] * N),
    "anchors": (
        {"items": {"$ref": "#a0"}, "allOf": [{"$ref": "https://example.com"}], "$defs": {f"d{i}": {"$anchor": f"a{i}", "type": "null"} for i in range(N)}},
        [None] * 9 + [1] * N,
    ),
    "unique lists": ({"uniqueItems": True, "items": {"uniqueItems": True}}, [[i] for i in range(50 * N)] + [[1]]),
    "a document of books": ({"type": "null", "$defs": {f"d{i}": {"title": "t" * 500} for i in range(N)}}, [1]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_work_is_bounded_however_it_is_asked_for(monkeypatch, name) -> None:
    """Too much work ends without a match, after a bounded number of steps."""
    part, value = HOSTILE[name]
    defined = {key: part.pop(key) for key in ("$defs",) if key in part}
    left: list[int] = []
    spend = Budget.spend

    def spent(budget: Budget, steps: int = 1) -> None:
        left.append(budget.left)
        spend(budget, steps)

    monkeypatch.setattr(Budget, "spend", spent)
    assert not verdict({"properties": {"a": part}, **defined}, {"a": value})
    assert len(left) < 2 * MAX_STEPS
