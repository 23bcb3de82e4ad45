"""The echo of the request in the response."""

from __future__ import annotations

import json

import pytest

from b3node.contract.encode import response_body
from b3node.contract.request import FunctionTool, Request, TextFormat, ToolChoice
from b3node.events.initial_response import begin

ID = "resp_01m5t5tmscqev5tf32q87tr1v5"


def echo(**fields: object) -> dict[str, object]:
    request = Request(model="m", input=(), **fields)  # type: ignore[arg-type]  # a test names fields freely
    body: dict[str, object] = json.loads(response_body(begin(request, response_id=ID, created_at=7)))
    return body


def test_a_silent_request_is_echoed_with_the_values_in_effect() -> None:
    """Every key is there; unset sampling is 1.0, unset verbosity medium, the rest null or the fixed value."""
    assert echo() == {
        "id": ID,
        "object": "response",
        "created_at": 7,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "m",
        "output": [],
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"instructions": "Be brief."}, {"instructions": "Be brief."}),
        ({"max_output_tokens": 5}, {"max_output_tokens": 5}),
        ({"temperature": 0.0, "top_p": 0.0}, {"temperature": 0.0, "top_p": 0.0}),
        ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
        ({"metadata": {"k": "v"}}, {"metadata": {"k": "v"}}),
        ({"user": "u", "safety_identifier": "s"}, {"user": "u", "safety_identifier": "s"}),
        ({"prompt_cache_key": "k"}, {"prompt_cache_key": "k"}),
        ({"service_tier": "flex"}, {"service_tier": "default"}),
        ({"effort": "low", "summary": "auto"}, {"reasoning": {"effort": "low", "summary": "auto"}}),
        ({"verbosity": "low"}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
        ({"tool_choice": ToolChoice("none")}, {"tool_choice": "none"}),
        ({"tool_choice": ToolChoice("function", "f")}, {"tool_choice": {"type": "function", "name": "f"}}),
        (
            {"text_format": TextFormat("json_object")},
            {"text": {"format": {"type": "json_object"}, "verbosity": "medium"}},
        ),
    ],
)
def test_a_given_value_is_echoed(fields: dict[str, object], expected: dict[str, object]) -> None:
    """A value that was given stands in the response, zero included."""
    assert echo(**fields) == {**echo(), **expected}


def test_tools_are_echoed_with_every_key() -> None:
    """A key that a tool leaves unset is null."""
    tools = (FunctionTool("f"), FunctionTool("g", "Does.", {"type": "object"}, strict=False))
    assert echo(tools=tools)["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {
            "type": "function",
            "name": "g",
            "description": "Does.",
            "parameters": {"type": "object"},
            "strict": False,
        },
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (TextFormat("json_schema", "n", {"type": "object"}), {"strict": False}),
        (
            TextFormat("json_schema", "n", {"type": "object"}, "An answer.", strict=True),
            {"description": "An answer.", "strict": True},
        ),
    ],
)
def test_an_answer_schema_is_echoed(asked: TextFormat, expected: dict[str, object]) -> None:
    """Name, schema and strictness always; the description only if given, as in OpenAI's document."""
    text = echo(text_format=asked)["text"]
    assert text == {
        "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, **expected},
        "verbosity": "medium",
    }
