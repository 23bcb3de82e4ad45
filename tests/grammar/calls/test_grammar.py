"""Grammars of calls: which calls may be written, what is loosened, bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.contract.tools import MAX_TOOLS
from b3node.dialects.dialect import (
    GENERIC,
    Calls,
    Dialect,
    JsonArguments,
    KeywordArguments,
    NamedBody,
    ObjectBody,
    Span,
)
from b3node.dialects.outline import Reading, begun_as
from b3node.errors import Refusal
from b3node.grammar import LIMITS, Loose, SpecialTokens, TextAnswer, calls_gbnf, json_object_gbnf, judge
from tests.grammar.callers import AUTO, REQUIRED, Model, calls_in, parsed, required
from tests.grammar.calls.functions import BOTH, CODER, PING, WEATHER, tagged, taking
from tests.parse.families import FAMILIES, names

# ---------------------------------------------------------------------------------------------------- choices


def test_a_forced_function_is_the_only_one(engine) -> None:
    """Only its name is written, and it is called once, parallel calls or not."""
    gbnf = calls_gbnf(Dialect(calls=GENERIC), BOTH, ToolChoice("function", "ping")).grammar
    assert engine.takes(gbnf, ONE)
    assert not engine.takes(gbnf, f"{ONE}\n{ONE}")
    assert not engine.takes(
        gbnf, '<tool_call>\n{"name": "weather", "arguments": {"city": "a"}}\n</tool_call>'
    )


ONE = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize(("parallel", "most"), [(True, 16), (False, 1)])
def test_calls_follow_one_another_up_to_a_bound(engine, parallel, most) -> None:
    """There is at least one call, and several only if parallel calls are allowed."""
    gbnf = calls_gbnf(Dialect(calls=replace(GENERIC, alone=False)), BOTH, REQUIRED, parallel=parallel).grammar
    taken = [count for count in (0, 1, 2, 16, 17) if engine.takes(gbnf, "\n".join([ONE] * count))]
    assert taken == [count for count in (1, 2, 16) if count <= most]


def test_a_family_that_calls_once_calls_once(engine) -> None:
    """A dialect may say so, or the marker that closes a call ends the answer."""
    alone = Calls(ObjectBody(), open=("!",), alone=True)
    ending = Calls(ObjectBody(), open=("!",), close="<end>")
    call = '!{"name": "ping", "arguments": {}}'
    for calls in (alone, ending):
        gbnf = calls_gbnf(Dialect(calls=calls), BOTH, REQUIRED, marks=SpecialTokens({}, ["<end>"])).grammar
        assert engine.takes(gbnf, call)
        assert not engine.takes(gbnf, call * 2)


def test_a_call_that_may_be_made_begins_behind_its_marker(engine) -> None:
    """The white space at the marker's end may be repeated."""
    found = calls_gbnf(Dialect(calls=GENERIC), BOTH, AUTO)
    assert found.triggered
    for blank in ("", "\n"):
        assert engine.takes(found.grammar, f'{blank}{{"name": "ping", "arguments": {{}}}}\n</tool_call>')
    assert not engine.takes(found.grammar, ONE)


def test_a_bare_call_that_may_be_made_begins_with_its_body(engine) -> None:
    """A bare call has no marker, so the grammar begins with its body."""
    found = calls_gbnf(Dialect(calls=Calls(ObjectBody(), bare=True, alone=True)), BOTH, AUTO)
    assert found.triggered
    assert engine.takes(found.grammar, '{"name": "ping", "arguments": {}}')


def test_a_call_begun_in_another_spelling_goes_on_in_it(engine) -> None:
    """Each of a family's styles has its own start symbol in the one grammar."""
    other = Calls(NamedBody(("|",), JsonArguments()), open=("<two>",), close="</two>")
    found = calls_gbnf(Dialect(calls=GENERIC, also=(other,)), BOTH, AUTO)
    gbnf = begun_as(found.grammar, 0)
    assert engine.takes(gbnf, 'weather|{"city": "a"}</two>')
    assert not engine.takes(gbnf, '{"name": "ping", "arguments": {}}\n</tool_call>')
    assert engine.takes(found.grammar, '{"name": "ping", "arguments": {}}\n</tool_call>')


