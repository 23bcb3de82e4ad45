"""Deltas to events: every sequence that the protocol names, and the properties of all."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given

from b3node import ids
from b3node.contract.encode import sse_frame
from b3node.contract.events import (
    ContentPartAdded,
    Event,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    OutputItemAdded,
    OutputItemDone,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    StreamError,
)
from b3node.contract.response import (
    OutputFunctionCall,
    OutputMessage,
    OutputReasoning,
    OutputText,
    ReasoningText,
)
from b3node.errors import HTTP
from b3node.events.composer import Composer
from b3node.events.initial_response import begin
from b3node.events.outcome import Completed, Failed, Incomplete, Outcome
from b3node.events.states import OutOfOrderError, ResponseState
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, TextDelta
from tests.events.streams import (
    B3OS,
    ENDED_AT,
    FAILURE,
    REQUEST,
    RESPONSE_ID,
    USAGE,
    call,
    compose,
    composer,
    ended,
    reasoning,
    scripts,
    text,
    types,
)

HEAD = ["created", "in_progress"]
MESSAGE = ["output_item.added", "content_part.added"]
MESSAGE_DONE = ["output_text.done", "content_part.done", "output_item.done"]
REASONING_DONE = ["reasoning_text.done", "content_part.done", "output_item.done"]
CALL = ["output_item.added"]
CALL_DONE = ["function_call_arguments.done", "output_item.done"]
WORD, REASON, ARGUMENT = "output_text.delta", "reasoning_text.delta", "function_call_arguments.delta"
ULID = RESPONSE_ID.removeprefix("resp_")


def flat(*parts: list[str] | str) -> list[str]:
    return [kind for part in parts for kind in ([part] if isinstance(part, str) else part)]


SEQUENCES: dict[str, tuple[list[Delta], Outcome, list[str]]] = {
    "text": (
        text("a", "b", "c"),
        Completed(),
        flat(HEAD, MESSAGE, WORD, WORD, WORD, MESSAGE_DONE, "completed"),
    ),
    "reasoning and text": (
        reasoning("a", "b") + text("c"),
        Completed(),
        flat(HEAD, MESSAGE, REASON, REASON, REASONING_DONE, MESSAGE, WORD, MESSAGE_DONE, "completed"),
    ),
    "one call": (
        call("f", '{"a":', "1}"),
        Completed(),
        flat(HEAD, CALL, ARGUMENT, ARGUMENT, CALL_DONE, "completed"),
    ),
    "parallel calls": (
        call("f", "{}") + call("f", "{}"),
        Completed(),
        flat(HEAD, CALL, ARGUMENT, CALL_DONE, CALL, ARGUMENT, CALL_DONE, "completed"),
    ),
    "text then call": (
        text("a") + call("f", "{}"),
        Completed(),
        flat(HEAD, MESSAGE, WORD, MESSAGE_DONE, CALL, ARGUMENT, CALL_DONE, "completed"),
    ),
    "call then text": (
        call("f", "{}") + text("a"),
        Completed(),
        flat(HEAD, CALL, ARGUMENT, CALL_DONE, MESSAGE, WORD, MESSAGE_DONE, "completed"),
    ),
    "empty answer": ([], Completed(), flat(HEAD, MESSAGE, MESSAGE_DONE, "completed")),
    "reasoning alone": (
        reasoning("a"),
        Completed(),
        flat(HEAD, MESSAGE, REASON, REASONING_DONE, MESSAGE, MESSAGE_DONE, "completed"),
    ),
    "reasoning after the answer": (
        text("a") + reasoning("b"),
        Completed(),
        flat(HEAD, MESSAGE, WORD, MESSAGE_DONE, MESSAGE, REASON, REASONING_DONE, "completed"),
    ),
    "call without arguments": (call("f"), Completed(), flat(HEAD, CALL, ARGUMENT, CALL_DONE, "completed")),
    "cut in text": (text("a"), Incomplete(), flat(HEAD, MESSAGE, WORD, MESSAGE_DONE, "incomplete")),
    "cut in reasoning": (
        reasoning("a"),
        Incomplete(),
        flat(HEAD, MESSAGE, REASON, REASONING_DONE, "incomplete"),
    ),
    "cut in a call": (
        [CallStart("f"), CallArguments('{"a')],
        Incomplete(),
        flat(HEAD, CALL, ARGUMENT, CALL_DONE, "incomplete"),
    ),
    "cut before arguments": ([CallStart("f")], Incomplete(), flat(HEAD, CALL, CALL_DONE, "incomplete")),
    "cut after a call": (
        call("f", "{}"),
        Incomplete(),
        flat(HEAD, CALL, ARGUMENT, CALL_DONE, "incomplete"),
    ),
    "cut before anything": ([], Incomplete(), flat(HEAD, MESSAGE, MESSAGE_DONE, "incomplete")),
    "failure in text": (text("a"), FAILURE, flat(HEAD, MESSAGE, WORD, "failed", "error")),
    "failure before anything": ([], FAILURE, flat(HEAD, "failed", "error")),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence(name: str) -> None:
    """The events come in the order that clients' helpers ask for, an item closed before the next opens."""
    deltas, outcome, expected = SEQUENCES[name]
    assert types(compose(deltas, outcome)) == expected


