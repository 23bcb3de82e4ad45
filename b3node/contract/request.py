"""Values of a decoded request: frozen, with every default filled in and no wire spelling left.

`decode` makes these and is the only place that knows their JSON; everything after it trusts them. The order
of `input` is kept: the position of an item in `Request.input` is its index in the wire's `input` (a plain
string is one user message), so error paths can be built from it.

A numeric parameter is defined by its field of `Request` alone: `parameters` makes its row from the
annotation. Every other parameter has a row there, and its field here.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

MAX_OUTPUT_TOKENS: Final = 2**31 - 1
"""Tokens of one answer: counts are 32-bit in the engine."""

Role = Literal["user", "assistant", "system", "developer"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Verbosity = Literal["low", "medium", "high"]
Summary = Literal["auto", "concise", "detailed"]
FormatType = Literal["text", "json_object", "json_schema"]


class Bounds(msgspec.Struct, frozen=True):
    """Definition of a numeric parameter, in the annotation of its field."""

    least: float
    """Smallest value."""

    most: float
    """Largest value."""

    doc: str
    """One line for readers; it is not published."""


class TextPart(msgspec.Struct, frozen=True, tag=True):
    """Text of any part that has text: `input_text`, `output_text`, or a plain string."""

    text: str


class RefusalPart(msgspec.Struct, frozen=True, tag=True):
    """An assistant's refusal, replayed as history."""

    refusal: str


class ImagePart(msgspec.Struct, frozen=True, tag=True):
    """An image that is neither fetched nor decoded yet."""

    image_url: str
    """An `https://` URL or a base64 `data:` URL."""


Part = TextPart | RefusalPart | ImagePart


class Message(msgspec.Struct, frozen=True, tag=True):
    """One message item."""

    role: Role
    content: tuple[Part, ...]
    """May be empty."""


class FunctionCall(msgspec.Struct, frozen=True, tag=True):
    """A call of an earlier turn."""

    call_id: str
    name: str
    arguments: str
    """The client's text; it need not be JSON."""


class FunctionCallOutput(msgspec.Struct, frozen=True, tag=True):
    """A function's result."""

    call_id: str
    """That of the call that it belongs to."""

    output: tuple[TextPart | ImagePart, ...]


class Reasoning(msgspec.Struct, frozen=True, tag=True):
    """The reasoning of an earlier turn."""

    text: str
    """The texts of `content`, else of `summary`, joined; may be empty."""


Item = Message | FunctionCall | FunctionCallOutput | Reasoning


class FunctionTool(msgspec.Struct, frozen=True):
    """One declared function."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None
    """The client's JSON Schema object; None is a function without arguments."""

    strict: bool | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    """The choice among the declared functions."""

    mode: Literal["none", "auto", "required", "function"] = "auto"
    """In the mode "function" one function is forced."""

    name: str | None = None
    """The forced function; None in other modes."""


class TextFormat(msgspec.Struct, frozen=True):
    """The constraint on the answer's text. All fields but `type` belong to "json_schema" alone."""

    type: FormatType = "text"
    name: str | None = None
    schema: dict[str, object] | None = None
    description: str | None = None
    strict: bool | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request. None means "unset" and nothing else."""

    model: str
    input: tuple[Item, ...]
    instructions: str | None = None
    max_output_tokens: Annotated[
        int | None, Bounds(1, MAX_OUTPUT_TOKENS, "Tokens of the answer at most, reasoning included.")
    ] = None
    temperature: Annotated[float | None, Bounds(0, 2, "Sampling temperature; 0 is greedy.")] = None
    top_p: Annotated[float | None, Bounds(0, 1, "Probability mass of nucleus sampling.")] = None
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    text_format: TextFormat = TextFormat()
    """`text.format` on the wire."""

    verbosity: Verbosity | None = None
    """`text.verbosity` on the wire."""

    effort: Effort | None = None
    """`reasoning.effort` on the wire."""

    summary: Summary | None = None
    """`reasoning.summary` on the wire, or its older name `reasoning.generate_summary`."""

    stream: bool = False
    metadata: dict[str, str] = {}
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
