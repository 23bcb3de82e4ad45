"""What a request says once it is decoded: frozen values, every default filled in, no wire spelling left.

`decode` makes these and is the only place that knows JSON; everything after it trusts them. The order of
`input` is kept, so the position of an item in `Request.input` is its index in the wire's `input` (a plain
string is one user message), and error paths can be built from it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["user", "assistant", "system", "developer"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Verbosity = Literal["low", "medium", "high"]


class TextPart(msgspec.Struct, frozen=True, tag=True):
    """Text of any part that carries text: `input_text`, `output_text`, or a plain string."""

    text: str


class RefusalPart(msgspec.Struct, frozen=True, tag=True):
    """An assistant's refusal, replayed as history."""

    refusal: str


class ImagePart(msgspec.Struct, frozen=True, tag=True):
    """An image by `https://` URL or base64 `data:` URL; not yet fetched or decoded."""

    image_url: str


Part = TextPart | RefusalPart | ImagePart


class Message(msgspec.Struct, frozen=True, tag=True):
    """One message item; `content` may be empty."""

    role: Role
    content: tuple[Part, ...]


class FunctionCall(msgspec.Struct, frozen=True, tag=True):
    """A call of an earlier turn; `arguments` is the client's text, whatever it is."""

    call_id: str
    name: str
    arguments: str


class FunctionCallOutput(msgspec.Struct, frozen=True, tag=True):
    """A function's result for the call with the same `call_id`."""

    call_id: str
    output: tuple[TextPart | ImagePart, ...]


class Reasoning(msgspec.Struct, frozen=True, tag=True):
    """An earlier turn's thought: the texts of `content`, else of `summary`, joined; may be empty."""

    text: str


Item = Message | FunctionCall | FunctionCallOutput | Reasoning


class FunctionTool(msgspec.Struct, frozen=True):
    """One declared function. `parameters` is the client's JSON Schema object, or None for no arguments."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None
    strict: bool | None = None


class ToolChoice(msgspec.Struct, frozen=True):
    """`mode` "function" forces the function `name`; the other modes have no name."""

    mode: Literal["none", "auto", "required", "function"] = "auto"
    name: str | None = None


class TextFormat(msgspec.Struct, frozen=True):
    """How the answer's text is constrained; `name` and `schema` belong to "json_schema" alone."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    schema: dict[str, object] | None = None
    description: str | None = None
    strict: bool | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request. None means "unset" and nothing else."""

    model: str
    input: tuple[Item, ...]
    instructions: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: tuple[FunctionTool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    text_format: TextFormat = TextFormat()
    verbosity: Verbosity | None = None
    effort: Effort | None = None
    summary: str | None = None
    stream: bool = False
    metadata: dict[str, str] = {}
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    service_tier: str | None = None
