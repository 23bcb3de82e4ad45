"""The compiler: a grammar accepts the conforming texts and no others; a schema without an exact one is
refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from b3node.errors import Refusal
from b3node.grammar import SchemaLimits, conforms, json_object_gbnf, schema_to_gbnf
from tests.grammar.drawing import Grammar
from tests.grammar.judge import valid, written


def closed(**properties):
    """An object schema of these properties, all required, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


S, I = {"type": "string"}, {"type": "integer"}
OLD = "http://json-schema.org/draft-07/schema#"
CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "one of each type": (
        closed(a={"type": "null"}, b={"type": "boolean"}, c=I, d={"type": "number"}, e=S),
        [{"a": None, "b": True, "c": -3, "d": 2.5, "e": 'q"\\\n\u0001é😀'}],
        [{"a": None, "b": True, "c": 1.5, "d": 2, "e": ""}, {"a": None}],
    ),
    "open objects take undeclared members after the declared": (
        {"type": "object", "properties": {"foo": I}},
        [{"foo": 1, "fo": "x"}, {"f": []}, {}],
        [{"foo": "x"}],
    ),
    "a declared name cannot come again as another": (
        {"type": "object", "properties": {"q": I}, "additionalProperties": S},
        [{"q": 1, "r": "x"}],
        [{"q": "x"}],
    ),
    "patterns search": ({"type": "string", "pattern": "^a|b$"}, ["ax", "xb"], ["xax"]),
    "patterns know JSON's escapes": (
        {"type": "string", "pattern": "^[^a]$"},
        ['"', "\\", "\n", "b"],
        ["a", "bb"],
    ),
    "lookaheads": ({"type": "string", "pattern": "^(?!x)(?=.*\\d)\\w+$"}, ["a1"], ["x1", "ab"]),
    "patterns and lengths together": (
        {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$", "minLength": 3, "maxLength": 5},
        ["a-b", "abcde"],
        ["ab", "a-b-c-", "abcdef"],
    ),
    "long lengths are counted exactly": (
        {"type": "string", "minLength": 700, "maxLength": 1500},
        ["x" * 700, "x" * 1500],
        ["x" * 699, "x" * 1501],
    ),
    "integer bounds": ({"type": "integer", "minimum": -5, "maximum": 1000}, [-5, 0, 1000], [-6, 1001]),
    "number bounds": (
        {"type": "number", "exclusiveMinimum": 0, "maximum": 12.5},
        [0.001, 12.5, 3],
        [0, -1, 12.51],
    ),
    "multiples": ({"type": "number", "multipleOf": 0.25, "minimum": 1}, [1.25, 7], [1.3, 0.75]),
    "an enum of all types": (
        {"enum": [1, "1", None, True, {"a": [1]}]},
        [1, "1", None, True, {"a": [1]}],
        [2, "2", False, {"a": [2]}],
    ),
    "an enum within bounds": (
        {"enum": [1, 5, "a", "bcd"], "minimum": 2, "maxLength": 2},
        [5, "a"],
        [1, "bcd"],
    ),
    "allOf of objects": (
        {
            "allOf": [
                {"type": "object", "properties": {"a": I}, "required": ["a"]},
                {"properties": {"b": S}, "required": ["b"]},
            ]
        },
        [{"a": 1, "b": "x"}],
        [{"a": 1}, {"a": "x", "b": "y"}],
    ),
    "oneOf of overlapping branches": (
        {"oneOf": [I, {"type": "number", "minimum": 2}]},
        [1, 2.5],
        [3, 1.5],
    ),
    "oneOf of closed objects": (
        {"type": "object", "oneOf": [closed(k=S), {"additionalProperties": False, "properties": {"j": S}}]},
        [{"k": "x"}, {"j": "x"}, {}],
        [{"k": "x", "j": "y"}],
    ),
    "not": ({"type": "string", "not": {"enum": ["a", "b"]}}, ["c", "", "aa"], ["a", "b"]),
    "not of required": (
        {"type": "object", "properties": {"a": I, "b": I}, "not": {"required": ["a", "b"]}},
        [{"a": 1}, {"b": 1}, {}],
        [{"a": 1, "b": 2}],
    ),
    "if, then, else": (
        {
            "type": "object",
            "properties": {"t": {"enum": ["x", "y"]}, "n": {}},
            "required": ["t"],
            "additionalProperties": False,
            "if": {"properties": {"t": {"const": "x"}}},
            "then": {"required": ["n"]},
        },
        [{"t": "x", "n": 1}, {"t": "y"}],
        [{"t": "x"}],
    ),
    "dependencies": (
        {
            "$schema": OLD,
            "type": "object",
            "properties": {"a": I, "b": I},
            "dependencies": {"a": ["b"], "b": {"maxProperties": 2}},
        },
        [{"b": 1}, {"a": 1, "b": 1}],
        [{"a": 1}, {"a": 1, "b": 1, "c": 1}],
    ),
    "member counts": (
        {"type": "object", "properties": {"a": I}, "minProperties": 2, "maxProperties": 3},
        [{"a": 1, "b": 2}, {"x": 1, "y": 2}, {"a": 1, "b": 2, "c": 3}],
        [{"a": 1}, {"a": 1, "b": 2, "c": 3, "d": 4}],
    ),
    "names by pattern": (
        {
            "type": "object",
            "properties": {"x-a": {"minimum": 5}},
            "patternProperties": {"^x-": I},
            "additionalProperties": False,
        },
        [{"x-a": 5}, {"x-b": 1}],
        [{"x-a": 4}, {"x-b": "s"}, {"y": 1}],
    ),
    "names by schema": ({"type": "object", "propertyNames": {"maxLength": 2}}, [{"ab": 1}], [{"abc": 1}]),
    "tuples": (
        {"type": "array", "prefixItems": [I, S], "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
        [[1], [1, "a"], [1, "a", True]],
        [[], ["a"], [1, "a", 1], [1, "a", True, True]],
    ),
    "list-valued items of older drafts": (
        {"$schema": OLD, "type": "array", "items": [I, S], "additionalItems": False},
        [[], [1, "a"]],
        [[1, "a", 2], ["a"]],
    ),
    "contains": (
        {"type": "array", "items": I, "contains": {"minimum": 5}, "maxContains": 2},
        [[1, 5], [5, 5, 1]],
        [[], [1], [5, 6, 7]],
    ),
    "distinct items of few values": (
        {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "minItems": 2},
        [["b", "a"], ["c", "a", "b"]],
        [["a"], ["a", "a"]],
    ),
    "references, recursion, escapes": (
        {
            "$defs": {"t/r~ee": {"type": "array", "items": {"$ref": "#/$defs/t~1r~0ee"}}},
            "type": "object",
            "properties": {"t": {"$ref": "#/$defs/t~1r~0ee"}},
        },
        [{"t": [[], [[]]]}],
        [{"t": [1]}],
    ),
    "what no keyword evaluated": (
        {
            "type": "object",
            "properties": {"a": I},
            "anyOf": [
                {"properties": {"b": I}, "required": ["b"]},
                {"required": ["c"], "properties": {"c": S}},
            ],
            "unevaluatedProperties": False,
        },
        [{"a": 1, "b": 2}, {"b": 2, "c": "x"}, {"c": "x"}],
        [{"a": 1}, {"b": 2, "d": 1}],
    ),
    "a member that cannot be is left out": (
        {"type": "object", "properties": {"a": False, "b": I}},
        [{"b": 1}],
        [{"a": 1}],
    ),
    "quotes, backslashes and newlines in names": (
        {
            "type": "object",
            "properties": {'a"b': I, "c\\d": I, "e\nf": I, "😀": I},
            "additionalProperties": False,
        },
        [{'a"b': 1}, {"c\\d": 1}, {"e\nf": 1}, {"😀": 1}],
        [{'a"b': "s"}, {"x": 1}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_conforming_values_are_accepted(engine, name):
    """The engine accepts every conforming value and no other, as do two validators."""
    schema, good, bad = CASES[name]
    gbnf = schema_to_gbnf(schema)
    for value in good:
        assert valid(schema, value)
        assert conforms(schema, value)
        assert engine.takes(gbnf, written(value)), value
        assert engine.takes(gbnf, written(value, blank=" ")), value
    for value in bad:
        assert not valid(schema, value)
        assert not conforms(schema, value)
        assert not engine.takes(gbnf, written(value)), value


@pytest.mark.parametrize("name", CASES)
def test_every_text_of_a_grammar_conforms(name):
    """Texts drawn from the grammar at random parse and validate."""
    schema = CASES[name][0]
    grammar = Grammar(schema_to_gbnf(schema))
    for seed in range(25):
        text = grammar.draw(seed, 120)
        assert valid(schema, json.loads(text)), text


@pytest.mark.parametrize(
    "text",
    [
        '{"a\nb":1}',
        '{"\\q":1}',
        '{"q":1,"q":2}',
        '{"\\u0071":1}',
        '{"q":01}',
        '{"q":1 }',
        ' {"q":1}',
        '{"q":1}\n',
    ],
)
def test_other_spellings_are_refused(engine, text):
    """Raw controls, other escapes, repeated names, other blanks: one spelling a value."""
    schema = {"type": "object", "properties": {"q": I}, "additionalProperties": I}
    assert not engine.takes(schema_to_gbnf(schema), text)


@pytest.mark.parametrize(
    ("schema", "place", "why"),
    [
        (
            closed(a={"type": "array", "items": S, "uniqueItems": True}),
            "#/properties/a/uniqueItems",
            "distinct",
        ),
        ({"type": "string", "pattern": "(a)\\1"}, "#/pattern", "back-references"),
        ({"type": "string", "pattern": "(?<=a)b"}, "#/pattern", "lookbehind"),
        ({"type": "string", "pattern": "("}, "#/pattern", "closed"),
        ({"$ref": "https://example.com/s.json"}, "#/$ref", "nothing is fetched"),
        ({"$ref": "#/$defs/none"}, "#/$ref", "points to nothing"),
        ({"type": "sting"}, "#/type", "unknown type"),
        ({"enum": []}, "#", "no value"),
        (False, "#", "no value"),
        (closed(a={"minimum": 5, "maximum": 3, "type": "integer"}), "#", "no value"),
        ({"type": "string", "minLength": 5, "maxLength": 2}, "#", "no value"),
        ({"type": "string", "minLength": -1}, "#/minLength", "whole number"),
        ({"properties": {"a": 5}}, "#/properties/a", "object or a boolean"),
        ({"type": "integer", "multipleOf": 98_765_431}, "#", "multipleOf"),
        ({"type": "string", "not": {"format": "regex"}}, "#/not/format", "cannot be demanded"),
        (5, "#", "object or a boolean"),
    ],
)
def test_inexact_schemas_are_refused_at_their_place(schema, place, why):
    """The refusal has the place and the reason."""
    with pytest.raises(Refusal) as caught:
        schema_to_gbnf(schema, param="tools[2].parameters")
    assert f"at {place}: " in caught.value.message
    assert why in caught.value.message
    assert caught.value.param == "tools[2].parameters"
    assert caught.value.code == "invalid_request"


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": ["x" * 70_000]},
        {"type": "object", "properties": {f"p{i}": {} for i in range(501)}},
        {"enum": list(range(1_001))},
        {"type": "string", "pattern": "(" * 5_000 + ")" * 5_000},
        {"type": "string", "pattern": "^(a|b)*a(a|b){20}$"},
        {"type": "string", "pattern": "^(a{1,99}){1,99}b{1,999}$", "maxLength": 900},
        {"anyOf": [{"allOf": [{"oneOf": [{"type": "object", "required": [f"{i}{j}"]} for j in range(30)]}]} for i in range(30)]},
    ],
)  # fmt: skip
def test_work_is_bounded(schema):
    """Sizes, states and alternatives are bounded: the answer is a refusal or a grammar within the bounds."""
    try:
        size = len(schema_to_gbnf(schema))
    except Refusal:
        size = 0
    assert size <= 256 * 1024


def test_depth_is_bounded():
    """Schemas of 32 levels are read, those of 33 are refused."""
    schema: dict[str, Any] = {}
    for _ in range(15):
        schema = {"properties": {"a": schema}}
    schema_to_gbnf(schema)
    with pytest.raises(Refusal, match="32 levels"):
        schema_to_gbnf({"properties": {"a": {"properties": {"a": schema}}}})


def test_limits_can_be_narrower():
    """A caller's own limits hold."""
    with pytest.raises(Refusal, match="0 KiB"):
        schema_to_gbnf({"type": "string"}, limits=SchemaLimits(schema_bytes=5))


def test_the_same_schema_gives_the_same_grammar():
    """Compilation is deterministic after any other compilation."""
    schema = CASES["what no keyword evaluated"][0]
    first = schema_to_gbnf(schema)
    schema_to_gbnf(CASES["dependencies"][0])
    assert schema_to_gbnf(json.loads(json.dumps(schema))) == first


def test_any_object_is_a_json_object(engine):
    """`json_object` accepts every object in the grammars' spelling, and no other text."""
    gbnf = json_object_gbnf()
    for value in ({}, {"a": [1, -0.5, 1e10, "x\ny", None, True, {"": {}}]}, {"k": "é\u2028😀"}):
        assert engine.takes(gbnf, written(value))
    for text in ("[]", "1", '"a"', "{,}", '{"a":1,}', '{"a"}', '{"a":\t1}', "{}{}", ""):
        assert not engine.takes(gbnf, text)


def test_order_is_as_declared_then_required_then_others(engine):
    """Members come as declared, then those only required, then others."""
    schema = {"type": "object", "properties": {"b": I, "a": I}, "required": ["z", "a"]}
    gbnf = schema_to_gbnf(schema)
    assert engine.takes(gbnf, '{"b":1,"a":2,"z":3,"c":4}')
    for text in ('{"a":2,"b":1,"z":3}', '{"z":3,"b":1,"a":2}', '{"b":1,"a":2,"c":4,"z":3}'):
        assert not engine.takes(gbnf, text)


def test_the_empty_string_is_never_a_value(engine):
    """No grammar accepts nothing at all, and every one accepts something."""
    for schema, good, _ in CASES.values():
        assert good
        assert not engine.takes(schema_to_gbnf(schema), "")


def test_a_schema_has_the_same_grammar_in_every_process():
    """Though sets of strings have another order in each."""
    schemas = [
        {
            "allOf": [
                {"anyOf": [{"required": [a]}, {"not": {"required": [b]}}]} for a, b in ("ab", "cd", "ef")
            ]
        },
        {
            "patternProperties": {f"{x}": {"minLength": i} for i, x in enumerate("abc")},
            "additionalProperties": False,
        },
        {"allOf": [{"if": {"properties": {a: {"const": 1}}}, "then": {"required": [a]}} for a in "xyz"]},
    ]
    program = (
        "import json, sys; from b3node.grammar import schema_to_gbnf;"
        "print([schema_to_gbnf({'type': 'object', **each}) for each in json.loads(sys.argv[1])])"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program, json.dumps(schemas)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(texts) == 1


@pytest.mark.parametrize(
    "wrap", [lambda value: [value], lambda value: {"a": value}, lambda value: [[value], value]]
)
def test_lists_of_values_that_must_not_be_do_not_mix(wrap):
    """Though two of them name the same array or object."""
    lists = [[wrap(1), wrap("2")], [wrap(1), wrap("y")]]
    schema = {"type": ["array", "object"], "allOf": [{"not": {"enum": each}} for each in lists]}
    forbidden = [value for each in lists for value in each]
    for value in (*forbidden, wrap(9), wrap("9"), wrap(None)):
        assert conforms(schema, value) == (value not in forbidden)
