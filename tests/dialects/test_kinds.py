"""Kinds of values that a schema allows."""

from __future__ import annotations

import pytest

from b3node.dialects.kinds import ALL, element, kinds, member

ROOT = {
    "$defs": {
        "text": {"type": "string"},
        "loop": {"$ref": "#/$defs/loop"},
        "a/b": {"const": None},
        "list": [{"type": "array"}],
    },
    "properties": {
        "text": {"$ref": "#/$defs/text"},
        "many": {"type": "array", "items": {"type": "integer"}},
    },
    "additionalProperties": {"type": "boolean"},
}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": "number"}, {"number", "integer"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "integer"}]}, {"integer"}),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/a~1b"}]}, {"string", "null"}),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": "number"}]}, {"integer"}),
        ({"enum": ["a", "1"]}, {"string"}),
        ({"enum": [1, 1.5, True, None, {}, []]}, {"integer", "number", "boolean", "null", "object", "array"}),
        ({"$ref": "#/$defs/text"}, {"string"}),
        ({"$ref": "#/$defs/list/0"}, {"array"}),
        ({"$ref": "#/$defs/list/1"}, ALL),
        ({"$ref": "https://example.com/"}, ALL),
        ({"$ref": "#/$defs/loop"}, ALL),
        ({"$ref": 3}, ALL),
        ({"anyOf": "?"}, ALL),
        ({"type": "odd"}, ALL),
        ({}, ALL),
        (True, ALL),
        (None, ALL),
    ],
)
def test_the_kinds_of_a_schema(schema: object, expected: set[str]) -> None:
    """References and alternatives are resolved; any other schema leaves all kinds possible."""
    assert kinds(schema, ROOT) == expected


def test_a_schema_that_branches_without_end_is_resolved_within_bounds() -> None:
    """Resolution terminates, and leaves all kinds possible."""
    root: dict[str, object] = {"$defs": {"x": {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}}}
    assert kinds({"$ref": "#/$defs/x"}, root) == ALL
    assert member({"$ref": "#/$defs/x"}, root, "a") is True
    assert element({"$ref": "#/$defs/x"}, root) is True


def test_members_and_elements_are_found_through_alternatives() -> None:
    """By name, else by `additionalProperties`."""
    schema = {"anyOf": [ROOT, {"type": "null"}]}
    assert kinds(member(schema, ROOT, "text"), ROOT) == {"string"}
    assert kinds(member(schema, ROOT, "other"), ROOT) == {"boolean"}
    assert kinds(element(member(schema, ROOT, "many"), ROOT), ROOT) == {"integer"}
    assert element({"prefixItems": [{}], "items": {"type": "string"}}, ROOT) is True
    both = {
        "allOf": [
            {"properties": {"a": {"type": ["string", "null"]}}},
            {"properties": {"a": {"type": "object"}}},
        ]
    }
    assert kinds(member(both, both, "a"), both) == {"string", "null", "object"}
