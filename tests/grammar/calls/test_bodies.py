"""Each kind of body of a call: texts that llama.cpp's engine accepts, and drawn texts, parsed back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from b3node.dialects.dialect import (
    GENERIC,
    Calls,
    Dialect,
    Hole,
    JsonArguments,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    QuotedArguments,
    Span,
)
from b3node.dialects.outline import Reading
from b3node.grammar import judge
from tests.grammar.callers import Model, calls_in, parsed, required
from tests.grammar.calls.functions import BOTH, CODER, tagged, taking
from tests.grammar.schemas import NAMES, schemas
from tests.parse.families import FAMILIES, TOOLS, names


@pytest.mark.parametrize("family", [each for each in FAMILIES if each.dialect.calls], ids=names)
def test_what_a_family_is_made_to_write_is_read_as_calls_that_match(family) -> None:
    """Every text drawn from the grammar parses as calls of declared names, and the judge accepts them."""
    model = Model(required(family.dialect, TOOLS, family.specials).grammar, family.specials)
    reading = Reading(family.dialect, calls=True, specials=family.specials)
    for seed in range(12):
        assert calls_in(parsed(reading, TOOLS, judge(TOOLS), model.write(seed)))


SPELLED = [
    pytest.param(
        GENERIC,
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Os\\"lo", "unit": "C", "days": 3}}\n</tool_call>',
        [
            '<tool_call>\n{"name": "weathr", "arguments": {"city": "a"}}\n</tool_call>',
            '<tool_call>\n{"name": "weather", "arguments": {"unit": "C"}}\n</tool_call>',
            '<tool_call>\n{"name": "weather", "arguments": {"city": "a", "unit": "K"}}\n</tool_call>',
            '<tool_call>\n{"name": "weather", "arguments": {"city": "a", "made_up": 1}}\n</tool_call>',
            '<tool_call>\n{"name": "ping", "arguments": {"city": "a"}}\n</tool_call>',
            '<tool_call>\n{"name": "weather", "arguments": "{}"}\n</tool_call>',
        ],
        id="object",
    ),
    pytest.param(
        Calls(ObjectBody(before="id", after="ref"), section=Span("[C][", "]"), between=", "),
        '[C][{"id": "0", "name": "ping", "arguments": {}, "ref": "abcdef123"}, {"id":"1","name":"ping","arguments":{},"ref":"abcdef123"}]',
        ['[C][{"name": "ping", "arguments": {}}]', "[C][]"],
        id="object with ids",
    ),
    pytest.param(
        Calls(KeyedBody(), open=("[",), close="]"),
        '[{"weather": {"city": "a"}}]',
        ['[{"other": {}}]', '[{"ping": {}, "weather": {"city": "a"}}]', "[{}]"],
        id="keyed",
    ),
    pytest.param(
        Calls(NamedBody((":", Hole("index", 1), "|"), JsonArguments()), section=Span("<s>", "</s>"), open=("<c>",), close="</c>"),
        '<s><c>ping:1|{}</c><c>weather:2|{"city": "a"}</c></s>',
        ["<s><c>ping:0|{}</c></s>", "<s><c>ping:1|{}</c><c>ping:1|{}</c></s>", "<s><c>ping:1|{}</c>"],
        id="named with an index",
    ),
    pytest.param(
        Calls(NamedBody(("[ID]", Hole("id"), "[ARGS]"), JsonArguments()), open=("[CALL]",)),
        "[CALL]ping[ID]abcDEF123[ARGS]{}[CALL]ping[ID]abcDEF123[ARGS]{}",
        ["[CALL]ping[ID]abc[ARGS]{}", "[CALL]ping[ARGS]{}"],
        id="named with an id",
    ),
    pytest.param(
        CODER,
        '<call>\n<f=weather>\n<p=city>\nOs </ lo\n\n</p>\n<p=unit>\nF\n</p>\n<p=days>\n9\n</p>\n<p=tags>\n["x"]\n</p>\n</f>\n</call>',
        [
            "<call>\n<f=weather>\n</f>\n</call>",
            "<call>\n<f=weather>\n<p=city>\na\n</p>\n<p=unit>\nK\n</p>\n</f>\n</call>",
            "<call>\n<f=weather>\n<p=city>\na\n</p>\n<p=days>\n10\n</p>\n</f>\n</call>",
            "<call>\n<f=weather>\n<p=city>\na\n</p>\n<p=tags>\n[1]\n</p>\n</f>\n</call>",
            "<call>\n<f=weather>\n<p=city>\na\n</p>\n<p=city>\na\n</p>\n</f>\n</call>",
            "<call>\n<f=weather>\n<p=city>\na\n</p>\n<p=more>\na\n</p>\n</f>\n</call>",
        ],
        id="tagged",
    ),
    pytest.param(
        tagged(kind="flag", kind_close="|"),
        "<f=weather><p=city>true|3</p><p=days>false|3</p></f>",
        ["<f=weather><p=city>false|3</p></f>", "<f=weather><p=city>true|a</p><p=days>true|3</p></f>"],
        id="tagged with flags",
    ),
    pytest.param(
        tagged(kind="type", kind_close="|"),
        "<f=weather><p=city>string|3</p><p=days>number|3</p><p=tags>array|[]</p></f>",
        ["<f=weather><p=city>number|3</p></f>", "<f=weather><p=city>string|a</p><p=days>string|3</p></f>"],
        id="tagged with types",
    ),
    pytest.param(
        Calls(NamedBody((), KeywordArguments()), section=Span("<s>[", "]</s>"), between=", "),
        '<s>[weather(city="a\\"b", days=2, tags=["x"]), ping()]</s>',
        ["<s>[weather()]</s>", "<s>[weather(city=a)]</s>", '<s>[weather(days=2, city="a")]</s>', "<s>[ping(a=1)]</s>"],
        id="keywords",
    ),
    pytest.param(
        Calls(NamedBody((), QuotedArguments("$$")), open=("call:",), close=";"),
        'call:weather{city:$$a"$b$$,unit:$$C$$,days:2,tags:[$$x$$,$$y$$]};',
        ["call:weather{city:a};", "call:weather{};", "call:weather{city:$$a$$,unit:$$K$$};", "call:weather{city:$$a$$,tags:[1]};"],
        id="quoted",
    ),
    pytest.param(
        Calls(NamedBody((">",), NestedArguments("~", "item")), open=("~<f ",), close="~</f>"),
        "~<f weather>~<city>a<b~</city>~<days>2~</days>~<tags>~<item>x~</item>~<item>y~</item>~</tags>~</f>",
        ["~<f weather>~</f>", "~<f weather>~<city>a~</town>~</f>", "~<f weather>~<city>a~</city>~<days>x~</days>~</f>"],
        id="nested",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "right", "wrong"), SPELLED)
def test_each_body_is_taken_as_it_is_spelled_and_not_otherwise(engine, calls, right, wrong) -> None:
    """llama.cpp's engine accepts a call written by hand, and none with one fault."""
    gbnf = required(Dialect(calls=calls), BOTH).grammar
    assert engine.takes(gbnf, right)
    assert [text for text in wrong if engine.takes(gbnf, text)] == []


