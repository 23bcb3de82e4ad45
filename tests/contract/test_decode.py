"""A request's bytes become a `Request`, or one refusal that names the fault."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from b3node.contract.decode import decode_request
from b3node.contract.request import (
    FunctionCall,
    FunctionCallOutput,
    FunctionTool,
    ImagePart,
    Message,
    Reasoning,
    RefusalPart,
    Request,
    TextFormat,
    TextPart,
    ToolChoice,
)
from b3node.errors import MAX_MESSAGE_CHARS, Refusal
from tests.contract.bodies import (
    CALL,
    FULL,
    KINDS,
    OUTPUT,
    PNG,
    SCHEMA,
    TOOL,
    USER,
    answer,
    encoded,
    places,
    refused,
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_of_every_kind_is_taken(kind: str) -> None:
    """Bodies of all kinds of clients decode."""
    assert isinstance(decode_request(json.dumps(KINDS[kind]).encode()), Request)


def test_every_field_arrives() -> None:
    """A request that uses every field of the contract decodes to exactly this value."""
    assert decode_request(json.dumps(FULL).encode()) == Request(
        model="b3os/qwen3.5-9b",
        input=(
            Message("user", (TextPart("Look:"), ImagePart(PNG))),
            Message("developer", (TextPart("Be short."),)),
            Reasoning("one\n\ntwo"),
            Message("assistant", (TextPart("I see."), RefusalPart("No."))),
            FunctionCall("call_1", "get_weather", '{"city":"Oslo"}'),
            FunctionCallOutput("call_1", (TextPart("12C"), ImagePart("https://example.org/sky.png"))),
        ),
        instructions="You are a weather reporter.",
        max_output_tokens=64,
        temperature=0.5,
        top_p=1.0,
        tools=(FunctionTool("get_weather", "Weather now.", SCHEMA, strict=True),),
        tool_choice=ToolChoice("function", "get_weather"),
        parallel_tool_calls=False,
        text_format=TextFormat("json_schema", "answer", SCHEMA, "A city.", strict=True),
        verbosity="low",
        effort="low",
        summary="auto",
        stream=True,
        metadata={"run": "7"},
        user="u-1",
        safety_identifier="s-1",
        prompt_cache_key="k-1",
        service_tier="auto",
    )


def test_nulls_are_the_same_as_absence() -> None:
    """A request whose optional parameters are all null is the plain one."""
    plain = {name: FULL[name] if name in ("model", "input") else None for name in FULL}
    assert decode_request(json.dumps(plain).encode()) == Request(
        model=FULL["model"], input=decode_request(json.dumps(FULL).encode()).input
    )


# ------------------------------------------------------------------ one sweep over every place of the
# contract

PLACES = [path for path, _, _ in places(FULL)]
REQUIRED = {
    "model",
    "input",
    *("input[0].role", "input[0].content", "input[0].content[0].type", "input[0].content[0].text"),
    *("input[0].content[1].type", "input[0].content[1].image_url"),
    *("input[1].role", "input[1].content", "input[1].content[0].type", "input[1].content[0].text"),
    *("input[2].summary[0].type", "input[2].summary[0].text"),
    *("input[2].content[0].type", "input[2].content[0].text"),
    *("input[2].content[1].type", "input[2].content[1].text"),
    *("input[3].role", "input[3].content", "input[3].content[0].type", "input[3].content[0].text"),
    *("input[3].content[1].type", "input[3].content[1].refusal"),
    *("input[4].call_id", "input[4].name", "input[4].arguments"),
    *("input[5].call_id", "input[5].output", "input[5].output[0].type", "input[5].output[0].text"),
    *("input[5].output[1].type", "input[5].output[1].image_url"),
    *("tools[0].type", "tools[0].name", "tool_choice.type", "tool_choice.name"),
    *("text.format.type", "text.format.name", "text.format.schema"),
}
"""Paths that the contract requires if the object around them is sent."""

NULL_ONLY = {
    *("previous_response_id", "conversation", "prompt", "top_logprobs", "max_tool_calls"),
    "input[0].content[1].file_id",
}
BOOLEANS = {
    *("input[4].async", "tools[0].strict", "text.format.strict", "parallel_tool_calls"),
    *("stream", "stream_options.include_obfuscation", "store"),
}
ALWAYS_FALSE = {"background", "tools[0].defer_loading"}
ARRAYS = {
    *("input", "input[0].content", "input[1].content", "input[2].summary", "input[2].content"),
    *("input[3].content", "input[3].content[0].annotations", "input[3].content[0].logprobs"),
    *("input[5].output", "tools", "tools[0].allowed_callers", "include"),
}
UNTYPED = {
    "input[2].type": ("unsupported_parameter", "input[2].content[0].type"),
    "input[4].type": ("invalid_request", "input[4].role"),
    "input[5].type": ("invalid_request", "input[5].role"),
}
"""Without its type, such an item is a message without a role, with parts that no message has."""


def swept(path: str, value: object) -> bytes:
    """The full request with `value` at `path`."""
    body = copy.deepcopy(FULL)
    container, key = next((container, key) for place, container, key in places(body) if place == path)
    container[key] = value
    return json.dumps(body).encode()


def without(path: str) -> bytes:
    """The full request without the value at `path`."""
    body = copy.deepcopy(FULL)
    container, key = next((container, key) for place, container, key in places(body) if place == path)
    del container[key]
    return json.dumps(body).encode()


@pytest.mark.parametrize("path", [path for path in PLACES if not path.endswith("]")])
def test_null_is_unset_or_named(path: str) -> None:
    """Null, like absence, is accepted at every optional field, and refused by path at every required one."""
    bodies = [swept(path, None), without(path)]
    if path in REQUIRED:
        assert [answer(body) for body in bodies] == [("invalid_request", path)] * 2
    elif path in UNTYPED:
        assert [answer(body) for body in bodies] == [UNTYPED[path]] * 2
    elif path == "metadata.run":
        assert answer(swept(path, None)) == ("invalid_request", path)
    elif path == "tools":
        assert [answer(body) for body in bodies] == [("invalid_request", "tool_choice")] * 2
    else:
        null, absent = map(decode_request, bodies)
        assert null == absent


@pytest.mark.parametrize("wrong", [2.5, [[]], True], ids=repr)
@pytest.mark.parametrize("path", PLACES)
def test_a_value_of_the_wrong_type_is_named(path: str, wrong: object) -> None:
    """A value of another type than the contract's is refused with the code and the path."""
    if wrong is True and path in BOOLEANS:
        decode_request(swept(path, wrong))
        return
    refusal = refused(swept(path, wrong))
    is_off = path in NULL_ONLY or (wrong is True and path in ALWAYS_FALSE)
    assert refusal.code == ("unsupported_parameter" if is_off else "invalid_request")
    assert refusal.param == (f"{path}[0]" if wrong == [[]] and path in ARRAYS else path)


