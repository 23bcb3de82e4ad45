"""Short spellings for requests, and the conversations that real agents send."""

from __future__ import annotations

from b3node.contract.request import (
    FunctionCall,
    FunctionCallOutput,
    FunctionTool,
    Message,
    Reasoning,
    Request,
    TextPart,
)


def user(*texts: str) -> Message:
    return Message("user", tuple(map(TextPart, texts)))


def assistant(*texts: str) -> Message:
    return Message("assistant", tuple(map(TextPart, texts)))


def system(*texts: str) -> Message:
    return Message("system", tuple(map(TextPart, texts)))


def developer(*texts: str) -> Message:
    return Message("developer", tuple(map(TextPart, texts)))


def call(call_id: str, name: str = "get_weather", arguments: str = '{"city": "Oslo"}') -> FunctionCall:
    return FunctionCall(call_id, name, arguments)


def output(call_id: str, *texts: str) -> FunctionCallOutput:
    return FunctionCallOutput(call_id, tuple(map(TextPart, texts)))


def request(*items, **fields) -> Request:
    return Request(model="m", input=items, **fields)


WEATHER = FunctionTool(
    "get_weather",
    "Weather & wind <now> in one “city”.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": 'Name, e.g. "Tromsø".'},
            "days": {"type": "integer", "default": None},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["wind", "rain"]}},
            "Place": {"$ref": "#/$defs/place"},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "type": {"type": "object", "additionalProperties": {"type": "number"}},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}}},
    },
)
BARE = FunctionTool("ping")
TOOLS = (WEATHER, BARE)
HARD = '{"city": "Tromsø \\"n\\"", "days": null, "l": [1, 2.5, {"x": true}], "b": "a\\nb", "e": {}}'

HISTORIES = {
    "plain": request(user("Hi <there> & you")),
    "unicode": request(user("Grüße 你好 नमस्ते 👩🏽‍🚀 \u202e \u0301"), instructions="Ж"),
    "instructions": request(user("Hi"), instructions="Be brief."),
    "systems_anywhere": request(
        system("A"), user("Hi"), developer("B"), assistant("Yes?"), system("C"), user("Bye"), instructions="I"
    ),
    "only_system_first": request(developer("A"), developer("B"), user("Hi")),
    "users_in_a_row": request(user("Hi"), user("there"), user("again", "and again")),
    "assistant_first": request(assistant("Hello!"), user("Hi")),
    "assistant_last": request(user("Hi"), assistant("Hello!")),
    "assistant_alone": request(assistant("Hello!")),
    "empty_answer": request(user("Hi"), assistant(""), user("Well?")),
    "no_parts": request(user("Hi"), user(), assistant("x"), user("y")),
    "tools": request(user("Hi"), tools=TOOLS, instructions="I"),
    "call": request(user("Hi"), call("a", arguments=HARD), output("a", "12C <b>"), tools=TOOLS),
    "call_then_user": request(user("Hi"), call("a"), output("a", "12C"), user("More"), tools=TOOLS),
    "call_then_answer": request(
        user("Hi"), call("a"), output("a", "12C"), assistant("It is 12"), user("More"), tools=TOOLS
    ),
    "two_calls": request(
        user("Hi"), call("a"), call("b", "ping", ""), output("b", "pong"), output("a", "12C"), tools=TOOLS
    ),
    "three_rounds": request(
        user("Hi"),
        *(item for n in "abc" for item in (call(n), output(n, f"{n} done"))),
        assistant("Done"),
        user("Thanks"),
        tools=TOOLS,
    ),
    "folded": request(
        user("Hi"),
        Reasoning("Think."),
        assistant("Let me look."),
        call("a"),
        output("a", "12C"),
        Reasoning(""),
        Reasoning("More."),
        assistant("Fine."),
        user("And?"),
        tools=TOOLS,
        effort="low",
    ),
    "arguments_list": request(user("Hi"), call("a", arguments='["x"]'), output("a", "12C"), tools=TOOLS),
    "arguments_broken": request(
        user("Hi"), call("a", arguments='{"city": '), output("a", "bad"), tools=TOOLS
    ),
    "unanswered": request(user("Hi"), call("a"), user("Stop"), tools=TOOLS),
    "unanswered_last": request(user("Hi"), call("a"), tools=TOOLS),
    "answered_late": request(user("Hi"), call("a"), user("Wait"), output("a", "12C"), tools=TOOLS),
    "call_first": request(call("a"), output("a", "12C"), tools=TOOLS),
    "undeclared": request(user("Hi"), call("a", "old_tool"), output("a", "12C"), user("Go on")),
    "repeated_id": request(
        user("Hi"), call("a"), output("a", "1"), assistant("One."), call("a"), output("a", "2"), tools=TOOLS
    ),
    "empty_output": request(user("Hi"), call("a"), output("a"), user("So?"), tools=TOOLS),
}
"""Requests by their oddity; all are valid."""
