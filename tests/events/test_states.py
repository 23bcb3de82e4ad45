"""The table of the state machine: whole, balanced, and the only way through."""

from __future__ import annotations

from typing import get_args

import pytest

from b3node.events.outcome import Completed, Failed, Incomplete
from b3node.events.states import (
    EXTENDING,
    TABLE,
    Action,
    Input,
    Opening,
    OutOfOrderError,
    ResponseState,
    Transition,
    transition,
)
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, ReasoningDelta, TextDelta

INPUTS: dict[type, Input] = {
    type(each): each
    for each in (
        Opening(),
        TextDelta("a"),
        ReasoningDelta("a"),
        CallStart("f"),
        CallArguments("{}"),
        CallEnd(),
        Completed(),
        Incomplete(),
        Failed("internal", "It broke."),
    )
}
OPEN = {ResponseState.REASONING, ResponseState.MESSAGE, ResponseState.CALL, ResponseState.ANSWERED_REASONING}
LIVE = set(ResponseState) - {ResponseState.NEW, ResponseState.ENDED}
PAIRS = [(state, kind) for state in ResponseState for kind in INPUTS]


def test_every_state_and_every_input_is_known_to_the_table() -> None:
    """Each state has a row, and each kind of input stands in some row."""
    assert set(TABLE) == set(ResponseState)
    assert {kind for row in TABLE.values() for kind in row} == set(INPUTS) == set(get_args(Input))


@pytest.mark.parametrize(("state", "kind"), [p for p in PAIRS if p[1] not in TABLE[p[0]]])
def test_a_missing_pair_is_out_of_order(state: ResponseState, kind: type) -> None:
    """A pair that the table lacks raises, and the message names both."""
    with pytest.raises(OutOfOrderError, match=f"{kind.__name__} cannot come in state {state.name}"):
        transition(state, INPUTS[kind])


@pytest.mark.parametrize(("state", "kind"), [p for p in PAIRS if p[1] in TABLE[p[0]]])
def test_items_open_and_close_in_turn(state: ResponseState, kind: type) -> None:
    """On every transition an item opens only when none is open, and is extended or closed only when one is.

    The next state names the item that is open in the end. Only a failure may leave one open otherwise.
    """
    due, is_open = transition(state, INPUTS[kind]), state in OPEN
    for action in due.actions:
        if action in {Action.OPEN_MESSAGE, Action.OPEN_REASONING, Action.OPEN_CALL}:
            assert not is_open
            is_open = True
        elif action in {Action.CLOSE, Action.CUT}:
            assert is_open
            is_open = False
        elif action is Action.EXTEND:
            assert is_open
    assert is_open == (due.to in OPEN) or kind is Failed


def test_actions_are_given_the_fields_that_they_read() -> None:
    """Only deltas with a text extend an item, only a name opens a call, only an outcome ends the response."""
    for row in TABLE.values():
        for kind, due in row.items():
            given = INPUTS[kind]
            assert (Action.EXTEND in due.actions) == hasattr(given, "text")
            assert (Action.OPEN_CALL in due.actions) == hasattr(given, "name")
            assert (Action.END in due.actions) == isinstance(given, Completed | Incomplete | Failed)


@pytest.mark.parametrize("state", list(ResponseState))
def test_extending_deltas_agree_with_the_table(state: ResponseState) -> None:
    """Exactly the deltas that only extend the open item skip the table."""
    alone = Transition((Action.EXTEND,), state)
    assert set(EXTENDING[state]) == {kind for kind, due in TABLE[state].items() if due == alone}


def test_every_state_is_reached_and_can_end() -> None:
    """NEW leads to every state; every live one can be cut or fail, all but CALL can be completed."""
    reached, frontier = {ResponseState.NEW}, [ResponseState.NEW]
    while frontier:
        for due in TABLE[frontier.pop()].values():
            if due.to not in reached:
                reached.add(due.to)
                frontier.append(due.to)
    assert reached == set(ResponseState)
    for state in LIVE:
        assert TABLE[state].keys() >= {Incomplete, Failed}
        assert (Completed in TABLE[state]) == (state is not ResponseState.CALL)


def test_a_completed_response_has_an_answer() -> None:
    """Without a message or a call so far, completion opens a message: else agent loops ask again."""
    for state in (ResponseState.STARTED, ResponseState.REASONING):
        assert Action.OPEN_MESSAGE in TABLE[state][Completed].actions
    for state in (ResponseState.MESSAGE, ResponseState.ANSWERED, ResponseState.ANSWERED_REASONING):
        assert Action.OPEN_MESSAGE not in TABLE[state][Completed].actions