def test_spellings_of_one_family_share_what_they_spell_alike(engine) -> None:
    """Arguments stand in the grammar once, and of styles that begin alike the first is continued."""
    calls, *also = (
        Calls(NamedBody((between,), JsonArguments()), open=(marker,), close="<end>", alone=True)
        for marker, between in (("<a=", " x|"), ("<a=", "|"), ("<b=", " x|"), ("<b=", "|"))
    )
    large = taking({"properties": {f"member{n}": {"enum": ["yes", "no"]} for n in range(100)}}, name="g")
    alone = calls_gbnf(Dialect(calls=calls), [large, PING], AUTO).grammar
    found = calls_gbnf(Dialect(calls=calls, also=tuple(also)), [large, PING], AUTO).grammar
    assert engine.takes(found, 'g x|{"member1": "yes"}<end>')
    assert not engine.takes(found, "ping|{}<end>")
    assert engine.takes(begun_as(found, 1), 'g x|{"member1": "yes"}<end>')
    assert not engine.takes(begun_as(found, 1), 'g x|{"member1": "maybe"}<end>')
    assert len(found) < 1.1 * len(alone)


@pytest.mark.parametrize(
    "begun",
    [
        '{"name": "',
        '{ "name":"',
        '{\n  "name" : "',
        '{"type": "function", "name": "',
        '{ "type" :"function" ,"name":"',
    ],
)
def test_a_bare_call_goes_on_however_its_body_was_begun(engine, begun) -> None:
    """White space and a type member are the model's own; a call is parsed from both."""
    dialect = Dialect(calls=Calls(ObjectBody(arguments="parameters"), bare=True, alone=True))
    gbnf = calls_gbnf(dialect, BOTH, AUTO).grammar
    said = begun + 'weather", "parameters": {"city": "a"}}'
    assert engine.takes(gbnf, said)
    assert not engine.takes(gbnf, said.replace("weather", "whether"))
    deltas = parsed(Reading(dialect, calls=True), BOTH, judge(BOTH), said.encode())
    assert calls_in(deltas) == [("weather", '{"city": "a"}')]


def test_an_answer_in_a_format_or_a_call(engine) -> None:
    """With an answer's grammar the text is one of the two from the beginning."""
    dialect = Dialect(calls=GENERIC, text=Span("<final>", "</final>"))
    found = calls_gbnf(dialect, BOTH, AUTO, answer=TextAnswer(json_object_gbnf()))
    assert not found.triggered
    assert engine.takes(found.grammar, ONE)
    assert engine.takes(found.grammar, '<final>{"a": true}</final>')
    assert not engine.takes(found.grammar, '{"a": true}')
    inside = calls_gbnf(dialect, BOTH, AUTO, answer=TextAnswer(json_object_gbnf(), inside=True)).grammar
    assert engine.takes(inside, '{"a": true}</final>')


def test_words_of_an_answer_are_json_beside_calls_in_python(engine) -> None:
    """Rules of the same name in both are kept apart."""
    calls = Calls(NamedBody((), KeywordArguments()), open=("!",))
    found = calls_gbnf(Dialect(calls=calls), [taking({})], AUTO, answer=TextAnswer(json_object_gbnf()))  # fmt: skip
    assert engine.takes(found.grammar, '{"a": true}')
    assert engine.takes(found.grammar, "!f(a=True)")
    assert not engine.takes(found.grammar, '{"a": True}')


def test_a_forced_call_leaves_no_room_for_an_answer(engine) -> None:
    """The format of the answer does not matter then."""
    gbnf = calls_gbnf(Dialect(calls=GENERIC), BOTH, REQUIRED, answer=TextAnswer(json_object_gbnf())).grammar
    assert not engine.takes(gbnf, "{}")


