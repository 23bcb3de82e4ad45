"""Faults that people met on other servers, replayed: each request of the collection gets the answer that is
right.

The collection lies outside this repository; where it is missing these tests are skipped. What must hold
without it is held by the tests of each room, and for tools and thoughts by `test_tools`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from b3node import embedded
from tests.nodes import NodeProcess, node_process
from tests.zoo.script import Piece, S
from tests.zoo.templates import TOOLS
from tests.zoo.zoo import Zoo

FAULTS: Final = Path(__file__).parents[3] / "shared" / "cases" / "faults.jsonl"
_REPEAT: Final = re.compile(r'%%REPEAT\((\d+),"((?:[^"\\]|\\.)*)"\)%%')
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
Json = dict[str, Any]
CITY: Final[Json] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

OFF: Final = ("</think>", "\n\n")
"""How the prompt ends where no thought is asked for."""
THOUGHT: Final[list[Piece]] = [
    b"a < b and a</think then ",
    b"<tool_",
    b"call> is a tag.\n",
    S("</think>"),
    b"\n\n",
]
OSLO: Final[list[Piece]] = [
    S("<tool_call>"),
    b"\n",
    b'{"name": "get_weather", "arguments": {"city": ',
    b'"Oslo"',
    b"}}\n",
]


@pytest.fixture(scope="module")
def node(zoo: Zoo) -> Iterator[NodeProcess]:
    """`thinks` thinks and answers, `calls` says what it does and calls, `free` has no opinion of its own."""
    answer: list[Piece] = [b"It is ", b"13*17."]
    call: list[Piece] = [b"I look it up.\n", *OSLO, S("</tool_call>")]
    models = {
        "thinks": zoo.scripted(
            [*THOUGHT, *answer], routes={OFF: [b"Plainly: ", b"no."]}, order=2, template=TOOLS
        ),
        "uninvited": zoo.scripted([b"hm\n", S("</think>"), b"\n\nA pump."], template=TOOLS),
        "calls": zoo.scripted(call, template=TOOLS),
        "muses": zoo.scripted(
            [b"Oslo, then.\n", S("</think>"), b"\n\n", *OSLO, S("</tool_call>")], template=TOOLS
        ),
        "endless": zoo.scripted([b"on ", b"and ", b"on "], end=0, template=TOOLS),
        "plain": zoo.scripted([b"All ", b"is ", b"well."]),
        "free": zoo.free_choice(),
        "embedded": embedded.find(),
    }
    with node_process(models) as running:
        yield running


def _faults() -> Iterator[Json]:
    if FAULTS.exists():
        for line in FAULTS.read_text("utf-8").splitlines():
            yield json.loads(line)


REQUESTS: Final = {fault["id"]: fault["request"] for fault in _faults() if fault["request"]}


def request_of(fault: str) -> Json:
    """A fault's request, its repetitions written out."""
    text = json.dumps(REQUESTS[fault])
    found: Json = json.loads(_REPEAT.sub(lambda match: int(match[1]) * match[2], text))
    return found


