"""The official OpenAI client against a running node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseInputParam

from tests.e2e.conftest import ECHOES, HELLO
from tests.nodes import NodeProcess

TEXT = b"".join(HELLO).decode()


@pytest.fixture(scope="module")
def client(node: NodeProcess) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as ai:
        yield ai


def test_create(client: openai.OpenAI) -> None:
    """A plain answer: text, status, usage."""
    response = client.responses.create(model="hello", input="Hi!")

    assert response.output_text == TEXT
    assert response.status == "completed"
    assert response.usage is not None
    assert response.usage.output_tokens == len(HELLO) + 1
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


def test_raw_stream(client: openai.OpenAI) -> None:
    """Events one by one, the text in deltas, the response at the end."""
    with client.responses.create(model="hello", input="Hi!", stream=True) as stream:
        events = list(stream)

    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == TEXT
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == TEXT


def test_the_stream_helper(client: openai.OpenAI) -> None:
    """The client's own accumulator, which is stricter than raw iteration, agrees with the final response."""
    with client.responses.stream(model="hello", input="Hi!") as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()

    assert snapshots[-1] == final.output_text == TEXT


def test_the_models(client: openai.OpenAI) -> None:
    """All of them, by the names that requests use."""
    assert {model.id for model in client.models.list()} == {"hello", "split", "endless", "ends", "short"}


def test_a_conversation(client: openai.OpenAI) -> None:
    """The history is the client's to send; what both turns begin with is computed once."""
    first = client.responses.create(model="hello", input="Hi!", instructions="Be brief.")
    history: ResponseInputParam = [
        {"role": "user", "content": "Hi!"},
        *[item.model_dump(exclude_none=True) for item in first.output],  # type: ignore[list-item]  # as its examples do
        {"role": "user", "content": "And now?"},
    ]
    second = client.responses.create(model="hello", input=history, instructions="Be brief.")

    assert second.output_text == TEXT
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.input_tokens
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens


def test_an_unknown_model(client: openai.OpenAI) -> None:
    """The client's own exception, with our code, the parameter, and the id to ask the operator about."""
    with pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="gpt-5", input="Hi!")

    assert (caught.value.code, caught.value.param) == ("model_not_available", "model")
    assert caught.value.request_id is not None
    assert caught.value.request_id.startswith("req_")


def test_a_bad_request(client: openai.OpenAI) -> None:
    """The path of what is wrong reaches the program that sent it."""
    wrong: Any = [{"role": "user", "content": [{"type": "input_text", "text": 3}]}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="hello", input=wrong)

    assert (caught.value.code, caught.value.param) == ("invalid_request", "input[0].content[0].text")


def test_a_prompt_that_does_not_fit(client: openai.OpenAI) -> None:
    """It is refused, not cut."""
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="short", input="word " * 100)

    assert caught.value.code == "context_length_exceeded"


def test_a_cut_by_the_limit(client: openai.OpenAI) -> None:
    """`max_output_tokens` ends the answer as incomplete, with what there is."""
    response = client.responses.create(model="endless", input="Hi!", max_output_tokens=3, temperature=0)

    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text == "on and on "
    assert response.usage is not None
    assert response.usage.output_tokens == 3


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_by_the_end_of_the_context(client: openai.OpenAI, stream: bool) -> None:
    """A context that is full ends the answer as incomplete: nothing is shifted, nothing dropped."""
    if stream:
        with client.responses.stream(model="short", input="Hi!", temperature=0) as helper:
            last = list(helper)[-1]  # the helper itself knows `response.completed` alone
        assert last.type == "response.incomplete"
        response = last.response
    else:
        response = client.responses.create(model="short", input="Hi!", temperature=0)

    assert response.status == "incomplete"
    assert response.usage is not None
    assert response.usage.total_tokens == 96
    assert response.output_text.startswith("on and on on and on ")


def test_sixteen_clients_at_once(node: NodeProcess) -> None:
    """Everybody gets their own text, streamed or not, however many share the engine's steps."""

    async def ask(ai: openai.AsyncOpenAI, letter: str, stream: bool) -> str:
        text = f"Please end with {letter}"
        if not stream:
            return (await ai.responses.create(model="ends", input=text, temperature=0)).output_text
        async with ai.responses.stream(model="ends", input=text, temperature=0) as helper:
            return (await helper.get_final_response()).output_text

    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as ai:
            asked = (ask(ai, letter, stream=number % 2 == 0) for number, letter in enumerate(ECHOES))
            return await asyncio.gather(*asked)

    assert asyncio.run(main()) == [f"You end with {letter}." for letter in ECHOES]
