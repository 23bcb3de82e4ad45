"""Generator of the state machine's diagram in docs/parsing.md, from its table."""

from __future__ import annotations

from typing import Final

from b3node.events.outcome import Completed, Failed, Incomplete
from b3node.events.states import TABLE, Action, Input, Opening, ResponseState
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, ReasoningDelta, TextDelta

_WORDS: Final[dict[type[Input], str]] = {
    Opening: "opening",
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    CallStart: "call",
    CallArguments: "arguments",
    CallEnd: "end of call",
    Completed: "completed",
    Incomplete: "incomplete",
    Failed: "failed",
}


def mermaid() -> str:
    """Returns the table as a Mermaid `stateDiagram-v2`: one arrow a transition, labelled input / actions."""
    lines = ["stateDiagram-v2", f"    [*] --> {ResponseState.NEW.name}"]
    for state, row in TABLE.items():
        lines += (_arrow(state, given, due.actions, due.to) for given, due in row.items())
        if not row:
            lines.append(f"    {state.name} --> [*]")
    return "\n".join(lines) + "\n"


def _arrow(state: ResponseState, given: type[Input], actions: tuple[Action, ...], to: ResponseState) -> str:
    done = ", ".join(action.value for action in actions)
    return f"    {state.name} --> {to.name}: {_WORDS[given]} / {done}"