def _objects(value: Any) -> list[dict[str, Any]]:
    """Every object of a request below the top whose fields the contract lists."""
    found = [container[key] for _, container, key in places(value) if isinstance(container[key], dict)]
    free = (
        value["metadata"],
        *(tool["parameters"] for tool in value["tools"]),
        value["text"]["format"]["schema"],
    )
    return [each for each in found if not any(each is one for one in free)]


def test_unknown_fields_below_the_top_are_ignored() -> None:
    """Fields that the contract does not name change nothing inside items, parts, tools and parameter
    objects.
    """
    body = copy.deepcopy(FULL)
    objects = _objects(body)
    assert len(objects) > 20
    for each in objects:
        each["x_unknown"] = {"type": "web_search", "file_id": [1]}
    assert decode_request(json.dumps(body).encode()) == decode_request(json.dumps(FULL).encode())


# ------------------------------------------------------------------------------------- parameters one by one


@pytest.mark.parametrize("body", [b"[]", b"5", b'"model"', b"null", b"[{}]", b"true"])
def test_a_body_that_is_no_object_is_refused_as_a_whole(body: bytes) -> None:
    """Sound JSON of another kind has no parameter to name."""
    assert answer(body) == ("invalid_request", None)


@pytest.mark.parametrize(
    ("parameters", "name", "value"),
    [
        ({}, "stream", False),
        ({}, "parallel_tool_calls", True),
        ({}, "metadata", {}),
        ({}, "tool_choice", ToolChoice("auto")),
        ({"model": "x" * 256}, "model", "x" * 256),
        ({"model": "b3os/x\r\nX-Evil: 1"}, "model", "b3os/x\r\nX-Evil: 1"),
        ({"instructions": ""}, "instructions", ""),
        ({"max_output_tokens": 1}, "max_output_tokens", 1),
        ({"max_output_tokens": 2**31 - 1}, "max_output_tokens", 2**31 - 1),
        ({"temperature": 0}, "temperature", 0.0),
        ({"temperature": 2}, "temperature", 2.0),
        ({"top_p": 0}, "top_p", 0.0),
        ({"top_p": 1e-9}, "top_p", 1e-9),
        ({"tool_choice": "none"}, "tool_choice", ToolChoice("none")),
        ({"tool_choice": "auto"}, "tool_choice", ToolChoice("auto")),
        ({"text": {}}, "text_format", TextFormat()),
        ({"text": {"verbosity": "high"}}, "verbosity", "high"),
        ({"text": {"format": {"type": "json_object"}}}, "text_format", TextFormat("json_object")),
        ({"reasoning": {"effort": "xhigh"}}, "effort", "xhigh"),
        ({"reasoning": {"generate_summary": "detailed"}}, "summary", "detailed"),
        ({"metadata": {"k" * 64: "v" * 512}}, "metadata", {"k" * 64: "v" * 512}),
        ({"user": "u" * 256}, "user", "u" * 256),
        ({"input": "\u0000"}, "input", (Message("user", (TextPart("\u0000"),)),)),
    ],
)
def test_a_valid_value_arrives(parameters: dict[str, Any], name: str, value: object) -> None:
    """Values at the edges of the contract's ranges are taken; numbers become floats."""
    arrived = getattr(decode_request(encoded(**parameters)), name)
    assert arrived == value
    assert type(arrived) is type(value)


