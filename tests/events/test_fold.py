"""The body without streaming is built from the events, and from nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from b3node.contract.events import OutputItemDone
from b3node.contract.response import OutputMessage
from b3node.events.fold import Fold, fold
from b3node.events.outcome import Completed, Outcome
from b3node.events.states import OutOfOrderError
from b3node.parse.deltas import CallArguments, Delta, ReasoningDelta, TextDelta
from tests.events.streams import compose, ended, scripts, text


@given(scripts)
def test_the_fold_is_the_response_of_the_verdict(script: tuple[list[Delta], Outcome]) -> None:
    """An accumulator of the events arrives at the response in the last event."""
    events = compose(*script)
    assert fold(events) == ended(events)


@given(scripts, st.data())
def test_cutting_the_deltas_anywhere_changes_nothing(
    script: tuple[list[Delta], Outcome], data: st.DataObject
) -> None:
    """However a text is cut into deltas, the fold is the same."""
    deltas, outcome = script
    cut: list[Delta] = []
    for delta in deltas:
        if isinstance(delta, TextDelta | ReasoningDelta | CallArguments) and len(delta.text) > 1:
            at = data.draw(st.integers(1, len(delta.text) - 1))
            cut += [type(delta)(delta.text[:at]), type(delta)(delta.text[at:])]
        else:
            cut.append(delta)
    assert fold(compose(cut, outcome)) == fold(compose(deltas, outcome))


def test_the_fold_reads_the_deltas_and_not_the_verdict() -> None:
    """A delta that is lost is missing in the fold, although the last event has it."""
    events = [event for event in compose(text("a", "b", "c")) if getattr(event, "delta", "") != "b"]
    message = fold(events).output[0]
    assert isinstance(message, OutputMessage)
    assert message.content[0].text == "ac"


@pytest.mark.parametrize("kept", [slice(1, None), slice(0, -1), slice(0, 0)])
def test_a_stream_without_beginning_or_end_does_not_fold(kept: slice) -> None:
    """There is no response to return."""
    with pytest.raises(OutOfOrderError):
        fold(compose(text("a"))[kept])


def test_an_item_cannot_be_closed_twice() -> None:
    """A second close is a broken stream."""
    folding = Fold()
    for event in compose(text("a"), Completed()):
        folding.feed(event)
        if isinstance(event, OutputItemDone):
            with pytest.raises(OutOfOrderError):
                folding.feed(event)
