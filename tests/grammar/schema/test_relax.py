"""Loosened grammars: they are wider than the schema, never narrower, and list the places."""

from __future__ import annotations

import json

import pytest

from b3node.errors import Refusal
from b3node.grammar import schema_to_loose_gbnf
from tests.grammar.drawing import Grammar
from tests.grammar.judge import valid, written

S = {"type": "string"}


def test_an_exact_schema_is_not_loosened():
    """No keyword is removed if all can be enforced."""
    assert schema_to_loose_gbnf({"type": "integer", "minimum": 3}).loosened == ()


@pytest.mark.parametrize(
    ("schema", "places", "good"),
    [
        (
            {"type": "object", "properties": {"t": {"type": "array", "items": S, "uniqueItems": True}, "n": {"type": "integer"}}},
            ("#/properties/t/uniqueItems",),
            {"t": ["a", "b"], "n": 1},
        ),
        ({"type": "string", "pattern": "(a)\\1", "maxLength": 4}, ("#/pattern",), "aa"),
        ({"type": "string", "not": {"pattern": "(a)\\1"}}, ("#/not",), "ab"),
        ({"type": "string", "if": {"pattern": "\\bx"}, "then": {"minLength": 3}}, ("#/if",), "b"),
        (
            {"oneOf": [{"type": "string", "pattern": "(a)\\1"}, {"type": "integer"}]},
            ("#/oneOf", "#/oneOf/0/pattern"),
            "aa",
        ),
        (
            {"type": "object", "properties": {"a": {}}, "patternProperties": {"(x)\\1": S}, "additionalProperties": False},
            ("#/patternProperties",),
            {"a": 1, "xx": "s"},
        ),
        ({"type": "object", "properties": {"r": {"$ref": "https://example.com/x"}}}, ("#/properties/r/$ref",), {"r": 1}),
        ({"type": "array", "items": {"properties": {"not": {"type": "string", "pattern": "\\b"}}}}, ("#/items/properties/not/pattern",), [{"not": "a"}]),
    ],
)  # fmt: skip
def test_unenforceable_keywords_are_removed_and_listed(engine, schema, places, good):
    """The rest stays enforced, conforming values stay accepted, and the schema given is not changed."""
    before = json.dumps(schema)
    loose = schema_to_loose_gbnf(schema)
    assert loose.loosened == places
    assert engine.takes(loose.gbnf, written(good))
    assert json.dumps(schema) == before


def test_the_rest_is_enforced():
    """Keywords that can be enforced are, next to one that cannot."""
    schema = {
        "type": "array",
        "items": {"type": "string", "maxLength": 3},
        "uniqueItems": True,
        "maxItems": 2,
    }
    grammar = Grammar(schema_to_loose_gbnf(schema).gbnf)
    for seed in range(20):
        value = json.loads(grammar.draw(seed))
        assert valid({**schema, "uniqueItems": False}, value)


def test_the_unsatisfiable_stays_refused():
    """No loosening makes a value out of a contradiction that the client wrote."""
    with pytest.raises(Refusal, match="no value"):
        schema_to_loose_gbnf({"type": "integer", "minimum": 5, "maximum": 3})


def test_a_tool_of_many_odd_patterns_still_compiles():
    """Places are left out one by one, then all of a kind at once."""
    schema = {
        "type": "object",
        "properties": {f"p{i}": {"type": "string", "pattern": f"(a{i})\\1"} for i in range(60)},
    }
    loose = schema_to_loose_gbnf(schema)
    assert len(loose.loosened) == 60
    assert all(place.endswith("/pattern") for place in loose.loosened)


@pytest.mark.parametrize(
    "schema",
    [{"enum": ["x" * 70_000]}, {"properties": {"a": {"enum": list(range(2_000))}}, "x": "y" * 70_000}],
)
def test_too_large_schemas_allow_any_object(engine, schema):
    """A tool's schema never fails its request: at worst the tool may be called with any object."""
    loose = schema_to_loose_gbnf(schema)
    assert loose.loosened == ("#",)
    assert engine.takes(loose.gbnf, '{"a":1}')
    assert not engine.takes(loose.gbnf, "1")