def each(name: str, *values: object) -> list[tuple[dict[str, object], str]]:
    return [({name: value}, name) for value in values]


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": "x" * 257}, "model"),
        *each("max_output_tokens", 0, -1, 2**31, 4294967301, 1e3, 1.0, "5", True, 10**400),
        *each("temperature", -0.1, 2.01, "1", True, 10**19),
        *each("top_p", -1, 1.01, True, []),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "g"}, "tools": [TOOL]}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice.name"),
        ({"tool_choice": {"name": "f"}}, "tool_choice.type"),
        ({"tool_choice": ["auto"]}, "tool_choice"),
        ({"text": {"format": {}}}, "text.format.type"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema"),
        ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "a", "schema": []}}}, "text.format.schema"),
        ({"text": {"format": {"type": "text", "name": "a b"}}}, "text.format.name"),
        ({"text": {"format": {"type": "text", "schema": True}}}, "text.format.schema"),
        ({"text": {"verbosity": "mid"}}, "text.verbosity"),
        ({"reasoning": {"effort": "max"}}, "reasoning.effort"),
        ({"reasoning": {"summary": "long"}}, "reasoning.summary"),
        ({"reasoning": {"generate_summary": "long"}}, "reasoning.generate_summary"),
        ({"reasoning": {"summary": "auto", "generate_summary": 1}}, "reasoning.generate_summary"),
        ({"stream_options": {"include_obfuscation": "no"}}, "stream_options.include_obfuscation"),
        ({"metadata": {f"k{i}": "" for i in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: ""}}, "metadata"),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
        ({"metadata": {"k": 1}}, "metadata.k"),
        ({"metadata": []}, "metadata"),
        *each("user", "u" * 257),
        *each("safety_identifier", "u" * 257),
        *each("prompt_cache_key", "u" * 257),
        *each("service_tier", "u" * 257),
        ({"truncation": "enabled"}, "truncation"),
        ({"background": "yes"}, "background"),
        ({"background": 0}, "background"),
        ({"include": "reasoning.encrypted_content"}, "include"),
        ({"include": ["reasoning.encrypted_content", None]}, "include[1]"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_an_invalid_value_is_named(parameters: dict[str, Any], param: str) -> None:
    """A value of the wrong type, out of range or outside its enum is `invalid_request` with its path."""
    assert answer(encoded(**parameters)) == ("invalid_request", param)


def test_summary_wins_over_its_old_name() -> None:
    """Of the two spellings of the summary wish, `summary` counts; null there leaves the other."""
    both = encoded(reasoning={"summary": "concise", "generate_summary": "auto"})
    one = encoded(reasoning={"summary": None, "generate_summary": "auto"})
    assert [decode_request(body).summary for body in (both, one)] == ["concise", "auto"]


def test_a_message_names_what_is_allowed() -> None:
    """The text of a refusal has the allowed values, and the sent one in a bounded quotation."""
    assert refused(encoded(reasoning={"effort": "m" * 200})).message == (
        'reasoning.effort must be one of "none", "minimal", "low", "medium", "high", "xhigh", '
        f'not "{"m" * 63}…".'
    )
    assert refused(encoded(temperature=3)).message == "temperature must be from 0 to 2."
    assert refused(encoded(stream=1)).message == "stream must be a boolean, not an integer."
    assert refused(b'{"input":"hi"}').message == "model is required."


# ------------------------------------------------------------------------------------------ which fault wins


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":1,"model":2,"n":1}', ("invalid_request", "model")),
        (encoded(model=5, n=2), ("unsupported_parameter", "n")),
        (
            encoded(temperature="x", tools=[{"type": "web_search"}]),
            ("unsupported_parameter", "tools[0].type"),
        ),
        (
            encoded(input=[OUTPUT], previous_response_id="r"),
            ("unsupported_parameter", "previous_response_id"),
        ),
        (encoded(top_p=5, temperature=5), ("invalid_request", "temperature")),
        (encoded(input=[OUTPUT], stream="x"), ("invalid_request", "stream")),
        (encoded(input=[], model=""), ("invalid_request", "model")),
    ],
)
def test_the_order_of_judgement_is_fixed(body: bytes, expected: tuple[str, str]) -> None:
    """Unsound JSON first, refused entries next, then values in order, then rules between items."""
    assert answer(body) == expected


