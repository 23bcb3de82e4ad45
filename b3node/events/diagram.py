"""The picture of the state machine, printed from its table so that the two cannot drift."""

from __future__ import annotations

from typing import Final

from b3node.events.outcome import Completed, Failed, Incomplete
from b3node.events.states import TABLE, Action, Input, Opening, State
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, ReasoningDelta, TextDelta

_WORDS: Final[dict[type[Input], str]] = {
    Opening: "opening",
    TextDelta: "text",
    ReasoningDelta: "thought",
    CallStart: "call",
    CallArguments: "arguments",
    CallEnd: "end of call",
    Completed: "completed",
    Incomplete: "incomplete",
    Failed: "failed",
}


def mermaid() -> str:
    """The table as a Mermaid `stateDiagram-v2`: one arrow a transition, labelled with what comes / what is done."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.NEW.name}"]
    for state, row in TABLE.items():
        lines += (_arrow(state, given, due.actions, due.to) for given, due in row.items())
        if not row:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines) + "\n"


def _arrow(state: State, given: type[Input], actions: tuple[Action, ...], to: State) -> str:
    done = ", ".join(action.value for action in actions)
    return f"    {state.name} --> {to.name}: {_WORDS[given]} / {done}"
