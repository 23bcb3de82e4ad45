"""The events of a stream as the wire has them: OpenAI's names, no other.

A client's helper stops at an event type that it does not know, so whatever is our own rides inside the
response of the last event. `sequence_number` counts from 0 without a gap; `output_index` is an item's place
in `Response.output`, `content_index` a part's place in its item.
"""

from __future__ import annotations

import msgspec

from b3node.contract.response import ErrorObject, Nothing, OutputItem, Part, Response


class _Event(msgspec.Struct, frozen=True, tag_field="type"):
    sequence_number: int


class ResponseCreated(_Event, frozen=True, tag="response.created"):
    """The first event: the request's echo, nothing produced yet."""

    response: Response


class ResponseInProgress(_Event, frozen=True, tag="response.in_progress"):
    """The second event: the same snapshot."""

    response: Response


class OutputItemAdded(_Event, frozen=True, tag="response.output_item.added"):
    """An item opens, with nothing in it; every earlier one is closed."""

    output_index: int
    item: OutputItem


class OutputItemDone(_Event, frozen=True, tag="response.output_item.done"):
    """The open item is closed; this is what it stays."""

    output_index: int
    item: OutputItem


class _PartEvent(_Event, frozen=True):
    item_id: str
    output_index: int
    content_index: int


class ContentPartAdded(_PartEvent, frozen=True, tag="response.content_part.added"):
    """The part of a message or a thought opens, with empty text."""

    part: Part


class ContentPartDone(_PartEvent, frozen=True, tag="response.content_part.done"):
    """The part with its whole text."""

    part: Part


class OutputTextDelta(_PartEvent, frozen=True, tag="response.output_text.delta"):
    """More of a message's text."""

    delta: str
    logprobs: Nothing = ()


class OutputTextDone(_PartEvent, frozen=True, tag="response.output_text.done"):
    """A message's whole text."""

    text: str
    logprobs: Nothing = ()


class ReasoningTextDelta(_PartEvent, frozen=True, tag="response.reasoning_text.delta"):
    """More of a thought's text."""

    delta: str


class ReasoningTextDone(_PartEvent, frozen=True, tag="response.reasoning_text.done"):
    """A thought's whole text."""

    text: str


class FunctionCallArgumentsDelta(_Event, frozen=True, tag="response.function_call_arguments.delta"):
    """More of a call's arguments."""

    item_id: str
    output_index: int
    delta: str


class FunctionCallArgumentsDone(_Event, frozen=True, tag="response.function_call_arguments.done"):
    """A call's whole arguments. OpenAI's document requires `name`; its SDKs do without."""

    item_id: str
    output_index: int
    arguments: str
    name: str


class ResponseCompleted(_Event, frozen=True, tag="response.completed"):
    """The model ended its answer."""

    response: Response


class ResponseIncomplete(_Event, frozen=True, tag="response.incomplete"):
    """The answer was cut by `max_output_tokens` or by the end of the context."""

    response: Response


class ResponseFailed(_Event, frozen=True, tag="response.failed"):
    """The answer broke off; `StreamError` follows, and nothing after it."""

    response: Response


class StreamError(_Event, frozen=True, tag="error"):
    """Why a stream failed, in both shapes that clients look for.

    OpenAI's document and SDK types have the flat fields; OpenAI's servers and Open Responses nest them, and
    the Python SDK raises only for the nested one.
    """

    code: str
    message: str
    param: str | None
    error: ErrorObject


Event = (
    ResponseCreated
    | ResponseInProgress
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | OutputTextDone
    | ReasoningTextDelta
    | ReasoningTextDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
    | ResponseCompleted
    | ResponseIncomplete
    | ResponseFailed
    | StreamError
)
