"""What is no schema is told so, at its place, before anything is compiled."""

from __future__ import annotations

import pytest

from b3node.errors import Refusal
from b3node.grammar import check_schema

OLD = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "object", "properties": {"a": {"minimum": 1, "exclusiveMinimum": 0}}},
        {"$schema": OLD, "minimum": 1, "exclusiveMinimum": True},
        {"$schema": "https://example.com/my-own", "type": "string"},
    ],
)
def test_schemas_pass(schema):
    """By the draft that they name, and 2020-12 for what is unknown."""
    check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "sting"}, "#/type"),
        ({"properties": {"a/b": {"minLength": -1}}}, "#/properties/a~1b/minLength"),
        ({"minimum": 1, "exclusiveMinimum": True}, "#/exclusiveMinimum"),
        ({"anyOf": []}, "#/anyOf"),
        ({"$schema": OLD, "required": []}, "#/required"),
        ({"$defs": {"unused": {"required": "a"}}}, "#/$defs/unused/required"),
    ],
)
def test_faults_have_their_place(schema, place):
    """The first fault, with its pointer, in our own words."""
    with pytest.raises(Refusal) as caught:
        check_schema(schema, param="tools[0].parameters")
    assert f"at {place}: " in caught.value.message
    assert caught.value.param == "tools[0].parameters"


@pytest.mark.parametrize("schema", [5, "x", None, ["a"], {"enum": ["x" * 70_000]}])
def test_other_values_and_sizes_are_refused(schema):
    """A schema is an object or a boolean, within the bounds."""
    with pytest.raises(Refusal):
        check_schema(schema)
