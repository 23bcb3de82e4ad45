"""What the parser says of a model's output, in order; the event machine turns it into contract events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace


class TextDelta(msgspec.Struct, frozen=True, tag="text"):
    """More of the answer's text; never empty."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True, tag="reasoning"):
    """More of the thought's text; never empty."""

    text: str


class CallStart(msgspec.Struct, frozen=True, tag="call_start"):
    """A call of the function `name` begins; what follows until `CallEnd` belongs to it."""

    name: str


class CallArguments(msgspec.Struct, frozen=True, tag="call_arguments"):
    """More of the open call's arguments, as JSON text; never empty."""

    text: str


class CallEnd(msgspec.Struct, frozen=True, tag="call_end"):
    """The open call is complete: its arguments parse and match its schema."""


Extending = TextDelta | ReasoningDelta | CallArguments
"""What can be joined with its neighbour of the same kind."""
Delta = Extending | CallStart | CallEnd


def merged(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """The same deltas, with neighbours that only extend each other joined into one."""
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
