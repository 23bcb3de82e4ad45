"""Events of a stream as clients get them: OpenAI's types and no other.

Clients' helpers stop at an event type that they do not know, so our own data is in the response of the last
event.
"""

from __future__ import annotations

import msgspec

from b3node.contract.response import EmptyArray, ErrorObject, OutputItem, OutputPart, Response


class _NumberedEvent(msgspec.Struct, frozen=True, tag_field="type"):
    sequence_number: int
    """Counts the events of a stream from 0 without a gap."""


class ResponseCreated(_NumberedEvent, frozen=True, tag="response.created"):
    """The first event: the request's echo, nothing generated yet."""

    response: Response


class ResponseInProgress(_NumberedEvent, frozen=True, tag="response.in_progress"):
    """The second event: the same snapshot."""

    response: Response


class OutputItemAdded(_NumberedEvent, frozen=True, tag="response.output_item.added"):
    """An item opens, with nothing in it; every earlier one is closed."""

    output_index: int
    """Index of the item in `Response.output`; the same in all events."""

    item: OutputItem


class OutputItemDone(_NumberedEvent, frozen=True, tag="response.output_item.done"):
    """The open item is closed; it does not change any more."""

    output_index: int
    item: OutputItem


class _PartEvent(_NumberedEvent, frozen=True):
    item_id: str
    output_index: int
    content_index: int
    """Index of the part in its item."""


class ContentPartAdded(_PartEvent, frozen=True, tag="response.content_part.added"):
    """The part of a message or of reasoning opens, with empty text."""

    part: OutputPart


class ContentPartDone(_PartEvent, frozen=True, tag="response.content_part.done"):
    """The part with its whole text."""

    part: OutputPart


class OutputTextDelta(_PartEvent, frozen=True, tag="response.output_text.delta"):
    """More of a message's text."""

    delta: str
    logprobs: EmptyArray = ()


class OutputTextDone(_PartEvent, frozen=True, tag="response.output_text.done"):
    """A message's whole text."""

    text: str
    logprobs: EmptyArray = ()


class ReasoningTextDelta(_PartEvent, frozen=True, tag="response.reasoning_text.delta"):
    """More of the text of reasoning."""

    delta: str


class ReasoningTextDone(_PartEvent, frozen=True, tag="response.reasoning_text.done"):
    """The whole text of reasoning."""

    text: str


class FunctionCallArgumentsDelta(_NumberedEvent, frozen=True, tag="response.function_call_arguments.delta"):
    """More of a call's arguments."""

    item_id: str
    output_index: int
    delta: str


class FunctionCallArgumentsDone(_NumberedEvent, frozen=True, tag="response.function_call_arguments.done"):
    """A call's whole arguments. OpenAI's document requires `name`; its SDKs do not."""

    item_id: str
    output_index: int
    arguments: str
    name: str


class ResponseCompleted(_NumberedEvent, frozen=True, tag="response.completed"):
    """The model ended its answer."""

    response: Response


class ResponseIncomplete(_NumberedEvent, frozen=True, tag="response.incomplete"):
    """The answer was cut by `max_output_tokens` or by the end of the context."""

    response: Response


class ResponseFailed(_NumberedEvent, frozen=True, tag="response.failed"):
    """The answer failed; `StreamError` follows as the last event."""

    response: Response


class StreamError(_NumberedEvent, frozen=True, tag="error"):
    """The error that ended a stream, in both shapes that clients look for.

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
