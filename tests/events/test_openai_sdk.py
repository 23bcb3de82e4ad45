"""OpenAI's Python SDK as a judge: its stream helper accumulates our bytes, and throws at misplaced events."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from b3node.contract.encode import response_body
from b3node.contract.response import OutputFunctionCall, OutputMessage, Response
from b3node.events.outcome import Completed
from tests.events.streams import FAILURE, compose, ended
from tests.events.transcripts import TRANSCRIPTS, transcript

WHOLE = [name for name, (_, outcome) in TRANSCRIPTS.items() if isinstance(outcome, Completed)]
FAILED = [name for name, (_, outcome) in TRANSCRIPTS.items() if outcome == FAILURE]
CUT = sorted(TRANSCRIPTS.keys() - {*WHOLE, *FAILED})


def client(body: bytes) -> openai.OpenAI:
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)
    return openai.OpenAI(
        api_key="none",
        base_url="http://node.invalid/v1",
        max_retries=0,
        http_client=httpx2.Client(transport=httpx2.MockTransport(lambda _: answer)),
    )


def texts(response: Response) -> dict[int, str]:
    """Returns the text or the arguments of each item that the helper takes snapshots of."""
    return {
        index: item.arguments if isinstance(item, OutputFunctionCall) else item.content[0].text
        for index, item in enumerate(response.output)
        if isinstance(item, OutputFunctionCall | OutputMessage)
    }


def without_parsed(node: Any) -> Any:
    """Returns a value without the keys that the helper adds."""
    if isinstance(node, dict):
        return {k: without_parsed(v) for k, v in node.items() if k not in {"parsed", "parsed_arguments"}}
    return [without_parsed(each) for each in node] if isinstance(node, list) else node


@pytest.mark.parametrize("name", WHOLE)
def test_the_helper_returns_our_response(name: str) -> None:
    """The final response of the SDK's helper has every key and value of ours."""
    with client(transcript(name)) as sdk, sdk.responses.stream(model="m", input="x") as stream:
        final = stream.get_final_response()
    assert without_parsed(final.to_dict()) == json.loads(response_body(ended(compose(*TRANSCRIPTS[name]))))


@pytest.mark.parametrize("name", [*WHOLE, *CUT])
def test_the_helper_accumulates_the_deltas(name: str) -> None:
    """Its last snapshot of every item is that item's whole text, for a cut stream too."""
    snapshots: dict[int, str] = {}
    with client(transcript(name)) as sdk, sdk.responses.stream(model="m", input="x") as stream:
        for event in stream:
            if event.type in {"response.output_text.delta", "response.function_call_arguments.delta"}:
                snapshots[event.output_index] = event.snapshot
    expected = {index: text for index, text in texts(ended(compose(*TRANSCRIPTS[name]))).items() if text}
    assert snapshots == expected


@pytest.mark.parametrize("name", CUT)
def test_a_cut_reaches_the_caller_as_incomplete(name: str) -> None:
    """The last event is response.incomplete, with its reason and its usage."""
    with client(transcript(name)) as sdk, sdk.responses.create(model="m", input="x", stream=True) as stream:
        *_, last = stream
    assert last.type == "response.incomplete"
    assert last.response.status == "incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.usage is not None


@pytest.mark.parametrize("name", FAILED)
@pytest.mark.parametrize("helper", [False, True])
def test_a_failure_is_raised_with_our_code(name: str, helper: bool) -> None:
    """Plain iteration and the helper both raise, after the caller has seen response.failed."""
    seen = []
    with client(transcript(name)) as sdk:
        opened: Any = (
            sdk.responses.stream(model="m", input="x")
            if helper
            else sdk.responses.create(model="m", input="x", stream=True)
        )
        with pytest.raises(openai.APIError) as raised, opened as stream:
            seen += [event.type for event in stream]
    assert (raised.value.code, raised.value.message) == (FAILURE.code, FAILURE.message)
    assert raised.value.type == "server_error"
