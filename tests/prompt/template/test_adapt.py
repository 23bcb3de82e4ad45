"""Conversations are adapted to the capabilities of a template."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from b3node.contract.request import ImagePart, TextPart
from b3node.dialects.dialect import Calls, KeywordArguments, NamedBody, Span
from b3node.prompt.template.adapt import adapt
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ToolCall,
    ToolTurn,
    UserTurn,
    normalise,
)
from b3node.prompt.tokens.provenance import client, plain
from tests.prompt.histories import BARE, HISTORIES
from tests.prompt.probe.test_capabilities import CAPABILITIES


def says(text: str) -> UserTurn:
    return UserTurn((TextPart(text),))


def adapted(conversation: Conversation, **lacking) -> Conversation:
    return adapt(conversation, replace(CAPABILITIES, **lacking))


def talk(*turns, system="", tools=()) -> Conversation:
    return Conversation(system, turns, tools)


ONE, TWO = ToolCall("call00001", "f", {"x": 1}), ToolCall("call00002", "g", {})
TOLD, TOLD_TOO = ToolTurn("call00001", "f", "r"), ToolTurn("call00002", "g", "s")


@pytest.mark.parametrize("name", HISTORIES)
def test_an_able_template_gets_the_conversation_as_it_is(name) -> None:
    """A conversation that suits is not changed."""
    conversation = normalise(HISTORIES[name])

    assert adapt(conversation, CAPABILITIES) == conversation


@pytest.mark.parametrize("name", HISTORIES)
def test_the_least_able_template_gets_alternating_turns(name) -> None:
    """A user first, then the two in turn, without system, functions, calls or results."""
    got = adapt(normalise(HISTORIES[name]), TemplateCapabilities())

    assert got.system == ""
    assert got.tools == ()
    assert [type(turn) for turn in got.turns] == [
        (UserTurn, AssistantTurn)[n % 2] for n in range(len(got.turns))
    ]
    assert not any(turn.calls for turn in got.turns if isinstance(turn, AssistantTurn))


def test_a_system_text_moves_into_the_first_user_turn() -> None:
    """Two paragraphs there; a user turn of its own if the assistant begins."""
    image = ImagePart("https://x/")

    assert adapted(talk(says("u"), says("v"), system="S"), system=False) == talk(says("S\n\nu"), says("v"))
    assert adapted(talk(AssistantTurn("a"), system="S"), system=False) == talk(says("S"), AssistantTurn("a"))
    assert adapted(talk(UserTurn((image,)), system="S"), system=False).turns == (
        UserTurn((TextPart("S"), image)),
    )


def test_functions_that_cannot_be_declared_are_described() -> None:
    """The system text lists them as JSON and says how to call one."""
    got = adapted(talk(says("u"), system="S", tools=(BARE,)), tools=False)
    listed = {"name": "ping", "description": "", "parameters": {"type": "object", "properties": {}}}

    assert got.tools == ()
    assert got.system.startswith("S\n\n")
    assert json.dumps(listed) in got.system.splitlines()
    assert '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>' in got.system


def test_calls_that_cannot_be_written_are_text() -> None:
    """A JSON object between tags, after the text; the tags are ours, the object is the
    client's.
    """
    got = adapted(
        talk(says("u"), AssistantTurn("a", "t", (ONE, TWO)), TOLD, TOLD_TOO), calls=False, parallel=False
    )

    name, other, member = map(client, "fgx")
    spelled = (
        f'<tool_call>\n{{"name": "{name}", "arguments": {{"{member}": 1}}}}\n</tool_call>\n'
        f'<tool_call>\n{{"name": "{other}", "arguments": {{}}}}\n</tool_call>'
    )
    assert got.turns[1] == AssistantTurn("a", "t", written_calls=spelled)
    assert got.turns[2:] == (TOLD, TOLD_TOO)


def test_results_that_cannot_be_written_are_a_user_turn() -> None:
    """All results of a round in one turn, between tags."""
    got = adapted(talk(says("u"), AssistantTurn(calls=(ONE, TWO)), TOLD, TOLD_TOO, says("v")), results=False)

    assert got.turns[2:] == (
        says("<tool_response>\nr\n</tool_response>\n<tool_response>\ns\n</tool_response>"),
        says("v"),
    )


def test_a_template_without_functions_and_calls_says_results_as_text_too() -> None:
    """A turn of a role `tool` would mean nothing to a model whose prompt explains tags."""
    conversation = talk(says("u"), AssistantTurn(calls=(ONE,)), TOLD)
    told = says("<tool_response>\nr\n</tool_response>")

    assert adapted(conversation, tools=False, calls=False).turns[2] == told
    assert adapted(conversation, tools=False).turns[2] == TOLD
    assert adapted(conversation, calls=False).turns[2] == TOLD


def test_parallel_calls_become_rounds() -> None:
    """One call a turn, each followed by its own result; the text stays with the first."""
    got = adapted(talk(says("u"), AssistantTurn("a", "t", (ONE, TWO)), TOLD, TOLD_TOO), parallel=False)

    assert got.turns[1:] == (
        AssistantTurn("a", "t", (ONE,)),
        TOLD,
        AssistantTurn(calls=(TWO,)),
        TOLD_TOO,
    )


@pytest.mark.parametrize(
    ("arguments", "lacking", "expected"),
    [
        ({"a": "é"}, {"arguments": "text"}, '{"a": "é"}'),
        ("[1]", {"arguments": "text"}, "[1]"),
        ("[1]", {"arguments": "text", "loose_arguments": False}, "[1]"),
        ("[1]", {"loose_arguments": False}, {"arguments": "[1]"}),
        ({"a": 1}, {"loose_arguments": False}, {"a": 1}),
    ],
)
def test_arguments_have_the_form_that_the_template_takes(arguments, lacking, expected) -> None:
    """A mapping as JSON text where text is wanted, text as a mapping's member where it is not."""
    got = adapted(
        talk(says("u"), AssistantTurn(calls=(ToolCall("call00001", "f", arguments),)), TOLD), **lacking
    )

    assert got.turns[1] == AssistantTurn(calls=(ToolCall("call00001", "f", expected),))


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("text", (AssistantTurn("a", "t", (ONE,)),)),
        ("thinking", (AssistantTurn("", "t\n\na", (ONE,)),)),
        ("turn", (AssistantTurn("a"), AssistantTurn("", "t", (ONE,)))),
        ("apart", (AssistantTurn("a"), says(""), AssistantTurn("", "t", (ONE,)))),
    ],
)
def test_a_text_next_to_a_call_stands_where_the_template_writes_it(way, expected) -> None:
    """The calls stay before their results; a text without calls stays as it is."""
    rest = (TOLD, AssistantTurn("b", "u"))
    turns = (AssistantTurn("a", "t", (ONE,)), *rest)

    assert adapted(talk(*turns), text_beside_calls=way, old_text_beside_calls="text").turns == (
        *expected,
        *rest,
    )
    assert adapted(talk(*turns, says("v")), text_beside_calls="text", old_text_beside_calls=way).turns == (
        *expected,
        *rest,
        says("v"),
    )


