from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from b3node.contract.events import Event, OutputTextDelta, ResponseFailed, StreamError
from b3node.contract.request import Message, Request, TextPart
from b3node.contract.response import OutputMessage
from b3node.engine.messages import FinishReason
from b3node.errors import Refusal
from b3node.events.fold import fold
from b3node.events.initial_response import begin
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, ReasoningDelta, TextDelta, merged
from b3node.parse.parser import Parser, TextParser
from b3node.service.node import Node
from b3node.service.output_processor import OutputProcessor
from b3node.service.record import Record
from b3node.service.timing import Clock, Stopwatch
from b3node.workers.served_model import Output
from tests.service.fakes import MODEL, finished, started, token

CLOCK = Clock(monotonic=lambda: 1.0, wall=lambda: 1_800_000_000.0)
RESPONSE = "resp_01m5t5tmscqev5tf32q87tr1v5"


def processing(parser: Parser | None = None, **known: Any) -> tuple[OutputProcessor, Record]:
    record = Record(request_id="req_x", timing=Stopwatch(CLOCK.monotonic), method="POST", **known)
    request = Request(model=MODEL, input=(Message("user", (TextPart("hi"),)),))
    initial = begin(request, response_id=RESPONSE, created_at=1)
    return OutputProcessor(
        Node("n1", [], clock=CLOCK), record, initial, parser or TextParser(), prompt_tokens=7
    ), record


def numbers(events: list[Event]) -> list[int]:
    return [event.sequence_number for event in events]


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[tuple[Output, ...]]]:
    """A text of any characters, cut anywhere into tokens, which arrive in any company."""
    text = draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
    data = text.encode()
    cuts = sorted(draw(st.sets(st.integers(0, len(data)), max_size=8)))
    edges = [0, *cuts, len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]
    outputs: list[Output] = [started(), *map(token, pieces), finished("stop", len(pieces))]
    split: list[tuple[Output, ...]] = []
    while outputs:
        size = draw(st.integers(1, len(outputs)))
        split.append(tuple(outputs[:size]))
        outputs = outputs[size:]
    return text, split


@given(batches())
def test_any_company_of_tokens_tells_the_same_text(case: tuple[str, list[tuple[Output, ...]]]) -> None:
    """However tokens are cut and however many arrive at once, the response says the text, without a gap."""
    text, split = case
    processor, record = processing()
    events = processor.open()
    for outputs in split:
        events += processor.feed(outputs)
    response = fold(events)

    assert processor.ended
    assert numbers(events) == list(range(len(events)))
    assert isinstance(response.output[0], OutputMessage)
    assert response.output[0].content[0].text == text
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.input_tokens_details.cached_tokens) == (7, 3)
    assert record.output_tokens == response.usage.output_tokens


def test_tokens_that_arrive_together_are_one_delta() -> None:
    """A front that falls behind sends fewer, larger deltas instead of falling further behind."""
    processor, _ = processing()
    processor.open()
    events = list(processor.feed((started(), token("a"), token("b"), token("c"))))

    assert [event.delta for event in events if isinstance(event, OutputTextDelta)] == ["abc"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [("capacity", "capacity_unavailable"), ("failed", "internal"), ("cancelled", "internal")],
)
def test_an_engine_that_cannot_go_on_is_a_refusal(reason: FinishReason, code: str) -> None:
    """What the engine could not begin or finish has the code that says whose turn it is to act."""
    processor, _ = processing()
    processor.open()
    with pytest.raises(Refusal) as caught:
        list(processor.feed((finished(reason, 0),)))

    assert caught.value.code == code
    assert (caught.value.retry_after is not None) == (caught.value.status == 503)


def test_what_came_with_the_bad_news_is_not_lost() -> None:
    """Tokens that arrive in one step with the failure are told before it, and the numbers have no gap."""
    processor, _ = processing()
    events = processor.open()
    later = processor.feed((started(), token("half"), finished("failed", 1)))
    try:
        events += iter(later)
    except Refusal as refusal:
        events += processor.fail(refusal)

    assert numbers(events) == list(range(len(events)))
    assert any(isinstance(event, OutputTextDelta) and event.delta == "half" for event in events)
    assert isinstance(events[-2], ResponseFailed)
    assert isinstance(events[-1], StreamError)