def test_text_and_call_are_two_items_in_order() -> None:
    """Text and a call in one answer have the indices 0 and 1 and stand so in the output."""
    events = compose(text("Let me ", "look.") + call("get_weather", '{"city":', '"Eugene"}'))
    assert ended(events).output == (
        OutputMessage(f"msg_{ULID}_0", "completed", content=(OutputText("Let me look."),)),
        OutputFunctionCall(f"fc_{ULID}_1", "completed", "call_0", "get_weather", '{"city":"Eugene"}'),
    )


def test_reasoning_is_wrapped_in_its_own_part() -> None:
    """A reasoning item has a part of type reasoning_text, added and done, and an empty summary."""
    events = compose(reasoning("Hm", "m.") + text("Yes."))
    assert [e.part for e in events if isinstance(e, ContentPartAdded)] == [ReasoningText(""), OutputText("")]
    assert ended(events).output[0] == OutputReasoning(
        f"rs_{ULID}_0", "completed", content=(ReasoningText("Hmm."),)
    )


def test_snapshots_are_whole_and_say_that_nothing_was_produced() -> None:
    """Both first events carry the full echo, no output, no usage, no end, and no extension."""
    created, in_progress = compose(text("a"))[:2]
    assert isinstance(created, ResponseCreated)
    assert isinstance(in_progress, ResponseInProgress)
    expected = begin(REQUEST, response_id=RESPONSE_ID, created_at=created.response.created_at)
    assert created.response == in_progress.response == expected
    assert (expected.status, expected.output, expected.usage, expected.completed_at) == (
        "in_progress",
        (),
        None,
        None,
    )
    assert expected.b3os is msgspec.UNSET


def test_an_item_opens_empty() -> None:
    """A message is added without a part and a call without arguments, but with its name and its call id."""
    events = compose(text("a") + call("f", "{}"))
    assert [e.item for e in events if isinstance(e, OutputItemAdded)] == [
        OutputMessage(f"msg_{ULID}_0", "in_progress"),
        OutputFunctionCall(f"fc_{ULID}_1", "in_progress", "call_0", "f", ""),
    ]


def test_a_call_without_arguments_has_an_empty_object_in_one_delta() -> None:
    """`{}` is sent as a delta, as the whole arguments and in the item."""
    events = compose(call("f"))
    assert [e.delta for e in events if isinstance(e, FunctionCallArgumentsDelta)] == ["{}"]
    assert [e.arguments for e in events if isinstance(e, FunctionCallArgumentsDone)] == ["{}"]


def test_every_call_asks_for_an_id_of_its_own() -> None:
    """Call ids come from the injected source, one a call; the real source repeats none and does not count."""
    initial = begin(REQUEST, response_id=RESPONSE_ID, created_at=0)
    composing = Composer(initial, call_id=ids.new_call_id)
    composing.open()
    for delta in call("f") * 50:
        composing.feed(delta)
    output = ended(composing.finish(Completed(), usage=USAGE, completed_at=1, b3os=B3OS)).output
    call_ids = [item.call_id for item in output if isinstance(item, OutputFunctionCall)]
    assert len(set(call_ids)) == 50
    assert all(re.fullmatch("call_[0-9a-z]{24}", call_id) for call_id in call_ids)