def test_a_text_alone_becomes_thinking() -> None:
    """Nothing is put before it if the turn has no thinking."""
    got = adapted(talk(AssistantTurn("a", "", (ONE,)), TOLD), text_beside_calls="thinking")

    assert got.turns == (AssistantTurn("", "a", (ONE,)), TOLD)


def test_the_form_of_thinking_is_the_templates() -> None:
    """It goes with the conversation."""
    assert adapted(talk(says("u")), thinking_placement="chunks").thinking_placement == "chunks"


def test_users_in_a_row_are_merged() -> None:
    """Texts become paragraphs; images stay where they are."""
    image = UserTurn((ImagePart("https://x/"),))
    got = adapted(
        talk(says("u"), says("v"), image, says("w"), AssistantTurn("a"), says("x")), users_in_a_row=False
    )

    assert got.turns == (
        UserTurn((TextPart("u\n\nv"), *image.content, TextPart("w"))),
        AssistantTurn("a"),
        says("x"),
    )


def test_an_empty_turn_stands_where_a_template_insists_on_one() -> None:
    """A user's before the assistant's first, an assistant's between a result and a user."""
    first = talk(AssistantTurn("a"), says("u"))
    alone = talk(AssistantTurn("a"))
    result = talk(says("u"), AssistantTurn(calls=(ONE,)), TOLD, says("v"))

    assert adapted(first, assistant_first=False).turns == (says(""), *first.turns)
    assert adapted(first, no_user=False) == first
    assert adapted(alone, no_user=False).turns == (says(""), *alone.turns)
    assert adapted(talk(says("u"), AssistantTurn()), empty_answer=False).turns[1] == AssistantTurn(" ")
    assert adapted(result, user_after_result=False, empty_answer=False).turns[3] == AssistantTurn(" ")
    answered = talk(says("u"), AssistantTurn("a"))
    assert adapted(answered, answer_last=False).turns == (*answered.turns, says(""))
    assert adapted(result, user_after_result=False).turns == (*result.turns[:3], AssistantTurn(), says("v"))


def test_calls_are_spelled_as_the_model_spells_them() -> None:
    """Where the template drops calls, the family's own spelling keeps history and answer alike; it is
    explained too.
    """
    own = Calls(NamedBody((), KeywordArguments()), Span("<|call|>[", "]"), between=", ")
    conversation = talk(says("u"), AssistantTurn(calls=(ONE, TWO)), TOLD, TOLD_TOO, tools=(BARE,))
    got = adapt(conversation, TemplateCapabilities(system=True), own)

    assert isinstance(got.turns[1], AssistantTurn)
    assert plain(got.turns[1].written_calls) == "<|call|>[f(x=1), g()]"
    assert "<|call|>[NAME(ARGUMENT='VALUE')]" in got.system