def test_a_failure_has_the_output_and_the_usage_so_far() -> None:
    """`response.failed` carries what was produced, counted to the last token, and `error` says why."""
    processor, record = processing(stream=True)
    events = processor.open()
    events += processor.feed((started(), token("half"), token(" way")))
    events += processor.fail(Refusal("infer_backend_unavailable", "The engine ended.", retry_after=3))
    failed, error = events[-2:]

    assert isinstance(failed, ResponseFailed)
    assert failed.response.usage is not None
    assert failed.response.usage.output_tokens == 2
    assert failed.response.b3os is not None
    assert isinstance(error, StreamError)
    assert (error.code, error.error.code) == ("infer_backend_unavailable", "infer_backend_unavailable")
    assert processor.ended
    assert (record.code, record.finish_reason) == ("infer_backend_unavailable", "failed")


def test_a_client_that_leaves_is_charged_to_its_last_token() -> None:
    """The record counts along, so that it is right whenever the story breaks off."""
    processor, record = processing()
    processor.open()
    list(processor.feed((started(5), token("a"), token("b"))))

    assert (record.prompt_tokens, record.cached_tokens, record.output_tokens) == (7, 5, 2)


def test_a_cut_answer_is_incomplete() -> None:
    """The end of the token budget, or of the context, is `incomplete` with its reason."""
    processor, _ = processing()
    events = processor.open()
    events += processor.feed((started(), token("half"), finished("length", 1)))
    response = fold(events)

    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


def test_queue_prefill_and_first_token_are_timed() -> None:
    """The wait in the queue is the engine's word, the prefill what is left until the first token."""
    now = [0.0]
    record = Record(request_id="req_x", timing=Stopwatch(lambda: now[0]), method="POST")
    request = Request(model=MODEL, input=(Message("user", (TextPart("hi"),)),))
    now[0] = 0.010
    processor = OutputProcessor(
        Node("n1", []),
        record,
        begin(request, response_id=RESPONSE, created_at=1),
        TextParser(),
        prompt_tokens=7,
    )
    processor.open()
    list(processor.feed((started().__class__(id=1, queue_seconds=0.004, cached_tokens=0),)))
    now[0] = 0.050
    list(processor.feed((token("a"),)))
    now[0] = 0.080
    list(processor.feed((finished("stop", 1, cached_tokens=0),)))

    assert record.timing.get("queue") == pytest.approx(4)
    assert record.timing.get("prefill") == pytest.approx(36)
    assert record.timing.get("ttft") == pytest.approx(50)
    assert record.timing.get("model") == pytest.approx(70)


class Thinker:
    """A parser for `(` thought `)` text `!` name `?` arguments, of which only `.` ends a call."""

    def __init__(self) -> None:
        self.thinking = False
        self._calling = False

    def feed(self, piece: bytes) -> list[Delta]:
        text = piece.decode()
        if text in "()":
            self.thinking = text == "("
            return []
        if text.startswith("!"):
            self._calling = True
            return [CallStart(text[1:])]
        if text == ".":
            return [CallEnd()]
        return [
            ReasoningDelta(text)
            if self.thinking
            else CallArguments(text)
            if self._calling
            else TextDelta(text)
        ]

    def finish(self) -> list[Delta]:
        return []


def test_the_tokens_of_a_thought_are_counted() -> None:
    """Each token that is part of a thought, its ends among them, however many arrive at once."""
    for size in (1, 3, 7):
        processor, record = processing(parser=Thinker())
        events = processor.open()
        outputs: list[Output] = [*map(token, ["(", "a", "b", ")", "c"]), finished("stop", 6)]
        for start in range(0, len(outputs), size):
            events += processor.feed(outputs[start : start + size])
        usage = fold(events).usage
        assert usage is not None
        assert usage.output_tokens_details.reasoning_tokens == record.reasoning_tokens == 4


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_call_that_was_broken_off_makes_the_response_incomplete(reason: FinishReason) -> None:
    """Also where the model ended by itself: a completed call has whole arguments."""
    processor, _ = processing(parser=Thinker())
    events = [*processor.open(), *processor.feed([token("!f"), token('{"a":'), finished(reason, 2)])]
    response = fold(events)
    assert response.status == "incomplete"
    assert [item.status for item in response.output] == ["incomplete"]


@given(
    st.lists(
        st.sampled_from([TextDelta("a"), ReasoningDelta("b"), CallStart("f"), CallArguments("{"), CallEnd()])
    )
)
def test_merging_joins_neighbours_and_loses_nothing(deltas: list[Delta]) -> None:
    """The same texts in the same order, and no two neighbours that only extend each other."""
    joined = list(merged(deltas))
    assert [piece for delta in joined for piece in _pieces(delta)] == [
        piece for delta in deltas for piece in _pieces(delta)
    ]
    assert not any(type(one) is type(two) and hasattr(one, "text") for one, two in pairwise(joined))


def _pieces(delta: Delta) -> list[object]:
    return [(type(delta), char) for char in getattr(delta, "text", "")] or [delta]
