"""Streams for review by a person: one of each kind, as deltas and an outcome."""

from __future__ import annotations

from b3node.contract.encode import sse_frame
from b3node.events.outcome import Completed, Incomplete, Outcome
from b3node.parse.deltas import CallArguments, CallStart, Delta
from tests.events.streams import FAILURE, call, compose, reasoning, text

TRANSCRIPTS: dict[str, tuple[list[Delta], Outcome]] = {
    "text": (text("Hello", ", ", "world."), Completed()),
    "reasoning_and_text": (reasoning("The user ", "greets.") + text("Hello."), Completed()),
    "call": (call("get_weather", '{"city"', ':"Eugene"}'), Completed()),
    "parallel_calls": (
        call("get_weather", '{"city":"Eugene"}') + call("get_weather", '{"city":', '"Bonn"}'),
        Completed(),
    ),
    "text_then_call": (text("Let me look.") + call("get_weather", '{"city":"Eugene"}'), Completed()),
    "empty": ([], Completed()),
    "cut_in_text": (text("It was a dark and"), Incomplete()),
    "cut_in_call": (
        [*text("Let me look."), CallStart("get_weather"), CallArguments('{"city":"Eu')],
        Incomplete(),
    ),
    "failure": (reasoning("The user greets.") + text("Good"), FAILURE),
}


def transcript(name: str) -> bytes:
    """Returns all bytes of a stream."""
    return b"".join(map(sse_frame, compose(*TRANSCRIPTS[name])))