def test_python_words_are_written_where_a_family_writes_them(engine) -> None:
    """Keyword arguments have True, False and None at any depth."""
    anything = taking({"type": "object", "properties": {"a": {}, "b": {"type": ["boolean", "null"]}}})  # fmt: skip
    gbnf = required(Dialect(calls=Calls(NamedBody((), KeywordArguments()), open=("!",))), [anything]).grammar
    assert engine.takes(gbnf, '!f(a=[True, {"x": None}], b=False)')
    assert not engine.takes(gbnf, "!f(b=false)")
    assert not engine.takes(gbnf, "!f(a=[true])")


FORMS: dict[Any, Any] = {param.id: param.values[0] for param in SPELLED}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(NAMES), schemas, max_size=3), st.integers(0, 1000))
@pytest.mark.parametrize("calls", FORMS.values(), ids=FORMS)
def test_arguments_of_any_schema_are_read_back_and_match_it(calls, properties, seed) -> None:
    """Random parameters in every style are parsed back, unless the grammar reports that it loosened them."""
    parts = {name: dict(part) if isinstance(part, dict) else part for name, part in properties.items()}
    defined = [part.pop("$defs") for part in parts.values() if isinstance(part, dict)]
    parameters = {
        "type": "object",
        "properties": parts,
        "required": list(parts)[:1],
        "$defs": (defined or [{}])[0],
    }
    tool = taking(parameters)
    found = required(Dialect(calls=calls), [tool])
    matches = judge([tool])
    for offset in range(3):
        deltas = parsed(Reading(Dialect(calls=calls), calls=True), [tool], lambda *_: True, Model(found.grammar, ()).write(seed + offset, 60))  # fmt: skip
        if not found.loosened:
            assert [text for name, text in calls_in(deltas) if not matches(name, text)] == []


