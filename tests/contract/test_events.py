"""The events on the wire: names, keys, and that there are no others."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from b3node.contract.encode import sse_frame
from b3node.contract.events import Event
from b3node.events.outcome import Incomplete
from tests.events.streams import FAILURE, call, compose, reasoning, text

ITEM = ["type", "sequence_number", "output_index", "item"]
PART = ["type", "sequence_number", "item_id", "output_index", "content_index", "part"]
WHOLE = ["type", "sequence_number", "response"]
KEYS = {
    "response.created": WHOLE,
    "response.in_progress": WHOLE,
    "response.output_item.added": ITEM,
    "response.output_item.done": ITEM,
    "response.content_part.added": PART,
    "response.content_part.done": PART,
    "response.output_text.delta": [*PART[:-1], "delta", "logprobs"],
    "response.output_text.done": [*PART[:-1], "text", "logprobs"],
    "response.reasoning_text.delta": [*PART[:-1], "delta"],
    "response.reasoning_text.done": [*PART[:-1], "text"],
    "response.function_call_arguments.delta": [*PART[:-2], "delta"],
    "response.function_call_arguments.done": [*PART[:-2], "arguments", "name"],
    "response.completed": WHOLE,
    "response.incomplete": WHOLE,
    "response.failed": WHOLE,
    "error": ["type", "sequence_number", "code", "message", "param", "error"],
}
EVERYTHING = reasoning("a") + text("b") + call("f", "{}")
EVENTS = compose(EVERYTHING) + compose([], Incomplete())[-1:] + compose([], FAILURE)[-2:]


def test_the_event_types_are_openais_and_all_are_tried_here() -> None:
    """A client's helper stops at a type it does not know."""
    assert {kind.__struct_config__.tag for kind in get_args(Event)} == set(KEYS)
    assert {str(event.__struct_config__.tag) for event in EVENTS} == set(KEYS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.__struct_config__.tag))
def test_an_event_has_its_keys(event: Event) -> None:
    """Every key that SDK types require, the type and the sequence number first."""
    data = json.loads(sse_frame(event).split(b"data: ", 1)[1])
    assert list(data) == KEYS[data["type"]]
    assert data["sequence_number"] == event.sequence_number


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: str(event.__struct_config__.tag))
def test_an_event_is_valid_for_openais_sdk(event: Event) -> None:
    """The SDK's types take it when they are made to validate, which at run time they do not."""
    data = json.loads(sse_frame(event).split(b"data: ", 1)[1])
    parsed: object = TypeAdapter(ResponseStreamEvent).validate_python(data)
    assert getattr(parsed, "type", None) == data["type"]
