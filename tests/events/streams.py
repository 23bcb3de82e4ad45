"""Common parts of the event tests: a request, ways to compose, and every legal sequence of deltas."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from b3node.contract.events import Event
from b3node.contract.request import FunctionTool, Request
from b3node.contract.response import B3os, Response, Timing, Usage
from b3node.events.composer import Composer
from b3node.events.initial_response import begin
from b3node.events.outcome import Completed, Failed, Incomplete, Outcome
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, ReasoningDelta, TextDelta

RESPONSE_ID = "resp_01m5t5tmscqev5tf32q87tr1v5"
STARTED_AT, ENDED_AT = 1793001600, 1793001601
USAGE = Usage.of(input_tokens=182, cached_tokens=64, output_tokens=18, reasoning_tokens=5)
B3OS = B3os("n1", Timing(97.1, ttft_ms=41.5))
FAILURE = Failed("infer_backend_unavailable", "The model stopped before the answer was whole; try again.")
WEATHER = FunctionTool(
    "get_weather",
    "Current weather for a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    strict=True,
)
REQUEST = Request(
    model="b3os/qwen3.5-9b",
    input=(),
    instructions="You are a concise assistant.",
    tools=(WEATHER,),
    stream=True,
)


def composer(request: Request = REQUEST) -> Composer:
    """Returns a composer with predictable call ids: call_0, call_1, ..."""
    numbers = itertools.count()
    initial = begin(request, response_id=RESPONSE_ID, created_at=STARTED_AT)
    return Composer(initial, call_id=lambda: f"call_{next(numbers)}")


def compose(
    deltas: Sequence[Delta],
    outcome: Outcome | None = None,
    *,
    request: Request = REQUEST,
    usage: Usage = USAGE,
) -> list[Event]:
    """Returns all events of one response."""
    composing = composer(request)
    events = composing.open()
    for delta in deltas:
        events += composing.feed(delta)
    return events + composing.finish(outcome or Completed(), usage=usage, completed_at=ENDED_AT, b3os=B3OS)


def types(events: Sequence[Event]) -> list[str]:
    """Returns the events' types, without the common prefix `response.`."""
    return [str(event.__struct_config__.tag).removeprefix("response.") for event in events]


def ended(events: Sequence[Event]) -> Response:
    """Returns the response of the verdict."""
    verdict = events[-2] if types(events)[-1] == "error" else events[-1]
    response: object = getattr(verdict, "response", None)
    assert isinstance(response, Response)
    return response


def call(name: str, *arguments: str) -> list[Delta]:
    """Returns the deltas of a whole call."""
    return [CallStart(name), *map(CallArguments, arguments), CallEnd()]


def text(*pieces: str) -> list[Delta]:
    return [TextDelta(piece) for piece in pieces]


def reasoning(*pieces: str) -> list[Delta]:
    return [ReasoningDelta(piece) for piece in pieces]


_pieces = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4)
_names = st.sampled_from(["get_weather", "search", "a-b_c"])
_calls = st.builds(lambda name, args: call(name, *args), _names, st.lists(st.text(min_size=1), max_size=3))
_items = st.one_of(_pieces.map(lambda p: text(*p)), _pieces.map(lambda p: reasoning(*p)), _calls)
_whole = st.lists(_items, max_size=5).map(lambda items: [delta for item in items for delta in item])
_broken = st.tuples(_whole, st.one_of(st.just([]), _calls.map(lambda c: c[:-1]))).map(
    lambda two: two[0] + two[1]
)

scripts: st.SearchStrategy[tuple[list[Delta], Outcome]] = st.one_of(
    st.tuples(_whole, st.just(Completed())),
    st.tuples(_broken, st.one_of(st.just(Incomplete()), st.just(FAILURE))),
)
"""Every legal sequence of deltas with an outcome it can have; a cut or a failure may come inside a call."""