@pytest.mark.parametrize(
    ("deltas", "statuses"),
    [
        (text("a"), ["incomplete"]),
        (reasoning("a"), ["incomplete"]),
        (reasoning("a") + text('{"cut": "js'), ["completed", "incomplete"]),
        ([*text("a"), CallStart("f"), CallArguments('{"a')], ["completed", "incomplete"]),
        (call("f", "{}"), ["completed"]),
        ([], ["incomplete"]),
    ],
)
def test_a_cut_marks_the_item_being_written_and_no_other(deltas: list[Delta], statuses: list[str]) -> None:
    """The response is incomplete with its reason; items that were closed before it stay completed."""
    events = compose(deltas, Incomplete())
    response = ended(events)
    assert isinstance(events[-1], ResponseIncomplete)
    assert response.status == "incomplete"
    assert msgspec.to_builtins(response.incomplete_details) == {"reason": "max_output_tokens"}
    assert response.completed_at == ENDED_AT
    assert response.usage == USAGE
    assert [item.status for item in response.output] == statuses


def test_a_cut_inside_a_call_keeps_the_arguments_as_they_are() -> None:
    """Half-written arguments are not mended."""
    events = compose([CallStart("f"), CallArguments('{"city": "Eu')], Incomplete())
    assert ended(events).output == (
        OutputFunctionCall(f"fc_{ULID}_0", "incomplete", "call_0", "f", '{"city": "Eu'),
    )


def test_a_failure_shows_the_output_so_far_and_then_the_error_in_both_shapes() -> None:
    """The failed response shows the open item as incomplete; the error is flat and nested, with our code."""
    failure = Failed("capacity_unavailable", "No room is left.", "input")
    *_, failed, error = compose(text("a") + reasoning("b", "c"), failure)
    assert isinstance(failed, ResponseFailed)
    assert failed.response.status == "failed"
    assert [item.status for item in failed.response.output] == ["completed", "incomplete"]
    assert failed.response.output[1] == OutputReasoning(
        f"rs_{ULID}_1", "incomplete", content=(ReasoningText("bc"),)
    )
    assert failed.response.usage == USAGE
    assert msgspec.to_builtins(failed.response.error) == {"code": "server_error", "message": failure.message}
    assert isinstance(error, StreamError)
    flat_shape = {"code": failure.code, "message": failure.message, "param": "input"}
    nested = {**flat_shape, "type": HTTP[failure.code][1]}
    assert msgspec.to_builtins(error) == {
        "type": "error",
        "sequence_number": failed.sequence_number + 1,
        **flat_shape,
        "error": nested,
    }


def test_usage_has_both_details_and_a_total_that_adds_up() -> None:
    """Cached tokens count as input, reasoning as output, and the terminal response has them all."""
    usage = msgspec.to_builtins(ended(compose(text("a"))).usage)
    assert usage == {
        "input_tokens": 182,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 18,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 200,
    }


@pytest.mark.parametrize(
    ("before", "delta"),
    [
        ([], CallArguments("{}")),
        ([], CallEnd()),
        (text("a"), CallArguments("{}")),
        (text("a"), CallEnd()),
        ([CallStart("f")], TextDelta("a")),
        ([CallStart("f")], CallStart("g")),
        (call("f", "{}"), CallArguments("{}")),
    ],
)
def test_an_illegal_delta_raises_and_changes_nothing(before: list[Delta], delta: Delta) -> None:
    """A parser's mistake is a bug, not a refusal; the composer goes on as if it had not come."""
    composing = composer()
    events = composing.open()
    for each in before:
        events += composing.feed(each)
    with pytest.raises(OutOfOrderError):
        composing.feed(delta)
    rest = composing.finish(Incomplete(), usage=USAGE, completed_at=ENDED_AT, b3os=B3OS)
    assert events + rest == compose(before, Incomplete())