def test_what_the_prompt_has_begun_is_not_written_again(engine) -> None:
    """After thinking it is written, because the marker begins anew; line ends may stand there too."""
    calls = Calls(NamedBody(("\n",), JsonArguments()), open=(">>>",))
    dialect = Dialect(calls=calls, text=Span(">>>all\n", ""))
    at_once = calls_gbnf(dialect, BOTH, AUTO, answer=TextAnswer(json_object_gbnf(), begun=">>>")).grammar
    assert engine.takes(at_once, "ping\n{}")
    assert engine.takes(at_once, "all\n{}")
    assert not engine.takes(at_once, ">>>ping\n{}")
    later = calls_gbnf(dialect, BOTH, REQUIRED, answer=TextAnswer(begun=">>>", thinking=True)).grammar
    assert engine.takes(later, "ping\n{}")
    assert engine.takes(later, "\n\n>>>ping\n{}")


def test_markers_between_the_parts_of_a_turn_may_come_first(engine) -> None:
    """They belong to no part, and are optional."""
    dialect = Dialect(calls=GENERIC, skipped=("<start>me",))
    gbnf = calls_gbnf(dialect, BOTH, REQUIRED).grammar
    assert engine.takes(gbnf, "<start>me" + ONE)
    assert engine.takes(gbnf, ONE)


def test_special_tokens_are_elements_and_names_are_never_special() -> None:
    """A function's or an argument's name that reads like a special token stays text."""
    odd = taking(name="ping", parameters={"type": "object", "properties": {"<p=": {"type": "string"}}, "required": ["<p="]})  # fmt: skip
    gbnf = calls_gbnf(
        Dialect(calls=tagged()), [odd], REQUIRED, marks=SpecialTokens({"<p=": 7, "</p>": 8})
    ).grammar
    assert gbnf.count("<[7]>") == 1
    assert '"<p=>"' in gbnf


def test_nothing_to_call_is_a_mistake_of_the_caller() -> None:
    """A dialect without calls, no functions, or `tool_choice` none is an error."""
    for dialect, tools, choice in (
        (Dialect(), BOTH, REQUIRED),
        (Dialect(calls=GENERIC), (), AUTO),
        (Dialect(calls=GENERIC), BOTH, ToolChoice("none")),
    ):
        with pytest.raises(ValueError, match="nothing to call"):
            calls_gbnf(dialect, tools, choice)


# -------------------------------------------------------------------------------------------------- loosening

BACKREFERENCE = {"type": "object", "properties": {"n": {"type": "integer"}, "t": {"type": "string", "pattern": r"(a)\1"}}}  # fmt: skip


@pytest.mark.parametrize("calls", [GENERIC, CODER])
def test_what_cannot_be_enforced_is_left_out_and_named(engine, calls) -> None:
    """The function is named by its place; the rest of its schema holds."""
    found = calls_gbnf(Dialect(calls=calls), [PING, taking(BACKREFERENCE)], REQUIRED)
    assert [f"{each.param}{each.place}" for each in found.loosened] == [
        "tools[1].parameters#/properties/t/pattern"
    ]
    assert str(found.loosened[0]).startswith("tools[1].parameters#/properties/t/pattern: ")
    if calls is GENERIC:
        text = '<tool_call>\n{{"name": "f", "arguments": {{"n": {n}, "t": "zz"}}}}\n</tool_call>'
        assert engine.takes(found.grammar, text.format(n=1))
        assert not engine.takes(found.grammar, text.format(n='"1"'))


def test_lengths_of_bare_text_that_are_too_much_to_count_are_named() -> None:
    """The judge checks the bound when the call is finished."""
    long = FunctionTool(
        "f", parameters={"type": "object", "properties": {"t": {"type": "string", "maxLength": 5000}}}
    )
    found = required(Dialect(calls=CODER), [long])
    assert [each.place for each in found.loosened] == ["#/properties/t/maxLength"]
    assert required(Dialect(calls=GENERIC), [long]).loosened == ()


