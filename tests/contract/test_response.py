"""The Response object on the wire."""

from __future__ import annotations

import json

import msgspec
import pytest

from b3node.contract.encode import response_body
from b3node.contract.events import Event
from b3node.contract.response import B3os, Response, Timing, Usage
from tests.events.streams import call, compose, ended, reasoning, text

# The order of OpenAI's own bodies, with the extension last.
KEYS = [
    "id",
    "object",
    "created_at",
    "status",
    "background",
    "completed_at",
    "error",
    "frequency_penalty",
    "incomplete_details",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "model",
    "output",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "usage",
    "user",
    "metadata",
    "b3os",
]


def test_the_body_has_openais_keys_in_openais_order() -> None:
    """Every key is spelled out, null or not; `b3os` comes last."""
    body = json.loads(response_body(ended(compose(text("a")))))
    assert list(body) == KEYS
    assert body["b3os"] == {
        "node": "n1",
        "timing": {"total_ms": 97.1, "ttft_ms": 41.5},
        "route": "local",
    }


def test_items_have_the_contracts_keys_in_its_order() -> None:
    """A type first, then the id and the status, as in the contract's example."""
    output = json.loads(response_body(ended(compose(reasoning("a") + text("b") + call("f", "{}")))))["output"]
    assert [list(item) for item in output] == [
        ["type", "id", "status", "summary", "content"],
        ["type", "id", "status", "role", "content"],
        ["type", "id", "status", "call_id", "name", "arguments"],
    ]
    assert output[0]["content"] == [{"type": "reasoning_text", "text": "a"}]
    assert output[1]["content"] == [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]


def test_timing_has_no_key_for_what_was_not_measured() -> None:
    """Without streaming there is `model_ms` and no `ttft_ms`."""
    events = compose(text("a"))
    body = json.loads(response_body(ended(events)))
    assert "model_ms" not in body["b3os"]["timing"]
    assert B3os("n", Timing(2.0, model_ms=1.0)).timing.model_ms == 1.0


def test_the_types_can_be_published() -> None:
    """A JSON Schema comes out of the types, in which fixed fields have one value and `b3os` may be absent."""
    _, components = msgspec.json.schema_components([Response, Event])
    schema = components["Response"]
    assert schema["properties"]["store"] == {"enum": [False], "default": False}
    assert list(schema["properties"]) == KEYS
    assert "b3os" not in schema["required"]


def test_a_usage_adds_up() -> None:
    """The total is input and output; cached and reasoning tokens are parts of them."""
    usage = Usage.of(input_tokens=7, cached_tokens=7, output_tokens=3, reasoning_tokens=3)
    assert usage.total_tokens == 10
    assert usage.input_tokens_details.cache_write_tokens == 0


@pytest.mark.parametrize("counts", [(1, 2, 0, 0), (0, 0, 1, 2), (0, -1, 0, 0), (-1, 0, 0, 0), (0, 0, 0, -1)])
def test_a_usage_that_contradicts_itself_is_refused(counts: tuple[int, int, int, int]) -> None:
    """A part is never larger than its whole."""
    names = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    with pytest.raises(ValueError, match="contradict"):
        Usage.of(**dict(zip(names, counts, strict=True)))
