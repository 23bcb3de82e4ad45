from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.api.serving import Running, serving
from tests.service.fakes import MODEL, FakeModel, finished, said, started, token


@pytest.fixture(scope="module")
def node() -> Iterator[Running]:
    with serving(FakeModel(said("Hell", "o", "!"))) as running:
        yield running


def client(node: Running, path: str = "/v1") -> openai.OpenAI:
    return openai.OpenAI(base_url=node.url + path, api_key="none", max_retries=0)


@pytest.mark.parametrize("path", ["/v1", "/v1/infer"])
def test_create(node: Running, path: str) -> None:
    """The official client gets the text, the usage and our extension, under both base URLs."""
    with client(node, path) as ai:
        response = ai.responses.create(model=MODEL, input="hi")

    assert response.output_text == "Hello!"
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens == 3
    assert response.model_extra is not None
    assert response.model_extra["b3os"]["node"] == "n1"
    assert response._request_id is not None
    assert response._request_id.startswith("req_")


def test_create_streaming(node: Running) -> None:
    """Raw iteration sees the deltas and the completed response."""
    with client(node) as ai, ai.responses.create(model=MODEL, input="hi", stream=True) as stream:
        events = list(stream)

    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Hello!"
    assert events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_the_stream_helper(node: Running) -> None:
    """The strict accumulator of the client agrees with the final response."""
    with client(node) as ai, ai.responses.stream(model=MODEL, input="hi") as stream:
        texts = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()

    assert texts == ["Hell", "Hello", "Hello!"]
    assert final.output_text == "Hello!"


def test_a_stream_that_fails_raises() -> None:
    """A failure after the head is an exception in the client, with our code, never a quiet end."""
    with (
        serving(FakeModel([started(), token("half"), finished("failed", 1)])) as node,
        client(node) as ai,
        ai.responses.create(model=MODEL, input="hi", stream=True) as stream,
        pytest.raises(openai.APIError) as caught,
    ):
        list(stream)

    assert caught.value.code == "internal"


@pytest.mark.parametrize("stream", [False, True])
def test_refusals_are_the_clients_exceptions(node: Running, *, stream: bool) -> None:
    """Status, code, parameter and request id reach the program that made the mistake."""
    with client(node) as ai, pytest.raises(openai.NotFoundError) as caught:
        ai.responses.create(model="gpt-5", input="hi", stream=stream)

    assert caught.value.code == "model_not_available"
    assert caught.value.param == "model"
    assert caught.value.request_id is not None


def test_unavailable_is_retried_by_the_client() -> None:
    """503 with `Retry-After` is what the client's own retry understands."""
    model = FakeModel([finished("capacity", 0)], said("now"))
    with serving(model) as node, client(node) as ai:
        response = ai.with_options(max_retries=1).responses.create(model=MODEL, input="hi")

    assert response.output_text == "now"
    assert len(model.generations) == 2


def test_the_models(node: Running) -> None:
    """The client lists the served models."""
    with client(node) as ai:
        assert [model.id for model in ai.models.list()] == [MODEL]