def test_a_response_with_an_open_call_cannot_be_completed() -> None:
    """A completed call has whole arguments; the refused completion leaves no trace in later events."""
    composing = composer()
    events = composing.open() + composing.feed(CallStart("f"))
    assert composing.state is ResponseState.CALL
    with pytest.raises(OutOfOrderError):
        composing.finish(Completed(), usage=USAGE, completed_at=0, b3os=B3OS)
    rest = composing.finish(Incomplete(), usage=USAGE, completed_at=ENDED_AT, b3os=B3OS)
    assert events + rest == compose([CallStart("f")], Incomplete())


def test_nothing_comes_before_the_opening_or_after_the_end() -> None:
    """A stream is opened once and ended once."""
    composing = composer()
    with pytest.raises(OutOfOrderError):
        composing.feed(TextDelta("a"))
    composing.open()
    with pytest.raises(OutOfOrderError):
        composing.open()
    composing.finish(Completed(), usage=USAGE, completed_at=1, b3os=B3OS)
    with pytest.raises(OutOfOrderError):
        composing.feed(TextDelta("a"))
    with pytest.raises(OutOfOrderError):
        composing.finish(FAILURE, usage=USAGE, completed_at=1, b3os=B3OS)


# --------------------------------------------------------------------------- for every legal sequence


@given(scripts)
def test_sequence_numbers_count_from_0_without_a_gap(script: tuple[list[Delta], Outcome]) -> None:
    """Every event has the next number."""
    events = compose(*script)
    assert [event.sequence_number for event in events] == list(range(len(events)))


@given(scripts)
def test_there_is_one_verdict_and_it_is_last(script: tuple[list[Delta], Outcome]) -> None:
    """A stream ends with exactly one verdict; an error follows a failure, always, and nothing else."""
    kinds = types(compose(*script))
    tail = {Completed: ["completed"], Incomplete: ["incomplete"], Failed: ["failed", "error"]}[
        type(script[1])
    ]
    assert kinds[-len(tail) :] == tail
    assert not {"completed", "incomplete", "failed", "error"} & set(kinds[: -len(tail)])


def _places(events: list[Event]) -> Iterator[tuple[str, int, Event]]:
    for event in events:
        if isinstance(event, OutputItemAdded | OutputItemDone):
            yield event.item.id, event.output_index, event
        elif (item_id := getattr(event, "item_id", None)) is not None:
            yield item_id, event.output_index, event  # type: ignore[union-attr]  # item events have both


@given(scripts)
def test_an_item_has_one_id_and_one_index_everywhere(script: tuple[list[Delta], Outcome]) -> None:
    """Added, parts, deltas, done and the final output agree; indices count from 0; no item opens while one is
    open; every content index is 0, for no item has two parts.
    """
    events = compose(*script)
    output = ended(events).output
    index = -1
    for item_id, output_index, event in _places(events):
        if isinstance(event, OutputItemAdded):
            index += 1
        assert output_index == index
        assert item_id == output[index].id
        assert getattr(event, "content_index", 0) == 0
    assert index == len(output) - 1
    done = [event.item for event in events if isinstance(event, OutputItemDone)]
    assert done == [*output[: len(done)]]
    assert len(output) - len(done) == (isinstance(script[1], Failed) and output[-1:] != tuple(done[-1:]))


@given(scripts)
def test_the_arguments_of_a_call_agree(script: tuple[list[Delta], Outcome]) -> None:
    """The deltas of a call, joined, are its whole arguments, in the event and in the item."""
    events = compose(*script)
    for done in (event for event in events if isinstance(event, FunctionCallArgumentsDone)):
        pieces = [
            event.delta
            for event in events
            if isinstance(event, FunctionCallArgumentsDelta) and event.item_id == done.item_id
        ]
        item = ended(events).output[done.output_index]
        assert isinstance(item, OutputFunctionCall)
        assert "".join(pieces) == done.arguments == item.arguments
        assert done.name == item.name
        assert pieces or item.status == "incomplete"


@given(scripts)
def test_the_extension_rides_in_the_verdict_alone(script: tuple[list[Delta], Outcome]) -> None:
    """No event but the verdict has `b3os`, and no event type is our own."""
    with_extension = [event for event in compose(*script) if b'"b3os":{' in sse_frame(event)]
    assert types(with_extension) in (["completed"], ["incomplete"], ["failed"])
