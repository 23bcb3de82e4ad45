"""The Response object as clients get it: frozen values whose declared order is the order of their keys.

The top level follows the order of OpenAI's own bodies (`id`, `object`, `created_at`, `status`, then the
alphabet, `metadata` last); items follow the contract's example. A field that the contract fixes is a constant
with a one-value type, so the published schema and the encoder agree. `b3os` is unset, and therefore absent,
in the snapshots of a stream; everywhere else null is written, because strict readers (OpenAI's OpenAPI
document, the Open Responses schema) require the key.

Docstrings of the types are descriptions in the OpenAPI document; those of fields are not, so a type's
explains its fields too.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from b3node.contract.request import Effort, Verbosity

Status = Literal["in_progress", "completed", "incomplete", "failed"]
"""States of a response; an item is never `failed`."""

ItemStatus = Literal["in_progress", "completed", "incomplete"]

EmptyArray = tuple[()]
"""Array that readers require and that is always empty here: annotations, logprobs, summaries."""

EchoedSchema = dict[str, Any]
"""A client's JSON Schema, echoed as it came. `Any`, because msgspec publishes no schema for `object`."""


class OutputText(msgspec.Struct, frozen=True, tag_field="type", tag="output_text"):
    """The text part of a message."""

    text: str
    annotations: EmptyArray = ()
    logprobs: EmptyArray = ()


class ReasoningText(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    """The text part of reasoning."""

    text: str


OutputPart = OutputText | ReasoningText


class OutputMessage(msgspec.Struct, frozen=True, tag_field="type", tag="message"):
    """The model's answer to the user. `content` is empty when the item opens, one part afterwards."""

    id: str
    status: ItemStatus
    role: Literal["assistant"] = "assistant"
    content: tuple[OutputText, ...] = ()


class OutputReasoning(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    """The model's reasoning. `content` is the model's raw text; there is never a summary."""

    id: str
    status: ItemStatus
    summary: EmptyArray = ()
    content: tuple[ReasoningText, ...] = ()


class OutputFunctionCall(msgspec.Struct, frozen=True, tag_field="type", tag="function_call"):
    """A call of a declared function.

    `arguments` is JSON text: a whole object that matches the function's schema when the status is
    `completed`, the text so far when it is `incomplete`, empty when the item opens.
    """

    id: str
    status: ItemStatus
    call_id: str
    name: str
    arguments: str = ""


OutputItem = OutputMessage | OutputReasoning | OutputFunctionCall


class InputTokensDetails(msgspec.Struct, frozen=True):
    """`cached_tokens` were served by the prefix cache; writing to it is never billed."""

    cached_tokens: int
    cache_write_tokens: Literal[0] = 0


class OutputTokensDetails(msgspec.Struct, frozen=True):
    """`reasoning_tokens` is the part of the output that is reasoning."""

    reasoning_tokens: int


class Usage(msgspec.Struct, frozen=True):
    """Counts of tokens; cached ones are part of the input, reasoning is part of the output."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int

    @classmethod
    def of(cls, *, input_tokens: int, cached_tokens: int, output_tokens: int, reasoning_tokens: int) -> Usage:
        """Returns the usage with its total.

        Raises:
            ValueError: a part is larger than its whole, or a count is negative.
        """
        if not (0 <= cached_tokens <= input_tokens and 0 <= reasoning_tokens <= output_tokens):
            raise ValueError(
                f"token counts contradict each other: {cached_tokens} cached of {input_tokens} in, "
                f"{reasoning_tokens} reasoning of {output_tokens} out"
            )
        return cls(
            input_tokens=input_tokens,
            input_tokens_details=InputTokensDetails(cached_tokens),
            output_tokens=output_tokens,
            output_tokens_details=OutputTokensDetails(reasoning_tokens),
            total_tokens=input_tokens + output_tokens,
        )


class IncompleteDetails(msgspec.Struct, frozen=True):
    """The reason of an incomplete response. The end of the context counts as this limit too."""

    reason: Literal["max_output_tokens"]


class ResponseError(msgspec.Struct, frozen=True):
    """The error of a failed response. Its codes are OpenAI's closed list; our own is in the `error` event."""

    code: Literal["server_error"]
    message: str


class FunctionToolEcho(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """A declared function, every key written."""

    name: str
    description: str | None
    parameters: EchoedSchema | None
    strict: bool | None


class FunctionToolChoice(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """The function that the request forced."""

    name: str


class PlainFormat(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Free text."""


class JsonObjectFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchemaFormat(msgspec.Struct, frozen=True, tag_field="type", tag="json_schema"):
    """JSON that matches `schema`. OpenAI's document knows no null description, so it is left out."""

    name: str
    schema: EchoedSchema
    strict: bool
    description: str | UnsetType = UNSET


class TextEcho(msgspec.Struct, frozen=True):
    """The format of the answer's text."""

    format: PlainFormat | JsonObjectFormat | JsonSchemaFormat
    verbosity: Verbosity


class ReasoningEcho(msgspec.Struct, frozen=True):
    """The wanted effort and summary of reasoning; null where the request has none."""

    effort: Effort | None
    summary: str | None


class Timing(msgspec.Struct, frozen=True):
    """Server-side milliseconds from the request's head: `ttft_ms` on streams, `model_ms` without."""

    total_ms: float
    ttft_ms: float | UnsetType = UNSET
    model_ms: float | UnsetType = UNSET


class B3os(msgspec.Struct, frozen=True):
    """The extension object: the node that served the response, and its times."""

    node: str
    timing: Timing
    route: Literal["local"] = "local"


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response at any moment of its life; times are seconds since 1970.

    `completed_at` and `usage` are null while the status is `in_progress`, and set from then on.
    """

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Status
    background: Literal[False] = False
    completed_at: int | None = None
    error: ResponseError | None = None
    frequency_penalty: float = 0.0
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: None = None
    model: str
    output: tuple[OutputItem, ...] = ()
    parallel_tool_calls: bool
    presence_penalty: float = 0.0
    previous_response_id: None = None
    prompt_cache_key: str | None
    reasoning: ReasoningEcho
    safety_identifier: str | None
    service_tier: Literal["default"] = "default"
    store: Literal[False] = False
    temperature: float
    text: TextEcho
    tool_choice: Literal["none", "auto", "required"] | FunctionToolChoice
    tools: tuple[FunctionToolEcho, ...]
    top_logprobs: Literal[0] = 0
    top_p: float
    truncation: Literal["disabled"] = "disabled"
    usage: Usage | None = None
    user: str | None
    metadata: dict[str, str]
    b3os: B3os | UnsetType = UNSET


class ErrorObject(msgspec.Struct, frozen=True):
    """The inside of an error body, and of the last event of a failed stream."""

    message: str
    type: str
    param: str | None
    code: str


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: ErrorObject