class Told:
    """A streamed answer, its events and its final response, once it is known to be well formed."""

    def __init__(self, events: list[Json]) -> None:
        self.events = events
        self.response: Json = events[-1]["response"]
        _check_stream(events)

    def joined(self, kind: str) -> str:
        """The deltas of one kind, one after the other."""
        return "".join(event["delta"] for event in self.events if event["type"] == f"response.{kind}.delta")

    def items(self, kind: str) -> list[Json]:
        return [item for item in self.response["output"] if item["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(part["text"] for item in self.items("message") for part in item["content"])

    @property
    def thought(self) -> str:
        return "".join(part["text"] for item in self.items("reasoning") for part in item["content"])


def _check_stream(events: list[Json]) -> None:
    """Every event is one that the SDK knows; numbers, indices and ids are constant; exactly one ends it
    all.
    """
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        assert EVENT.validate_python(event).type == event["type"]
    ends = [
        event
        for event in events
        if event["type"].removeprefix("response.") in ("completed", "incomplete", "failed")
    ]
    assert ends == events[-1:]
    ids: dict[int, str] = {}
    for event in events:
        if "output_index" in event:
            name = event.get("item_id") or event["item"]["id"]
            assert ids.setdefault(event["output_index"], name) == name
    done = {
        event["output_index"]: event["item"]
        for event in events
        if event["type"] == "response.output_item.done"
    }
    assert [done[index] for index in sorted(done)] == ends[0]["response"]["output"]
    assert [item["id"] for item in ends[0]["response"]["output"]] == [ids[index] for index in sorted(ids)]


def ask(node: NodeProcess, fault: str, model: str, **more: object) -> Told:
    """The streamed answer of `model` to a fault's request, greedy; the same request unstreamed says the
    same.
    """
    asked = _asked(fault, more)
    with node.stream(
        model, asked["input"], **{key: value for key, value in asked.items() if key != "input"}
    ) as stream:
        assert stream.status == 200, stream.until("nothing")
        return Told(list(stream))


def refused(node: NodeProcess, fault: str, model: str = "calls") -> Json:
    """The error of a request that must not be served."""
    asked = _asked(fault, {})
    asked.pop("stream", None)
    answer = node.post(model, asked.pop("input"), **asked)
    assert answer.status == 400
    error: Json = answer.json["error"]
    return error


def _asked(fault: str, more: Json) -> Json:
    asked = request_of(fault)
    del asked["model"]
    return {"temperature": 0, "max_output_tokens": 200} | asked | more


def arguments(told: Told) -> list[Json]:
    """The arguments of every call, once they are whole and the same wherever they are told."""
    joined = told.joined("function_call_arguments")
    done = [
        event["arguments"]
        for event in told.events
        if event["type"] == "response.function_call_arguments.done"
    ]
    assert joined == "".join(done)
    assert done == [item["arguments"] for item in told.items("function_call")]
    assert all(item["status"] == "completed" for item in told.items("function_call"))
    return [json.loads(text) for text in done]


needs = pytest.mark.skipif(not REQUESTS, reason="the collection of faults is not there")


@needs
@pytest.mark.parametrize(
    ("fault", "param", "words"),
    [
        ("fault-001", "tools[1].type", ["web_search", "disabled"]),
        ("fault-002", "tools[1].type", ["namespace"]),
        ("fault-016", "input[0].call_id", ["call_id", "earlier"]),
        (
            "fault-122",
            "logprobs",
            ["logprobs", "; n;", "top_logprobs", "truncation", "background", "seed", "stop"],
        ),
    ],
)
def test_what_is_not_taken_is_named_all_at_once(
    node: NodeProcess, fault: str, param: str, words: list[str]
) -> None:
    """A client hears in one refusal what it has to leave out, and how."""
    error = refused(node, fault)
    assert error["param"] == param
    assert [word for word in words if word not in error["message"]] == []


@needs
@pytest.mark.parametrize(
    "fault",
    ["fault-004", "fault-005", "fault-007", "fault-008", "fault-010", "fault-011", "fault-013", "fault-014",
     "fault-017", "fault-019", "fault-020", "fault-022", "fault-023", "fault-028", "fault-056"],
)  # fmt: skip
@pytest.mark.parametrize("model", ["plain", "thinks"])
def test_histories_that_agents_really_send_are_answered(node: NodeProcess, fault: str, model: str) -> None:
    """Whatever a history holds, with a template that knows functions and with one that knows nothing."""
    told = ask(node, fault, model)
    assert told.response["status"] == "completed"
    assert told.response["error"] is None


FORCED: Final = {
    "fault-026": "create_customer",
    "fault-034": "get_weather",
    "fault-038": "add",
    "fault-044": "puppeteer_screenshot",
    "fault-058": "skill",
    "fault-065": "box",
    "fault-067": "multiply",
    "fault-068": "ping",
}
"""Functions that must be called. `box` takes a list without end, and the embedded model does not end it."""


@needs
@pytest.mark.parametrize(
    ("model", "fault"),
    [("free", fault) for fault in FORCED] + [("embedded", fault) for fault in FORCED if fault != "fault-065"],
)
def test_a_forced_call_is_made_with_whole_arguments(node: NodeProcess, model: str, fault: str) -> None:
    """Exactly what was forced is called, its arguments as its schema says, the same in every place."""
    told = ask(
        node, fault, model, temperature=int(model == "free"), max_output_tokens=600, parallel_tool_calls=False
    )
    calls = told.items("function_call")
    assert [call["name"] for call in calls] == [FORCED[fault]]
    assert told.items("message") == []
    schema = next(tool for tool in request_of(fault)["tools"] if tool["name"] == FORCED[fault]).get(
        "parameters"
    )
    for made in arguments(told):
        jsonschema.validate(made, schema or {"type": "object", "maxProperties": 0})


@needs
def test_a_call_cut_by_the_limit_is_incomplete(node: NodeProcess) -> None:
    """An agent must not run half a file write."""
    told = ask(node, "fault-064", "embedded")
    assert told.response["status"] == "incomplete"
    assert told.response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["status"] for item in told.items("function_call")] == ["incomplete"]


@needs
@pytest.mark.parametrize("fault", ["fault-041", "fault-062"])
def test_text_before_a_call_is_told_before_the_call(node: NodeProcess, fault: str) -> None:
    """A message with the whole text, then the call; no markup in either."""
    asked = request_of(fault)
    tools = [asked["tools"][0] | {"name": "get_weather", "parameters": CITY}]
    told = ask(node, fault, "calls", tools=tools)
    assert [item["type"] for item in told.response["output"]] == ["message", "function_call"]
    assert told.text == "I look it up."
    assert arguments(told) == [{"city": "Oslo"}]


@needs
def test_a_call_after_a_thought_is_a_call(node: NodeProcess) -> None:
    """Thoughts and calls together, no markup in either."""
    tools = [request_of("fault-037")["tools"][0] | {"name": "get_weather", "parameters": CITY}]
    told = ask(node, "fault-037", "muses", tools=tools)
    assert [item["type"] for item in told.response["output"]] == ["reasoning", "function_call"]
    assert told.thought == "Oslo, then."
    assert arguments(told) == [{"city": "Oslo"}]


@needs
@pytest.mark.parametrize("fault", ["fault-059"])
def test_no_tool_is_called_where_none_may_be(node: NodeProcess, fault: str) -> None:
    """What looks like a call is text then."""
    told = ask(node, fault, "calls")
    assert [item["type"] for item in told.response["output"]] == ["message"]
    assert "get_weather" in told.text


@needs
@pytest.mark.parametrize("fault", ["fault-029", "fault-043", "fault-046", "fault-053"])
def test_a_thought_is_told_apart_from_the_answer(node: NodeProcess, fault: str) -> None:
    """The thought ends at the model's own end, not at what looks like it, and no tag is told."""
    told = ask(node, fault, "thinks")
    assert [item["type"] for item in told.response["output"]] == ["reasoning", "message"]
    assert told.thought == "a < b and a</think then <tool_call> is a tag."
    assert told.text == "It is 13*17."
    assert (
        0
        < told.response["usage"]["output_tokens_details"]["reasoning_tokens"]
        < told.response["usage"]["output_tokens"]
    )


@needs
def test_a_cut_inside_a_thought_leaves_no_answer(node: NodeProcess) -> None:
    """The thought is incomplete and is not taken for the answer."""
    told = ask(node, "fault-047", "endless")
    assert told.response["status"] == "incomplete"
    assert told.response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [(item["type"], item["status"]) for item in told.response["output"]] == [
        ("reasoning", "incomplete")
    ]


@needs
@pytest.mark.parametrize("model", ["thinks", "uninvited"])
def test_no_tag_reaches_an_answer_without_a_thought(node: NodeProcess, model: str) -> None:
    """A model that ends a thought nobody asked for is not quoted with its tags."""
    told = ask(node, "fault-049", model)
    assert "think>" not in told.text
    assert told.text


@needs
def test_a_schema_holds_after_the_thought(node: NodeProcess) -> None:
    """Thoughts are free; the message matches."""
    told = ask(node, "fault-050", "thinks")
    assert [item["type"] for item in told.response["output"]] == ["reasoning", "message"]
    assert isinstance(json.loads(told.text)["cents"], int)


@needs
def test_a_thought_without_end_is_ended(node: NodeProcess) -> None:
    """A model that only repeats itself is made to answer; nobody waits for it."""
    told = ask(node, "fault-052", "endless", max_output_tokens=1200)
    kinds = [item["type"] for item in told.response["output"]]
    assert kinds == ["reasoning", "message"]
    assert told.items("reasoning")[0]["status"] == "completed"


@needs
@pytest.mark.parametrize("fault", ["fault-031", "fault-035", "fault-040", "fault-055", "fault-061"])
@pytest.mark.parametrize("model", ["plain", "thinks", "endless", "embedded"])
def test_every_stream_is_one_well_formed_answer(node: NodeProcess, fault: str, model: str) -> None:
    """What is told in pieces is what is told at the end."""
    told = ask(node, fault, model, max_output_tokens=40)
    assert told.joined("output_text") == told.text
    assert told.joined("reasoning_text") == told.thought
    assert "\ufffd" not in told.text[:-1]
