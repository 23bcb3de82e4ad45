"""Invalid schemas are refused with the place of the fault, before they are compiled."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema.validators import validator_for

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
    """Valid in the draft that they name, 2020-12 if that is unknown."""
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
    """The message has the pointer of the first fault, and none of the library's words."""
    with pytest.raises(Refusal) as caught:
        check_schema(schema, param="tools[0].parameters")
    assert f"at {place}: " in caught.value.message
    assert caught.value.param == "tools[0].parameters"


@pytest.mark.parametrize("schema", [5, "x", None, ["a"], {"enum": ["x" * 70_000]}])
def test_other_values_and_sizes_are_refused(schema):
    """A schema is an object or a boolean, within the bounds."""
    with pytest.raises(Refusal):
        check_schema(schema)


_KEYWORDS = sorted({
    "type", "enum", "const", "required", "properties", "patternProperties", "additionalProperties", "items",
    "prefixItems", "additionalItems", "allOf", "anyOf", "not", "if", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxItems", "uniqueItems", "pattern", "format", "$ref", "$id", "id",
    "$anchor", "$defs", "definitions", "dependencies", "dependentRequired", "description", "default", "examples",
    "$recursiveAnchor", "$vocabulary", "readOnly", "unknown",
})  # fmt: skip
_DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 2),
    st.floats(-1, 2),
    st.sampled_from(["string", "array", "x", "#/$defs/a", "a#b", "a\n", "_a", ""]),
)
_schemas = st.recursive(
    _plain,
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(st.sampled_from(_KEYWORDS), below, max_size=3),
        st.dictionaries(st.sampled_from(["properties", "items", "not"]), below, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(_DRAFTS), st.dictionaries(st.sampled_from(_KEYWORDS), _schemas, max_size=3))
def test_the_verdict_is_that_of_the_metaschema(draft, keywords):
    """For any value of any keyword, in every draft."""
    schema = {"$schema": draft, **keywords}
    validator = validator_for(schema)
    sound = validator(validator.META_SCHEMA).is_valid(schema)
    try:
        check_schema(schema)
    except Refusal:
        assert not sound
    else:
        assert sound
