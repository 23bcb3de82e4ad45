"""Conversations become the JSON that templates read."""

from __future__ import annotations

import pytest

from b3node.contract.request import FunctionTool, ImagePart, TextPart
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ToolCall,
    ToolTurn,
    UserTurn,
    normalise,
)
from b3node.prompt.template.messages import messages, tools
from b3node.prompt.tokens.provenance import IMAGE, client
from tests.prompt.histories import HISTORIES


def test_everything_stands_under_the_names_that_templates_use() -> None:
    """One conversation with all of it, message by message."""
    turns = (
        UserTurn((TextPart("u"),)),
        AssistantTurn("a", "r", (ToolCall("call00001", "f", {"x": [1, "y"]}),)),
        ToolTurn("call00001", "f", "t"),
    )
    function = {"name": client("f"), "arguments": {client("x"): [1, client("y")]}}
    thinking = client("r")

    assert messages(Conversation("s", turns)) == [
        {"role": "system", "content": client("s")},
        {"role": "user", "content": client("u")},
        {
            "role": "assistant",
            "content": client("a"),
            "reasoning_content": thinking,
            "reasoning": thinking,
            "thinking": thinking,
            "tool_calls": [{"id": "call00001", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call00001", "name": client("f"), "content": client("t")},
    ]


def test_missing_parts_are_absent() -> None:
    """No system message without a text, no thinking, no empty list of calls, no None."""
    assert messages(Conversation("", (AssistantTurn("a"),))) == [
        {"role": "assistant", "content": client("a")}
    ]
    assert tools(()) is None


def test_a_bare_function_is_described_all_the_same() -> None:
    """Templates print description and parameters without asking whether they are there."""
    assert tools((FunctionTool("f"),)) == [
        {
            "type": "function",
            "function": {
                "name": client("f"),
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]


def test_an_image_is_a_placeholder() -> None:
    """An image stands in the content where it stood in the message."""
    turn = UserTurn((TextPart("see"), ImagePart("https://x/"), TextPart("?")))

    assert messages(Conversation("", (turn,)))[0]["content"] == f"{client('see')}\n{IMAGE}\n{client('?')}"


@pytest.mark.parametrize(
    ("form", "thinking", "bare"),
    [
        (
            "chunks",
            [{"type": "thinking", "thinking": client("r")}, {"type": "text", "text": client("a")}],
            [],
        ),
        (
            "blocks",
            {
                "blocks": [
                    {"type": "thoughts", "text": client("r")},
                    {"type": "response", "text": client("a")},
                ]
            },
            {"blocks": []},
        ),
    ],
)
def test_thinking_stands_in_the_content_where_a_template_wants_it(form, thinking, bare) -> None:
    """All assistant turns have that form then; without any thinking they are plain strings."""
    turns = (AssistantTurn("a", "r"), AssistantTurn())

    got = messages(Conversation("", turns, (), form))
    assert got == [{"role": "assistant", "content": thinking}, {"role": "assistant", "content": bare}]
    assert messages(Conversation("", turns[1:], (), form)) == [{"role": "assistant", "content": ""}]


@pytest.mark.parametrize("name", HISTORIES)
def test_content_is_always_a_string(name) -> None:
    """Templates print None and refuse lists, so there is neither."""
    for message in messages(normalise(HISTORIES[name])):
        assert isinstance(message["content"], str)
        assert None not in message.values()
        assert [] not in message.values()
