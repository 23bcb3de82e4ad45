from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from b3node.api.app import create_app
from b3node.api.openapi import document
from b3node.contract.decode import decode_request
from b3node.errors import HTTP, Refusal
from b3node.service.node import Node
from tests.api.serving import Running, ask, frames, get, post, serving
from tests.service.fakes import MODEL, FakeModel, Step, finished, said, started, token

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "client_requests.jsonl"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


@functools.cache
def openapi() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(document()))
    return made


@functools.cache
def judge(name: str) -> jsonschema_rs.Draft202012Validator:
    root = {"$ref": f"#/components/schemas/{name}", "components": openapi()["components"]}
    return jsonschema_rs.Draft202012Validator(root)


@pytest.fixture(scope="module")
def node() -> Iterator[Running]:
    with serving(FakeModel(), FakeModel(name="down", state="failed")) as running:
        yield running


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "$ref":
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_it_is_served_as_it_is_made(node: Running) -> None:
    """The route serves the document, as JSON."""
    answer = ask(node, get("/schema/openapi.json"))

    assert answer.headers["content-type"] == "application/json"
    assert answer.json == openapi()


def test_every_reference_leads_somewhere() -> None:
    """No `$ref` of the document is dangling, and no component is left over."""
    used = set(references(openapi()))
    defined = {
        f"#/components/{kind}/{name}" for kind, parts in openapi()["components"].items() for name in parts
    }

    assert used <= defined
    assert defined - used == set()


def test_every_schema_is_a_schema() -> None:
    """Each component is valid JSON Schema 2020-12, the dialect of OpenAPI 3.1."""
    for name in openapi()["components"]["schemas"]:
        jsonschema_rs.meta.validate({**openapi()["components"]["schemas"][name]})
        judge(name)


def test_it_has_the_shape_of_an_openapi_document() -> None:
    """Version, info, unique operation ids, answers with descriptions, required bodies (OpenAPI 3.1, section
    4.8).
    """
    assert openapi()["openapi"] == "3.1.0"
    assert {"title", "version"} <= set(openapi()["info"])
    operations = [operation for item in openapi()["paths"].values() for operation in item.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    for operation in operations:
        assert operation["responses"]
        for status, answer in operation["responses"].items():
            assert 200 <= int(status) < 600
            assert "$ref" in answer or answer["description"]


def test_every_route_is_described_and_every_description_is_a_route() -> None:
    """Paths and methods of the document are those of the application."""
    app = create_app(Node("n1", []))
    routes = {route.path: set(route.methods) - {"OPTIONS", "HEAD"} for route in app.routes}
    described = {
        path: {method.upper() for method in item if method in METHODS}
        for path, item in openapi()["paths"].items()
    }

    assert described == routes


def test_every_status_of_the_error_table_that_can_happen_is_described() -> None:
    """The endpoint lists each status that the node answers today; keys and quotas are not among them yet."""
    responses = openapi()["paths"]["/v1/responses"]["post"]["responses"]
    later = {401, 402, 429}

    assert {int(status) for status in responses} == {200} | {status for status, _ in HTTP.values()} - later


def test_answers_are_what_the_document_says(node: Running) -> None:
    """Real bodies of every route validate against their schemas, with headers as described."""
    judge("Response").validate(ask(node, post({})).json)
    judge("ModelList").validate(ask(node, get("/v1/models")).json)
    judge("Alive").validate(ask(node, get("/healthz")).json)
    judge("Readiness").validate(ask(node, get("/readyz")).json)
    for data in (post(b"{"), get("/nope"), post({"model": "x"}), post({"model": "down"})):
        answer = ask(node, data)
        judge("ErrorBody").validate(answer.json)
        described = openapi()["components"]["responses"][f"Error{answer.status}"]["headers"]
        assert {name.lower() for name in described} <= set(answer.headers)


@pytest.mark.parametrize(
    "script",
    [
        said("a", "b"),
        said("a", reason="length"),
        [started(), token("a"), finished("failed", 1)],
    ],
)
def test_events_are_what_the_document_says(script: list[Step]) -> None:
    """Each event of a stream, however it ends, validates as a `StreamEvent`."""
    with serving(FakeModel(script)) as node:
        events = frames(ask(node, post({"stream": True})))

    for event in events:
        judge("StreamEvent").validate(event)


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "1"}
TOOL = {"type": "function", "name": "f"}