@pytest.mark.parametrize(
    "properties", [{"b": {"type": "null"}}, {"b": {"type": "null"}, "c": False}, {"c": False}]
)
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("calls", FORMS.values(), ids=FORMS)
def test_an_object_that_must_have_a_member_is_not_written_without(calls, inside, properties) -> None:
    """Any kind is accepted; where no text can be written, the grammar reports that it does not enforce it."""
    asked = {"type": "object", "minProperties": 1, "properties": properties}
    tool = taking({"type": "object", "properties": {"a": asked}, "required": ["a"]} if inside else asked)
    found, matches = required(Dialect(calls=calls), [tool]), judge([tool])
    said = [
        parsed(Reading(Dialect(calls=calls), calls=True), [tool], lambda *_: True, Model(found.grammar, ()).write(seed, 60))
        for seed in range(8)
    ]  # fmt: skip
    assert bool(found.loosened) == ("b" not in properties)
    assert found.loosened or all(matches(name, text) for deltas in said for name, text in calls_in(deltas))


@pytest.mark.parametrize(
    "asked",
    [
        {"not": {"pattern": "^a"}},
        {"not": {"type": "null"}},
        {"not": {"type": ["number", "boolean"]}},
        {"type": ["string", "array"], "minItems": 1},
        {"type": "string", "minLength": 1},
    ],
)
@pytest.mark.parametrize("calls", FORMS.values(), ids=FORMS)
def test_no_text_is_written_that_would_be_read_as_what_may_not_be(calls, asked) -> None:
    """The parser sees types and alternatives only; values that the rest of a schema forbids are not written.

    Elements cannot demand that both ends of a member have the same name, and report it.
    """
    tool = taking({"type": "object", "properties": {"a": asked}, "required": ["a"]})
    found, matches = required(Dialect(calls=calls), [tool]), judge([tool])
    said = [
        parsed(Reading(Dialect(calls=calls), calls=True), [tool], lambda *_: True, Model(found.grammar, ()).write(seed, 60))
        for seed in range(8)
    ]  # fmt: skip
    assert found.loosened or all(matches(name, text) for deltas in said for name, text in calls_in(deltas))
    assert not found.loosened or calls == FORMS["nested"]


@pytest.mark.parametrize(
    ("asked", "right", "wrong"),
    [
        ({"not": {"pattern": "^a"}}, ["b", "nul"], ["null", "12", "true", "", " "]),
        ({"type": "string"}, ["null", "12", ""], []),
        ({"type": "string", "minLength": 1}, ["null", " a"], ["", "  "]),
        ({"type": ["string", "null"]}, ["a", ""], ["12x~"]),
    ],
)
def test_bare_texts_that_look_like_other_values(engine, asked, right, wrong) -> None:
    """In elements a value that can only be a string is written as it is, even if it looks like a number."""
    tool = taking({"type": "object", "properties": {"a": asked}, "required": ["a"]})
    gbnf = required(Dialect(calls=FORMS["nested"]), [tool]).grammar
    assert [text for text in right if not engine.takes(gbnf, f"~<f f>~<a>{text}~</a>~</f>")] == []
    assert [text for text in wrong if engine.takes(gbnf, f"~<f f>~<a>{text}~</a>~</f>")] == []
