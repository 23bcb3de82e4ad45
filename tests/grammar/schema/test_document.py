"""References within a document: their targets, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from b3node.grammar import conforms, schema_to_gbnf
from b3node.grammar.inexact import Inexact
from b3node.grammar.schema.document import Document

I: dict[str, Any] = {"type": "integer"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"a": I}, "$ref": "#/$defs/a"},
        {"definitions": {"a b/c~d%": I}, "$ref": "#/definitions/a%20b~1c~0d%25"},
        {"$defs": {"a": {"$anchor": "here", **I}}, "$ref": "#here"},
        {"$id": "https://x.example/s", "$defs": {"a": {"$id": "t", "$defs": {"b": I}}}, "$ref": "t#/$defs/b"},
        {"$id": "https://x.example/s", "$defs": {"a": {"$id": "t", **I}}, "$ref": "https://x.example/t"},
        {"$defs": {"a": {"$id": "urn:x:y", "$defs": {"b": I}, "$ref": "#/$defs/b"}}, "$ref": "urn:x:y"},
        {"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"id": "#here", **I}}, "$ref": "#here"},
        {"anyOf": [False, I, {"$ref": "#/anyOf/1"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/c"}, "c": I}, "$ref": "#/$defs/a"},
        {"allOf": [{"$ref": "#"}, I]},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}, I]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/b"},
    ],
)  # fmt: skip
def test_references_within_the_document_resolve(schema):
    """Pointers with escapes, anchors, embedded resources, chains, references to a schema around them."""
    assert conforms(schema, 3)
    assert not conforms(schema, "x")
    assert schema_to_gbnf(schema).startswith("root ::= integer\n")


@pytest.mark.parametrize(
    "reference", ["other.json", "https://x.example/y", "#/nope", "#nope", "#/anyOf/7", "http://[", 5]
)
def test_other_references_are_refused(reference):
    """Nothing is fetched and nothing is guessed."""
    document = Document({"$ref": reference, "anyOf": [I]})
    with pytest.raises(Inexact) as caught:
        document.resolve(document.root, reference)
    assert caught.value.pointer == "/$ref"


def test_siblings_of_a_reference_count_from_2019_on():
    """They are ignored in the older drafts, as those say."""
    schema = {"$defs": {"a": I}, "definitions": {"a": I}, "$ref": "#/definitions/a", "minimum": 5}
    assert not conforms(schema, 3)
    assert conforms({"$schema": "http://json-schema.org/draft-07/schema#", **schema}, 3)


def test_dynamic_references_follow_the_way_taken():
    """The items of a list are those of the outermost resource."""
    generic = {
        "$id": "list",
        "type": "array",
        "items": {"$dynamicRef": "#item"},
        "$defs": {"open": {"$dynamicAnchor": "item"}},
    }
    schema = {
        "$id": "https://x.example/numbers",
        "$ref": "list",
        "$defs": {"list": generic, "item": {"$dynamicAnchor": "item", **I}},
    }
    assert conforms(schema, [1, 2])
    assert not conforms(schema, ["x"])
    assert conforms({"$id": "https://x.example/any", "$ref": "list", "$defs": {"list": generic}}, ["x"])


def test_equal_subschemas_are_one():
    """Schemas that differ only in annotations are equal; all others differ."""
    document = Document(
        {
            "properties": {
                "a": {"type": "string", "description": "one"},
                "b": {"type": "string", "description": "two"},
                "c": {"type": "string", "minLength": 1},
                "d": {"const": {"title": "x"}},
                "e": {"const": {"title": "y"}},
                "f": {"const": True},
                "g": {"const": 1},
            }
        }
    )
    root: Any = document[document.root].value
    table = root["properties"]
    numbers = [document.below(document.root, value, "properties", name) for name, value in table.items()]
    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == len(numbers) - 1


def test_names_that_look_like_keywords_are_names():
    """A property called `$ref`, `enum` or `$id` is a property."""
    schema = {
        "type": "object",
        "properties": {"$ref": I, "enum": I, "$id": I, "const": I, "title": I},
        "additionalProperties": False,
    }
    assert conforms(schema, {"$ref": 1, "enum": 1, "$id": 1, "const": 1, "title": 1})
    assert not conforms(schema, {"$ref": "#"})
