"""Deltas in, contract events out: the machine of `states`, applied to one response."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from b3node import ids
from b3node.contract.events import (
    Event,
    ResponseCompleted,
    ResponseCreated,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    StreamError,
)
from b3node.contract.response import (
    B3os,
    ErrorObject,
    IncompleteDetails,
    ItemStatus,
    OutputItem,
    Response,
    ResponseError,
    Status,
    Usage,
)
from b3node.errors import HTTP
from b3node.events.open_items import OpenCallItem, OpenItem, OpenMessageItem, OpenReasoningItem
from b3node.events.outcome import Completed, Failed, Incomplete, Outcome
from b3node.events.states import EXTENDING, Action, Input, Opening, ResponseState, transition
from b3node.parse.deltas import Delta


class Composer:
    """One response, from its first event to its last.

    Every method returns the events that are due now, in the order in which they must be sent; sequence
    numbers count from 0 over all of them. Order: `open` once, `feed` any number of times, `finish` once.
    Anything else raises `OutOfOrderError`, which is a bug of the caller, and leaves the composer as it was.

    Args:
        initial: the response as `initial_response.begin` makes it: echo of the request, status `in_progress`.
        call_id: a new unguessable id for every call, such as `ids.new_call_id`.
    """

    def __init__(self, initial: Response, *, call_id: Callable[[], str]) -> None:
        self._response = initial
        self._call_id = call_id
        self._number = itertools.count().__next__
        self._state = ResponseState.NEW
        self._extending = EXTENDING[self._state]
        self._closed: list[OutputItem] = []
        self._open: list[OpenItem] = []  # at most one

    @property
    def state(self) -> ResponseState:
        """State of the response; in `CALL` it cannot be completed, only cut or failed."""
        return self._state

    def open(self) -> list[Event]:
        """Returns the two snapshots that a stream starts with."""
        return self._apply(Opening())

    def feed(self, delta: Delta) -> list[Event]:
        """Returns the events of one delta: one if it extends the open item, else several."""
        if isinstance(delta, self._extending):  # nearly every delta
            return [self._open[0].extend(delta.text)]
        return self._apply(delta)

    def finish(self, outcome: Outcome, *, usage: Usage, completed_at: int, b3os: B3os) -> list[Event]:
        """Returns the events that end the response.

        The last one has the whole response; after a failure the error follows.

        Args:
            outcome: how the response ends.
            usage: tokens, up to the last one generated, for every outcome.
            completed_at: seconds since 1970.
            b3os: the extension object.
        """
        due = self._advance(outcome)
        self._response = replace(self._response, usage=usage, completed_at=completed_at, b3os=b3os)
        return self._perform(due, outcome)

    def _apply(self, given: Input) -> list[Event]:
        return self._perform(self._advance(given), given)

    def _advance(self, given: Input) -> tuple[Action, ...]:
        actions, self._state = transition(self._state, given)
        self._extending = EXTENDING[self._state]
        return actions

    def _perform(self, actions: tuple[Action, ...], given: Input) -> list[Event]:
        events: list[Event] = []
        for action in actions:
            events += self._events(action, given)
        return events

    def _events(self, action: Action, given: Any) -> list[Event]:
        # Any: the table gives each action only inputs with the fields that it reads; a test checks that.
        match action:
            case Action.EXTEND:
                return [self._open[0].extend(given.text)]
            case Action.OPEN_REASONING:
                return self._add(OpenReasoningItem(self._number, *self._place("rs")))
            case Action.OPEN_MESSAGE:
                return self._add(OpenMessageItem(self._number, *self._place("msg")))
            case Action.OPEN_CALL:
                return self._add(OpenCallItem(self._number, *self._place("fc"), self._call_id(), given.name))
            case Action.CLOSE:
                return self._close("completed")
            case Action.CUT:
                return self._close("incomplete")
            case Action.START:
                return self._start()
            case Action.END:
                return self._end(given)

    def _start(self) -> list[Event]:
        return [
            ResponseCreated(self._number(), self._response),
            ResponseInProgress(self._number(), self._response),
        ]

    def _place(self, prefix: str) -> tuple[str, int]:
        index = len(self._closed)
        return ids.item_id(prefix, self._response.id, index), index

    def _add(self, item: OpenItem) -> list[Event]:
        self._open.append(item)
        return item.open()

    def _close(self, status: ItemStatus) -> list[Event]:
        item = self._open.pop()
        events = item.close(status)
        self._closed.append(item.item(status))
        return events

    def _end(self, outcome: Outcome) -> list[Event]:
        match outcome:
            case Completed():
                return [ResponseCompleted(self._number(), self._ended("completed"))]
            case Incomplete(reason):
                response = replace(self._ended("incomplete"), incomplete_details=IncompleteDetails(reason))
                return [ResponseIncomplete(self._number(), response)]
            case Failed():
                return self._fail(outcome)

    def _ended(self, status: Status) -> Response:
        # Only a failure finds an item open here.
        output = (*self._closed, *(item.item("incomplete") for item in self._open))
        return replace(self._response, status=status, output=output)

    def _fail(self, outcome: Failed) -> list[Event]:
        response = replace(self._ended("failed"), error=ResponseError("server_error", outcome.message))
        error = ErrorObject(outcome.message, HTTP[outcome.code][1], outcome.param, outcome.code)
        return [
            ResponseFailed(self._number(), response),
            StreamError(self._number(), outcome.code, outcome.message, outcome.param, error),
        ]
