"""The one ordered state machine between what a model writes and what a client is told.

A Responses stream is a sentence with a strict grammar. It starts with two snapshots of the response; then
items follow one after another, each opened, extended and closed before the next opens; it ends with exactly
one verdict. Clients enforce this: a helper that meets a second item while one is open, a part that was never
added or an index twice throws the whole answer away.

The parser's deltas know nothing of that. They only say "more text", "more thought", "a call starts". This
module decides, for each state and each thing that can come, which actions are due and which state follows.
`TABLE` is the whole decision: the composer looks up, performs, moves on, and has no other `if` about order.
The diagram in ARCHITECTURE.md is printed from the same table.

The states. At most one item is open, so a state names the open item and the little that must be remembered
besides: whether the client already has an answer, that is, a message or a call. It must, because agent
loops that receive a completed response without either ask again, up to their turn limit. Hence:

- NEW: nothing was sent.
- STARTED: the snapshots were sent; there is no item yet.
- REASONING: a thought is open and there is no answer yet. Completed here, an empty message follows it.
- MESSAGE: a message is open.
- CALL: a call is open.
- ANSWERED: nothing is open; there is an answer. Only the end of a call leads here, because a text has no end
  of its own: it ends when something else comes.
- AFTERTHOUGHT: a thought is open and there is an answer already.
- ENDED: the verdict was sent.

The endings. Completed closes what is open as `completed`. Incomplete closes it as `incomplete`, with the
partial value; items that were closed before stay as they are, since the client has seen them. Failed closes
nothing: the verdict's response shows the open item as `incomplete`, and the stream's last event is the error.

Not in the table, and so a bug of the caller (`OutOfOrder`): arguments outside a call; anything but arguments
and its end inside one; a completion while a call is open, since a completed call has whole arguments, so a
model that stops in the middle of one has to end as Incomplete or Failed; anything after an ending.

Not known here: what the events look like (drafts), how they are written (contract), where deltas come from.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import Final, NamedTuple, get_args

import msgspec

from b3node.events.outcome import Completed, Ending, Failed, Incomplete
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, Extending, ReasoningDelta, TextDelta


class OutOfOrder(RuntimeError):  # noqa: N818 - it names what happened
    """The caller asked for what cannot come now, or folded a stream that is not one: a bug, never a client's fault."""


class Opening(msgspec.Struct, frozen=True):
    """The stream begins; the first thing a machine takes, and only once."""


Input = Opening | Delta | Ending


class State(enum.Enum):
    """Where a response is; the essay above says what each means."""

    NEW = "new"
    STARTED = "started"
    REASONING = "reasoning"
    MESSAGE = "message"
    CALL = "call"
    ANSWERED = "answered"
    AFTERTHOUGHT = "afterthought"
    ENDED = "ended"


class Action(enum.Enum):
    """What a transition makes the composer do; each yields one event or more."""

    START = "start"
    OPEN_REASONING = "open a thought"
    OPEN_MESSAGE = "open a message"
    OPEN_CALL = "open a call"
    EXTEND = "extend"
    CLOSE = "close"
    CUT = "cut"
    END = "end"


class Transition(NamedTuple):
    """What is due, in order, and where it leads."""

    actions: tuple[Action, ...]
    to: State


_NEW, _STARTED, _REASONING, _MESSAGE = State.NEW, State.STARTED, State.REASONING, State.MESSAGE
_CALL, _ANSWERED, _AFTERTHOUGHT, _ENDED = State.CALL, State.ANSWERED, State.AFTERTHOUGHT, State.ENDED

_BEGIN_THOUGHT = Transition((Action.OPEN_REASONING, Action.EXTEND), _REASONING)
_BEGIN_AFTERTHOUGHT = Transition((Action.OPEN_REASONING, Action.EXTEND), _AFTERTHOUGHT)
_BEGIN_MESSAGE = Transition((Action.OPEN_MESSAGE, Action.EXTEND), _MESSAGE)
_BEGIN_CALL = Transition((Action.OPEN_CALL,), _CALL)
_END = Transition((Action.END,), _ENDED)


def _after(action: Action, then: Transition) -> Transition:
    return Transition((action, *then.actions), then.to)


def _extend(state: State) -> Transition:
    return Transition((Action.EXTEND,), state)


_EMPTY_MESSAGE: Final = _after(Action.OPEN_MESSAGE, _after(Action.CLOSE, _END))

TABLE: Final = MappingProxyType[State, dict[type[Input], Transition]](
    {
        _NEW: {Opening: Transition((Action.START,), _STARTED)},
        _STARTED: {
            ReasoningDelta: _BEGIN_THOUGHT,
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
            ReasoningDelta: _after(Action.CLOSE, _BEGIN_AFTERTHOUGHT),
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
            ReasoningDelta: _BEGIN_AFTERTHOUGHT,
            TextDelta: _BEGIN_MESSAGE,
            CallStart: _BEGIN_CALL,
            Completed: _END,
            Incomplete: _END,
            Failed: _END,
        },
        _AFTERTHOUGHT: {
            ReasoningDelta: _extend(_AFTERTHOUGHT),
            TextDelta: _after(Action.CLOSE, _BEGIN_MESSAGE),
            CallStart: _after(Action.CLOSE, _BEGIN_CALL),
            Completed: _after(Action.CLOSE, _END),
            Incomplete: _after(Action.CUT, _END),
            Failed: _END,
        },
        _ENDED: {},
    }
)
"""State and kind of input to what is due; a pair that is missing is out of order."""

EXTENDING: Final = MappingProxyType[State, tuple[type[Extending], ...]](
    {
        state: tuple(kind for kind in get_args(Extending) if row.get(kind) == _extend(state))
        for state, row in TABLE.items()
    }
)
"""What the table lets do no more than extend the open item, by state: most of what comes."""


def transition(state: State, given: Input) -> Transition:
    """What `given` means in `state`.

    Raises:
        OutOfOrder: it cannot come there.
    """
    found = TABLE[state].get(type(given))
    if found is None:
        raise OutOfOrder(f"{type(given).__name__} cannot come in state {state.name}")
    return found
