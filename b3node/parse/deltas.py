"""Deltas: the parser's output, in order, from which the event machine makes contract events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """More of the answer's text; never empty."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning"):
    """More of the reasoning's text; never empty."""

    text: str


class CallStart(msgspec.Struct, frozen=True, tag="call_start"):
    """A call of the function `name` begins; the deltas up to `CallEnd` belong to it."""

    name: str


class CallArguments(msgspec.Struct, frozen=True, tag="call_arguments"):
    """More of the open call's arguments, as JSON text; never empty."""

    text: str


class CallEnd(msgspec.Struct, frozen=True, tag="call_end"):
    """The open call is complete: its arguments parse and match its schema."""


Extending = TextDelta | ReasoningDelta | CallArguments
"""Deltas that can be joined with a neighbour of the same kind."""
Delta = Extending | CallStart | CallEnd


def merged(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """Yields the same deltas, with extending neighbours of one kind joined."""
    last: Delta | None = None
    for delta in deltas:
        if isinstance(delta, Extending) and type(last) is type(delta):
            last = replace(last, text=last.text + delta.text)
            continue
        if last is not None:
            yield last
        last = delta
    if last is not None:
        yield last
