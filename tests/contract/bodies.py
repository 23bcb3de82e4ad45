"""Request bodies of our own: one that uses every field of the contract, and one of every kind clients
send.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from b3node.contract.decode import decode_request
from b3node.errors import MAX_MESSAGE_CHARS, Refusal

PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}

FULL: dict[str, Any] = {
    "model": "b3os/qwen3.5-9b",
    "input": [
        {
            "type": "message",
            "role": "user",
            "id": "msg_0",
            "status": "completed",
            "phase": "final_answer",
            "content": [
                {"type": "input_text", "text": "Look:", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {
                    "type": "input_image",
                    "image_url": PNG,
                    "detail": "auto",
                    "file_id": None,
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
            ],
        },
        {"role": "developer", "content": [{"type": "input_text", "text": "Be short."}]},
        {
            "type": "reasoning",
            "id": "rs_0",
            "summary": [{"type": "summary_text", "text": "short"}],
            "content": [{"type": "reasoning_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
            "encrypted_content": "opaque",
            "status": "completed",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "I see.", "annotations": [{}], "logprobs": [{}]},
                {"type": "refusal", "refusal": "No."},
            ],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city":"Oslo"}',
            "id": "fc_0",
            "status": "completed",
            "caller": {"type": "direct"},
            "namespace": "mcp",
            "async": True,
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "12C", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "input_image", "image_url": "https://example.org/sky.png", "detail": "original"},
            ],
            "id": "fco_0",
            "status": "completed",
            "caller": {"type": "direct"},
            "name": "get_weather",
            "namespace": "mcp",
        },
    ],
    "instructions": "You are a weather reporter.",
    "max_output_tokens": 64,
    "temperature": 0.5,
    "top_p": 1,
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Weather now.",
            "parameters": SCHEMA,
            "strict": True,
            "allowed_callers": ["direct"],
            "defer_loading": False,
            "output_schema": {"type": "string"},
        }
    ],
    "tool_choice": {"type": "function", "name": "get_weather"},
    "parallel_tool_calls": False,
    "text": {
        "format": {
            "type": "json_schema",
            "name": "answer",
            "schema": SCHEMA,
            "description": "A city.",
            "strict": True,
        },
        "verbosity": "low",
    },
    "reasoning": {"effort": "low", "summary": "auto", "generate_summary": "concise"},
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "store": True,
    "metadata": {"run": "7"},
    "user": "u-1",
    "safety_identifier": "s-1",
    "prompt_cache_key": "k-1",
    "service_tier": "auto",
    "truncation": "disabled",
    "background": False,
    "include": ["reasoning.encrypted_content"],
    "previous_response_id": None,
    "conversation": None,
    "prompt": None,
    "top_logprobs": None,
    "max_tool_calls": None,
}
"""Every field that the contract names, with a value that the node takes."""

USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
TOOL = {"type": "function", "name": "f"}

KINDS: dict[str, dict[str, Any]] = {
    "a plain question": {"model": "m", "input": "hi"},
    "everything at once": FULL,
    "every parameter null": {
        name: value if name in ("model", "input") else None for name, value in FULL.items()
    },
    "an SDK's dump of its own answer": {
        "model": "m",
        "input": [
            {**USER, "type": "message", "id": None, "status": None, "phase": None},
            {"type": "reasoning", "id": "rs", "summary": [], "content": None, "encrypted_content": None},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hello!", "annotations": None, "logprobs": None}],
            },
        ],
    },
    "an agent's second turn": {"model": "m", "input": [USER, CALL, OUTPUT], "tools": [TOOL]},
    "a call without an answer": {"model": "m", "input": [USER, CALL, USER], "tools": [TOOL]},
    "a thought cut short": {
        "model": "m",
        "input": [USER, {"type": "reasoning", "summary": [], "content": [], "status": "in_progress"}],
    },
    "no choice without tools": {"model": "m", "input": "hi", "tool_choice": "none", "tools": []},
    "a tool without parameters": {"model": "m", "input": "hi", "tools": [TOOL], "tool_choice": "required"},
    "a format and tools": {
        "model": "m",
        "input": "hi",
        "tools": [TOOL],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_object"}},
    },
    "the page's own example of a text format": {
        "model": "m",
        "input": "hi",
        "text": {"format": {"type": "text", "name": "x", "schema": {}, "strict": True}, "verbosity": "low"},
    },
    "system words anywhere": {
        "model": "m",
        "input": [USER, {"role": "system", "content": "a"}, {"role": "developer", "content": []}, USER],
    },
    "reasoning with nothing in it": {"model": "m", "input": "hi", "reasoning": {}},
}
"""A body of every kind that the node takes."""


def encoded(**parameters: Any) -> bytes:
    """A plain request with `parameters` over it."""
    return json.dumps({"model": "m", "input": "hi", **parameters}).encode()


def refused(body: bytes) -> Refusal:
    """The refusal that `body` gets; it is fit for the wire."""
    with pytest.raises(Refusal) as caught:
        decode_request(body)
    refusal = caught.value
    assert refusal.status == 400
    assert 0 < len(refusal.message) <= MAX_MESSAGE_CHARS
    assert refusal.message.isprintable()
    return refusal


def answer(body: bytes) -> tuple[str, str | None]:
    """Code and param of the refusal that `body` gets."""
    refusal = refused(body)
    return refusal.code, refusal.param


def places(value: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Every (path, container, key) below `value`, free-form objects taken as one value."""
    if isinstance(value, dict):
        steps = [(f"{path}.{key}" if path else key, key) for key in value]
    else:
        steps = [(f"{path}[{index}]", index) for index in range(len(value))]
    found = []
    for place, key in steps:
        found.append((place, value, key))
        is_free = key in ("schema", "parameters", "output_schema", "caller", "annotations", "logprobs")
        if isinstance(value[key], dict | list) and not is_free:
            found.extend(places(value[key], place))
    return found
