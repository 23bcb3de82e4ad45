"""Answers that conform: a schema in, JSON out, through a real node, on a model that has no opinion of its
own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import jsonschema
import openai
import pytest
from pydantic import BaseModel

from tests.nodes import RunningFleet, output_text, running_fleet

SCHEMAS: dict[str, dict[str, Any]] = {
    "person": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "email": {"type": "string", "format": "email"},
            "tags": {"type": "array", "items": {"enum": ["a", "b", "ç"]}, "maxItems": 4},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "union": {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": "point"}, "x": {"type": "number"}},
             "required": ["kind", "x"], "additionalProperties": False},
            {"type": "object", "properties": {"kind": {"const": "none"}},
             "required": ["kind"], "additionalProperties": False},
        ]
    },
    "tree": {
        "type": "object",
        "properties": {
            "value": {"type": ["boolean", "null"]},
            "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
        },
        "required": ["value"],
        "additionalProperties": False,
    },
    "unicode": {
        "type": "object",
        "properties": {"größe": {"enum": ["klein 😀", "mittel ≈", "中"]}, "ключ": {"const": "значение\n\"'\\"}},
        "required": ["größe", "ключ"],
        "additionalProperties": False,
    },
    "pattern": {"type": "array", "items": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}, "minItems": 1},
    "maps": {"type": "object", "patternProperties": {"^d\\d$": {"type": "string", "format": "uuid"}},
              "additionalProperties": False, "minProperties": 1, "maxProperties": 3},
}  # fmt: skip


@pytest.fixture(scope="module")
def node(zoo) -> Iterator[RunningFleet]:
    models = {"free": zoo.free_choice(), "says": zoo.scripted([b"Sure! ", b"Here ", b"it is"])}
    with running_fleet(models, parallel=8, queue=64) as fleet:
        yield fleet


def text_format(schema: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema, **more}}


def conforms(value: object, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    ).validate(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_answer_conforms(node, name) -> None:
    """Fifty answers of a model that draws at random: all are JSON, and all match the schema."""
    schema = SCHEMAS[name]

    def ask(_: int) -> dict[str, Any]:
        answer = node.post("free", text=text_format(schema), temperature=1.0, max_output_tokens=2000)
        assert answer.status == 200, answer.body
        return dict(answer.json)

    with ThreadPoolExecutor(8) as pool:
        for answer in pool.map(ask, range(50)):
            assert answer["status"] == "completed"
            conforms(json.loads(output_text(answer)), schema)


@pytest.mark.parametrize("name", SCHEMAS)
def test_greedy_answers_conform(node, name) -> None:
    """Without chance, the likeliest text that conforms; every time the same."""
    texts = {
        node.post("free", text=text_format(SCHEMAS[name]), max_output_tokens=3000).text for _ in range(2)
    }

    assert len(texts) == 1
    conforms(json.loads(texts.pop()), SCHEMAS[name])


def test_a_model_that_wants_to_say_something_else_conforms(node) -> None:
    """A model that is sure of another text is overruled token by token, and ends when the text is
    complete.
    """
    schema = SCHEMAS["unicode"]
    answer = node.post("says", text=text_format(schema), max_output_tokens=300)

    assert answer.json["status"] == "completed"
    conforms(json.loads(answer.text), schema)


def test_streamed_deltas_are_the_answer(node) -> None:
    """The deltas of a stream join to the text of its last event, which conforms."""
    with node.stream("free", text=text_format(SCHEMAS["person"]), temperature=1.0) as stream:
        events = list(stream)

    joined = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    assert events[-1]["type"] == "response.completed"
    assert joined == output_text(events[-1]["response"])
    conforms(json.loads(joined), SCHEMAS["person"])


@pytest.mark.parametrize("strict", [True, False, None])
def test_strict_makes_no_difference(node, strict) -> None:
    """A schema that was sent holds, whatever `strict` says, and the response says it back."""
    answer = node.post("free", text=text_format(SCHEMAS["person"], strict=strict), temperature=1.0)

    conforms(json.loads(answer.text), SCHEMAS["person"])
    assert answer.json["text"]["format"]["type"] == "json_schema"
    assert answer.json["text"]["format"]["schema"] == SCHEMAS["person"]


def test_a_json_object(node) -> None:
    """`json_object` is any object, and nothing but an object."""
    for _ in range(10):
        answer = node.post(
            "free", text={"format": {"type": "json_object"}}, temperature=1.0, max_output_tokens=3000
        )
        assert answer.json["status"] == "completed"
        assert isinstance(json.loads(answer.text), dict)


def test_a_cut_answer_is_incomplete(node) -> None:
    """At the limit of tokens the text stops where it is, and the response says so."""
    answer = node.post("free", text=text_format(SCHEMAS["person"]), max_output_tokens=5)

    assert answer.json["status"] == "incomplete"
    assert answer.json["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer.json["usage"]["output_tokens"] == 5
    assert answer.text.startswith('{"nam')


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "object", "properties": {"a": {"type": "string", "minLength": 5, "maxLength": 3}},
          "required": ["a"]}, "#"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/x"}}}, "#/properties/a/$ref"),
        ({"type": "strin"}, "#/type"),
        ({"type": "string", "pattern": "(a)\\1"}, "#/pattern"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_what_cannot_be_enforced_is_refused(node, schema, place, stream) -> None:
    """A schema that no text can match, or no grammar can say, is a 400 that names the place."""
    answer = node.post("free", text=text_format(schema), stream=stream)

    assert answer.status == 400
    assert answer.json["error"]["code"] == "invalid_request"
    assert answer.json["error"]["param"] == "text.format.schema"
    assert f"at {place}" in answer.json["error"]["message"]


def test_constrained_and_free_answers_run_side_by_side(node) -> None:
    """Neither a grammar nor its refusals reach the sequence beside it."""
    alone = node.post("says").text
    assert alone == "Sure! Here it is"

    def ask(number: int) -> str:
        if number % 2:
            return str(node.post("says").text)
        return str(node.post("says", text=text_format(SCHEMAS["union"]), max_output_tokens=500).text)

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(ask, range(32)))

    assert set(texts[1::2]) == {alone}
    for text in texts[::2]:
        conforms(json.loads(text), SCHEMAS["union"])


class Step(BaseModel):
    explanation: str
    result: float | None


class Reasoning(BaseModel):
    steps: list[Step]
    answer: Literal["yes", "no"]


def test_the_sdk_parses_into_its_classes(node) -> None:
    """`responses.parse` with pydantic classes gives an instance, as with OpenAI itself."""
    with openai.OpenAI(base_url=node.url + "/v1", api_key="none", max_retries=0) as client:
        response = client.responses.parse(
            model="free", input="Is it so?", text_format=Reasoning, max_output_tokens=3000
        )

    assert isinstance(response.output_parsed, Reasoning)
    assert response.output_parsed.answer in ("yes", "no")


def test_the_sdk_streams_into_its_classes(node) -> None:
    """The stream helper parses the same at the end."""
    with (
        openai.OpenAI(base_url=node.url + "/v1", api_key="none", max_retries=0) as client,
        client.responses.stream(
            model="free", input="Is it so?", text_format=Reasoning, max_output_tokens=3000
        ) as stream,
    ):
        response = stream.get_final_response()

    assert isinstance(response.output_parsed, Reasoning)
