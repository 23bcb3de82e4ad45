"""State machine between a model's output and a client's events: one table of transitions.

A Responses stream has a strict grammar. It starts with two snapshots of the response. Then items follow one
after another; each is opened, extended and closed before the next opens. It ends with exactly one verdict.
Clients enforce this: a client library that meets a second item while one is open, a part that was never added
or an index twice throws the whole answer away.

The parser's deltas know nothing of that. They only say "more text", "more reasoning", "a call starts". This
module decides, for each state and each kind of input, which actions are due and which state follows. `TABLE`
is the whole decision: the composer looks up, performs, moves on, and has no other `if` about order. The
diagram in docs/parsing.md is generated from the same table, and a test compares them.

The states. At most one item is open. So a state names the open item, and whether the client already has an
answer: a message or a call. It must, because agent loops that receive a completed response without either ask
again, up to their turn limit. Hence:

- NEW: nothing was sent.
- STARTED: the snapshots were sent; there is no item yet.
- REASONING: a reasoning item is open and there is no answer yet. Completed here, an empty message follows it.
- MESSAGE: a message is open.
- CALL: a call is open.
- ANSWERED: nothing is open; there is an answer. Only the end of a call leads here, because a text has no end
  of its own: it ends when another kind of delta comes.
- ANSWERED_REASONING: a reasoning item is open and there is an answer already.
- ENDED: the verdict was sent.

The outcomes. Completed closes the open item as `completed`. Incomplete closes it as `incomplete`, with the
partial value; items that were closed before stay as they are, since the client has seen them. Failed closes
nothing: the verdict's response shows the open item as `incomplete`, and the stream's last event is the error.

Not in the table, and so a bug of the caller (`OutOfOrderError`): arguments outside a call; anything but
arguments and its end inside one; a completion while a call is open, since a completed call has whole
arguments, so a model that stops in the middle of one has to end as Incomplete or Failed; anything after an
outcome.

This module does not know how events are built (`open_items`), how they are written (`contract`), or where
deltas come from.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

import msgspec

from b3node.events.outcome import Completed, Failed, Incomplete, Outcome
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, Extending, ReasoningDelta, TextDelta


class OutOfOrderError(RuntimeError):
    """Input that the state does not take, or a fold of an incomplete stream: a bug of the caller."""


class Opening(msgspec.Struct, frozen=True):
    """Beginning of the stream: the first input of a machine, and only once."""


Input = Opening | Delta | Outcome


class ResponseState(enum.Enum):
    """State of a response; the essay above explains each."""

    NEW = "new"
    STARTED = "started"
    REASONING = "reasoning"
    MESSAGE = "message"
    CALL = "call"
    ANSWERED = "answered"
    ANSWERED_REASONING = "answered_reasoning"
    ENDED = "ended"


class Action(enum.Enum):
    """Action of the composer; each yields one event or more."""

    START = "start"
    OPEN_REASONING = "open reasoning"
    OPEN_MESSAGE = "open a message"
    OPEN_CALL = "open a call"
    EXTEND = "extend"
    CLOSE = "close"
    CUT = "cut"
    END = "end"


class Transition(NamedTuple):
    """Actions that are due, in order, and the state that follows."""

    actions: tuple[Action, ...]
    to: ResponseState


_NEW, _STARTED, _REASONING, _MESSAGE = (
    ResponseState.NEW,
    ResponseState.STARTED,
    ResponseState.REASONING,
    ResponseState.MESSAGE,
)
_CALL, _ANSWERED, _ANSWERED_REASONING, _ENDED = (
    ResponseState.CALL,
    ResponseState.ANSWERED,
    ResponseState.ANSWERED_REASONING,
    ResponseState.ENDED,
)

_BEGIN_REASONING = Transition((Action.OPEN_REASONING, Action.EXTEND), _REASONING)
_BEGIN_ANSWERED_REASONING = Transition((Action.OPEN_REASONING, Action.EXTEND), _ANSWERED_REASONING)
_BEGIN_MESSAGE = Transition((Action.OPEN_MESSAGE, Action.EXTEND), _MESSAGE)
_BEGIN_CALL = Transition((Action.OPEN_CALL,), _CALL)
_END = Transition((Action.END,), _ENDED)


def _after(action: Action, then: Transition) -> Transition:
    return Transition((action, *then.actions), then.to)


def _extend(state: ResponseState) -> Transition:
    return Transition((Action.EXTEND,), state)


_EMPTY_MESSAGE: Final = _after(Action.OPEN_MESSAGE, _after(Action.CLOSE, _END))

TABLE: Final = MappingProxyType[ResponseState, dict[type[Input], Transition]](
    {
        _NEW: {Opening: Transition((Action.START,), _STARTED)},
        _STARTED: {
            ReasoningDelta: _BEGIN_REASONING,
            TextDelta: _BEGIN_MESSAGE,
            CallStart: _BEGIN_CALL,
            Completed: _EMPTY_MESSAGE,
            Incomplete: _after(Action.OPEN_MESSAGE, _after(Action.CUT, _END)),
            Failed: _END,
        },
        _REASONING: {
            ReasoningDelta: _extend(_REASONING),
            TextDelta: _after(Action.CLOSE, _BEGIN_MESSAGE),
            CallStart: _after(Action.CLOSE, _BEGIN_CALL),
            Completed: _after(Action.CLOSE, _EMPTY_MESSAGE),
            Incomplete: _after(Action.CUT, _END),
            Failed: _END,
        },
        _MESSAGE: {
            ReasoningDelta: _after(Action.CLOSE, _BEGIN_ANSWERED_REASONING),
            TextDelta: _extend(_MESSAGE),
            CallStart: _after(Action.CLOSE, _BEGIN_CALL),
            Completed: _after(Action.CLOSE, _END),
            Incomplete: _after(Action.CUT, _END),
            Failed: _END,
        },
        _CALL: {
            CallArguments: _extend(_CALL),
            CallEnd: Transition((Action.CLOSE,), _ANSWERED),
            Incomplete: _after(Action.CUT, _END),
            Failed: _END,
        },
        _ANSWERED: {
            ReasoningDelta: _BEGIN_ANSWERED_REASONING,
            TextDelta: _BEGIN_MESSAGE,
            CallStart: _BEGIN_CALL,
            Completed: _END,
            Incomplete: _END,
            Failed: _END,
        },
        _ANSWERED_REASONING: {
            ReasoningDelta: _extend(_ANSWERED_REASONING),
            TextDelta: _after(Action.CLOSE, _BEGIN_MESSAGE),
            CallStart: _after(Action.CLOSE, _BEGIN_CALL),
            Completed: _after(Action.CLOSE, _END),
            Incomplete: _after(Action.CUT, _END),
            Failed: _END,
        },
        _ENDED: {},
    }
)
"""Transition for each state and kind of input; a missing pair is out of order."""

EXTENDING: Final = MappingProxyType[ResponseState, tuple[type[Extending], ...]](
    {
        state: tuple(kind for kind in get_args(Extending) if row.get(kind) == _extend(state))
        for state, row in TABLE.items()
    }
)
"""Kinds of delta that only extend the open item, by state: nearly all deltas are such."""


def transition(state: ResponseState, given: Input) -> Transition:
    """Returns the transition for `given` in `state`.

    Raises:
        OutOfOrderError: the state does not take it.
    """
    found = TABLE[state].get(type(given))
    if found is None:
        raise OutOfOrderError(f"{type(given).__name__} cannot come in state {state.name}")
    return found
