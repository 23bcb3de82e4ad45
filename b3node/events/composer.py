"""Deltas in, contract events out: the machine of `states`, with the response it is about."""

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
from b3node.events.open_items import CallDraft, Draft, MessageDraft, ReasoningDraft
from b3node.events.outcome import Completed, Ending, Failed, Incomplete
from b3node.events.states import EXTENDING, Action, Input, Opening, State, transition
from b3node.parse.deltas import Delta


class Composer:
    """One response, from its first event to its last.

    Every method returns the events that are due now, in the order in which they must be sent; sequence
    numbers count from 0 over all of them. Order: `open` once, `feed` any number of times, `finish` once.
    Anything else raises `OutOfOrder`, which is a bug of the caller, and leaves the composer as it was.

    Args:
        skeleton: the response as `skeleton.begin` makes it: echo of the request, status `in_progress`.
        call_id: a new unguessable id for every call, such as `ids.new_call_id`.
    """

    def __init__(self, skeleton: Response, *, call_id: Callable[[], str]) -> None:
        self._response = skeleton
        self._call_id = call_id
        self._number = itertools.count().__next__
        self._state = State.NEW
        self._extending = EXTENDING[self._state]
        self._closed: list[OutputItem] = []
        self._open: list[Draft] = []  # at most one

    @property
    def state(self) -> State:
        """Where the response is; in `CALL` it cannot be completed, only cut or failed."""
        return self._state

    def open(self) -> list[Event]:
        """The two snapshots that a stream starts with."""
        return self._take(Opening())

    def feed(self, delta: Delta) -> list[Event]:
        """The events of one delta: one for more of the same, several where an item opens or closes."""
        if isinstance(delta, self._extending):  # most of what comes
            return [self._open[0].extend(delta.text)]
        return self._take(delta)

    def finish(self, ending: Ending, *, usage: Usage, completed_at: int, b3os: B3os) -> list[Event]:
        """The events that end the response.

        The last one carries it whole; a failure has one more behind that, the error.

        Args:
            ending: how it ends.
            usage: tokens, up to the last one generated, however it ends.
            completed_at: seconds since 1970.
            b3os: the extension object.
        """
        due = self._move(ending)
        self._response = replace(self._response, usage=usage, completed_at=completed_at, b3os=b3os)
        return self._perform(due, ending)

    def _take(self, given: Input) -> list[Event]:
        return self._perform(self._move(given), given)

    def _move(self, given: Input) -> tuple[Action, ...]:
        actions, self._state = transition(self._state, given)
        self._extending = EXTENDING[self._state]
        return actions

    def _perform(self, actions: tuple[Action, ...], given: Input) -> list[Event]:
        events: list[Event] = []
        for action in actions:
            events += self._events(action, given)
        return events

    def _events(self, action: Action, given: Any) -> list[Event]:
        # Any: the table gives each action only inputs that have what it reads, and a test holds it to that.
        match action:
            case Action.EXTEND:
                return [self._open[0].extend(given.text)]
            case Action.OPEN_REASONING:
                return self._add(ReasoningDraft(self._number, *self._place("rs")))
            case Action.OPEN_MESSAGE:
                return self._add(MessageDraft(self._number, *self._place("msg")))
            case Action.OPEN_CALL:
                return self._add(CallDraft(self._number, *self._place("fc"), self._call_id(), given.name))
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

    def _add(self, draft: Draft) -> list[Event]:
        self._open.append(draft)
        return draft.open()

    def _close(self, status: ItemStatus) -> list[Event]:
        draft = self._open.pop()
        events = draft.close(status)
        self._closed.append(draft.item(status))
        return events

    def _end(self, ending: Ending) -> list[Event]:
        match ending:
            case Completed():
                return [ResponseCompleted(self._number(), self._ended("completed"))]
            case Incomplete(reason):
                response = replace(self._ended("incomplete"), incomplete_details=IncompleteDetails(reason))
                return [ResponseIncomplete(self._number(), response)]
            case Failed():
                return self._fail(ending)

    def _ended(self, status: Status) -> Response:
        # Only a failure finds an item open here.
        output = (*self._closed, *(draft.item("incomplete") for draft in self._open))
        return replace(self._response, status=status, output=output)

    def _fail(self, ending: Failed) -> list[Event]:
        response = replace(self._ended("failed"), error=ResponseError("server_error", ending.message))
        error = ErrorObject(ending.message, HTTP[ending.code][1], ending.param, ending.code)
        return [
            ResponseFailed(self._number(), response),
            StreamError(self._number(), ending.code, ending.message, ending.param, error),
        ]