@pytest.mark.parametrize("calls", [GENERIC, CODER])
def test_a_strict_function_that_cannot_be_exact_is_refused_with_its_place(calls) -> None:
    """A strict function that can be enforced is accepted."""
    strict = taking(BACKREFERENCE, strict=True)
    with pytest.raises(Refusal) as refused:
        required(Dialect(calls=calls), [PING, strict])
    assert (refused.value.code, refused.value.param) == ("invalid_request", "tools[1].parameters")
    assert required(Dialect(calls=calls), [taking(WEATHER.parameters, strict=True)]).loosened == ()


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"type": "string"}, "#"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "#"),
        ({"type": 5}, "#/type"),
    ],
)
@pytest.mark.parametrize("calls", [GENERIC, CODER])
def test_a_schema_of_no_arguments_takes_no_request_down(engine, calls, parameters, place) -> None:
    """Any object may be written, which is reported; the judge rejects the call."""
    found = required(Dialect(calls=calls), [taking(parameters)])
    assert [each.place for each in found.loosened] == [place]
    assert Model(found.grammar, ()).write(1)


def test_only_objects_are_arguments(engine) -> None:
    """Arguments are objects even if the schema allows other values."""
    either = taking({"anyOf": [{"type": "object"}, {"type": "null"}]})
    gbnf = required(Dialect(calls=GENERIC), [either]).grammar
    assert engine.takes(gbnf, '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>')
    assert not engine.takes(gbnf, '<tool_call>\n{"name": "f", "arguments": null}\n</tool_call>')


def test_undeclared_members_are_written_where_a_schema_asks_for_them(engine) -> None:
    """Patterns, a schema for others, an explicit `true`, or no declared members allow them."""
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    a = {"properties": {"a": {"type": "string"}}}
    opened = [{}, {**a, "additionalProperties": True}, {**a, "additionalProperties": {"type": "integer"}}, {**a, "patternProperties": {"^x": {}}}]  # fmt: skip
    for parameters in opened:
        assert engine.takes(required(Dialect(calls=GENERIC), [taking(parameters)]).grammar, call)
    assert not engine.takes(required(Dialect(calls=GENERIC), [taking(a)]).grammar, call)


# ----------------------------------------------------------------------------------------------------- bounds


def large(number: int) -> FunctionTool:
    members = {
        f"member_{number}_{i}": {"enum": [f"value {number} {i} {j}" for j in range(40)]} for i in range(12)
    }
    return FunctionTool(f"large_{number}", parameters={"type": "object", "properties": members})


def small(number: int) -> FunctionTool:
    members = {f"city_{number}": {"type": "string"}, "days": {"type": "integer", "minimum": number}}
    return FunctionTool(
        f"do_{number}",
        parameters={"type": "object", "properties": members, "required": [f"city_{number}"]},
    )


@pytest.mark.parametrize("calls", [GENERIC, CODER])
def test_functions_that_are_too_large_together_are_given_up_largest_first(engine, calls) -> None:
    """The grammar stays within the engine's bounds; small functions hold, and relaxed ones are named."""
    tools = [WEATHER, *map(large, range(60)), PING]
    found = required(Dialect(calls=calls), tools)
    assert len(found.grammar.encode()) <= LIMITS.grammar_bytes
    assert found.grammar.count("\n") <= LIMITS.printed_rules
    given_up = {each.param for each in found.loosened}
    assert given_up
    assert not given_up & {"tools[0].parameters", "tools[61].parameters"}
    assert Model(found.grammar, ()).write(3)


def test_as_many_functions_as_a_request_may_have_are_one_grammar(engine) -> None:
    """128 functions with names that begin alike and parameters of their own fit in one grammar."""
    tools = [small(number) for number in range(MAX_TOOLS)]
    found = required(Dialect(calls=GENERIC), tools)
    assert found.loosened == ()
    call = '<tool_call>\n{"name": "do_%d", "arguments": {"city_%d": "a"}}\n</tool_call>'
    assert engine.takes(found.grammar, call % (12, 12))
    assert not engine.takes(found.grammar, call % (12, 13))
    assert not engine.takes(found.grammar, call % (128, 12))