# ------------------------------------------------------------------------------------------------------ fuzz

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=6)
    | st.sampled_from(
        [*FULL, "message", "function", "function_call", "input_text", "output_text", "auto", "required", PNG]
    )
)
NAMES = st.sampled_from([*FULL, "type", "role", "content", "output", "call_id", "name", "text"]) | st.text(
    max_size=3
)
ANY_JSON = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def check(body: bytes) -> None:
    """A body is a request, or gets a refusal that is fit for the wire."""
    try:
        decode_request(body)
    except Refusal as caught:
        refusal = caught
    else:
        return
    assert refusal.code in ("invalid_request", "unsupported_parameter")
    assert 0 < len(refusal.message) <= MAX_MESSAGE_CHARS
    assert refusal.message.isprintable()
    assert refusal.param is None or 0 < len(refusal.param) < 200


@given(st.binary())
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    """No bytes raise anything but a refusal."""
    check(body)


@given(ANY_JSON)
def test_any_json_is_decoded_or_refused(value: object) -> None:
    """No JSON of any shape raises anything but a refusal."""
    check(json.dumps(value).encode())
    check(json.dumps({"model": "m", "input": value}).encode())


@settings(max_examples=300)
@given(st.data())
def test_any_mutation_of_a_request_is_decoded_or_refused(data: st.DataObject) -> None:
    """Replacing, deleting and copying values anywhere in a full request raises nothing but a refusal."""
    body = copy.deepcopy(data.draw(st.sampled_from(list(KINDS.values()))))
    for _ in range(data.draw(st.integers(1, 3))):
        _, container, key = data.draw(st.sampled_from(places(body)))
        match data.draw(st.sampled_from(["replace", "delete", "copy"])):
            case "replace":
                container[key] = data.draw(ANY_JSON)
            case "delete":
                del container[key]
            case _:
                container[key] = copy.deepcopy(data.draw(st.sampled_from(places(FULL)))[1])
        if not places(body):
            break
    check(json.dumps(body).encode())


def test_history_is_not_shared_between_requests() -> None:
    """Decoding twice gives equal values, and neither request sees the other's objects."""
    body = encoded(input=[USER, CALL, OUTPUT], metadata={"a": "b"})
    first, second = decode_request(body), decode_request(body)
    assert first == second
    assert first.metadata is not second.metadata
