"""Bodies and events against OpenAI's own OpenAPI document."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from b3node.contract.encode import response_body, sse_frame
from b3node.contract.request import FunctionTool, Request, TextFormat, ToolChoice
from b3node.events.fold import fold
from b3node.events.outcome import Failed, Incomplete, Outcome
from b3node.parse.deltas import Delta
from tests.contract.openai_document import event_problems, needs_document, response_problems
from tests.events.streams import FAILURE, WEATHER, call, compose, reasoning, scripts, text

pytestmark = needs_document

SCHEMA: dict[str, object] = {"type": "object", "properties": {"a": {"type": "string"}}}
REQUESTS = {
    "silent": Request(model="m", input=()),
    "everything": Request(
        model="m",
        input=(),
        instructions="Be brief.",
        max_output_tokens=64,
        temperature=0.2,
        top_p=0.0,
        tools=(WEATHER, FunctionTool("bare")),
        tool_choice=ToolChoice("function", "bare"),
        parallel_tool_calls=False,
        text_format=TextFormat("json_schema", "answer", SCHEMA, "An answer.", strict=True),
        verbosity="low",
        effort="xhigh",
        summary="concise",
        metadata={"a": "b"},
        user="u",
        safety_identifier="s",
        prompt_cache_key="k",
        service_tier="flex",
    ),
    "schema": Request(model="m", input=(), text_format=TextFormat("json_schema", "answer", SCHEMA)),
    "object": Request(
        model="m", input=(), text_format=TextFormat("json_object"), tool_choice=ToolChoice("none")
    ),
}


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("outcome", [None, Incomplete(), FAILURE], ids=["completed", "incomplete", "failed"])
def test_every_event_and_the_body_are_valid(request_name: str, outcome: Outcome | None) -> None:
    """For every request and every ending, the document finds no violation."""
    deltas = reasoning("a") + text("b") + call("bare") + text("c")
    events = compose(deltas, outcome, request=REQUESTS[request_name])
    for event in events:
        assert event_problems(sse_frame(event)) == []
    assert response_problems(response_body(fold(events))) == []


@settings(max_examples=25)
@given(scripts)
def test_any_stream_is_valid(script: tuple[list[Delta], Outcome]) -> None:
    """No sequence of deltas leads to an event that the document does not have."""
    events = compose(*script)
    for event in events:
        assert event_problems(sse_frame(event)) == []


def test_the_document_is_a_judge() -> None:
    """It does find a missing key, a wrong type and an unknown status."""
    body = json.loads(response_body(fold(compose(text("a"), Failed("internal", "No.")))))
    for broken in ({**body, "temperature": "hot"}, {**body, "status": "done"}, {"id": "x"}):
        assert response_problems(json.dumps(broken).encode())
    frame = sse_frame(compose(text("a"))[4])
    assert event_problems(frame) == []
    assert event_problems(frame.replace(b'"delta"', b'"text"'))