BODIES: list[dict[str, Any]] = [
    {},
    {"input": None},
    {"input": 1},
    {"model": ""},
    {"model": "m" * 257},
    {"model": None},
    {"input": [{"role": "user", "content": "hi"}]},
    {"input": [{"role": "user", "content": "hi", "type": None, "id": None, "more": 1}]},
    {"input": [{"role": "tool", "content": "hi"}]},
    {"input": [{"role": "user", "content": [{"type": "output_text", "text": "hi"}]}]},
    {"input": [{"role": "user", "content": [{"type": "input_text", "text": 1}]}]},
    {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x/y.png"}]}]},
    {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x/y.png"}]}]},
    {"input": [{"role": "user", "content": "hi"}, {"type": "web_search_call", "id": "w"}]},
    {"input": ["hi"]},
    {"input": [CALL, OUTPUT]},
    {"input": [{**CALL, "arguments": {}}, OUTPUT]},
    {"input": [CALL, {**OUTPUT, "output": [{"type": "input_text", "text": "1"}]}]},
    {"input": [{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": None}]},
    {"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}]},
    {"input": [{"role": "assistant", "content": [{"type": "output_text", "text": "a", "logprobs": [1]}]}]},
    {"instructions": "x", "user": None, "metadata": {"a": "b"}},
    {"instructions": 1},
    {"metadata": {"a": 1}},
    {"metadata": {"a" * 65: "b"}},
    {"metadata": {"a": "b" * 513}},
    {"metadata": {str(n): "" for n in range(17)}},
    {"user": "u" * 257},
    *({"max_output_tokens": value} for value in (None, 1, 0, -1, "5", True, 1.5, 2**31)),
    *({"temperature": value} for value in (None, 0, 2, 1.5, -0.1, 2.1, "1", True)),
    *({"top_p": value} for value in (0, 1, 1.1)),
    *({"stream": value} for value in (None, True, "true", 1)),
    *({"background": value} for value in (None, False, True)),
    *({"truncation": value} for value in (None, "disabled", "auto")),
    *({"previous_response_id": value} for value in (None, "resp_1")),
    *({"top_logprobs": value} for value in (None, 1)),
    {"include": ["reasoning.encrypted_content"]},
    {"include": ["file_search_call.results"]},
    {"n": 2},
    {"store": True, "service_tier": "auto", "stream_options": {"include_obfuscation": False}},
    {"stream_options": {"include_obfuscation": "no"}},
    {"tools": [TOOL], "tool_choice": TOOL, "parallel_tool_calls": False},
    {"tools": [{**TOOL, "parameters": {"type": "object"}, "strict": True, "description": "d"}]},
    {"tools": [{**TOOL, "parameters": []}]},
    {"tools": [{**TOOL, "name": "a b"}]},
    {"tools": [{"type": "web_search"}]},
    {"tools": [{**TOOL, "allowed_callers": ["direct"], "defer_loading": False, "output_schema": {}}]},
    {"tools": [{**TOOL, "allowed_callers": ["code"]}]},
    {"tool_choice": "none"},
    {"tool_choice": "sometimes"},
    {"text": {"format": {"type": "text"}, "verbosity": "low"}},
    {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}}},
    {"text": {"format": {"type": "xml"}}},
    {"text": {"format": {}}},
    {"text": {"verbosity": "loud"}},
    {"reasoning": {"effort": "high", "summary": "auto", "generate_summary": None}},
    {"reasoning": {"effort": "max"}},
]


def is_taken(body: dict[str, Any]) -> bool:
    try:
        decode_request(json.dumps(body).encode())
    except Refusal:
        return False
    return True


@pytest.mark.parametrize("fields", BODIES, ids=lambda fields: json.dumps(fields)[:60])
def test_the_request_schema_judges_as_the_decoder_does(fields: dict[str, Any]) -> None:
    """A body that the document calls valid is taken; one that it calls invalid is refused."""
    body = {"model": MODEL, "input": "hi", **fields}

    assert judge("CreateResponse").is_valid(body) is is_taken(body)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of client requests is not here")
def test_what_real_clients_send_is_valid_when_it_is_taken() -> None:
    """A body that the node takes never violates its own document."""
    bodies = [json.loads(line)["body"] for line in CORPUS.read_text().splitlines()]
    wrong = [body for body in bodies if is_taken(body) and not judge("CreateResponse").is_valid(body)]

    assert len(bodies) > 100
    assert wrong == []