@pytest.mark.parametrize("family", [each for each in FAMILIES if each.dialect.calls], ids=names)
def test_every_family_can_write_as_many_functions_as_a_request_may_have(family) -> None:
    """However long the grammar of any arguments is, 128 functions stay within the engine's bounds."""
    tools = [small(number) for number in range(MAX_TOOLS)]
    found = required(family.dialect, tools, family.specials)
    assert len(found.grammar.encode()) <= LIMITS.grammar_bytes
    assert len(found.loosened) < MAX_TOOLS


def test_functions_that_take_the_same_share_their_rules() -> None:
    """The grammar of 128 functions that take the same grows by their names alone."""
    one, many = (
        required(
            Dialect(calls=GENERIC), [FunctionTool(f"do_{i}", parameters=WEATHER.parameters) for i in range(n)]
        )
        for n in (1, MAX_TOOLS)
    )
    assert len(many.grammar) < len(one.grammar) + MAX_TOOLS * len('"127" r12 | ')


def test_what_was_compiled_is_not_compiled_again() -> None:
    """A request reuses the functions of an earlier one, under any name, with the same result."""
    known: dict[bytes, Loose] = {}
    first = calls_gbnf(Dialect(calls=GENERIC), BOTH, REQUIRED, known=known)
    keys = set(known)
    again = calls_gbnf(
        Dialect(calls=GENERIC),
        [PING, FunctionTool("other", parameters=WEATHER.parameters)],
        REQUIRED,
        known=known,
    )
    assert set(known) == keys
    assert len(keys) == 2
    assert calls_gbnf(Dialect(calls=GENERIC), BOTH, REQUIRED, known=known) == first
    assert json.dumps("other") not in first.grammar
    assert again.loosened == ()


@pytest.mark.parametrize(
    "more", [{}, {"required": []}, {"$schema": "x", "title": "T"}, {"additionalProperties": False}]
)
def test_a_function_without_parameters_is_called_with_none(engine, more: dict[str, Any]) -> None:
    """Agents declare them as an object with empty `properties`; a model would invent members if it could."""
    gbnf = required(Dialect(calls=GENERIC), [taking({"type": "object", "properties": {}, **more})]).grammar
    assert engine.takes(gbnf, '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>')
    assert not engine.takes(gbnf, '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>')


@pytest.mark.parametrize(
    "schema",
    [{"type": ["string", "integer"], "maximum": 9}, {"exclusiveMaximum": 0, "pattern": "[^a]"}],
    ids=repr,
)
def test_a_text_that_would_be_read_as_a_value_that_may_not_be_is_not_written(engine, schema) -> None:
    """Where strings are unquoted next to numbers, the text conforms as it is parsed."""
    tool = taking({"type": "object", "properties": {"a": schema}, "required": ["a"]})
    gbnf = required(Dialect(calls=tagged()), [tool]).grammar
    for value, right in (("100", False), ("-100", True), ("sea", True), (" 100", False), ("truer", True)):
        assert engine.takes(gbnf, f"<f=f><p=a>{value}</p></f>") == right, value


@pytest.mark.parametrize("calls", [GENERIC, CODER])
@pytest.mark.parametrize("least", [2, 3, 4])
def test_more_members_than_are_declared_are_none(calls, least) -> None:
    """Where undeclared members are not written, only a member that would need them is left out."""
    never = {"type": "object", "properties": {"a": {"type": "null"}}, "minProperties": least}
    found = required(
        Dialect(calls=calls), [taking({"properties": {"never": never, "other": {"type": "null"}}})]
    )
    assert "other" in found.grammar
    assert "never" not in found.grammar
    assert found.loosened == ()
