"""What the parser says of a model's output, in order; the event machine turns it into contract events."""

from __future__ import annotations

import msgspec


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


Delta = TextDelta | ReasoningDelta | CallStart | CallArguments | CallEnd
