"""Conversations for chat templates, normalised from a request's items.

Agents send histories that no template was written for: system messages in the middle, reasoning, an answer
and three calls as five items in a row, outputs in another order than the calls, calls without outputs.
`normalise` turns any of them into one shape (contract decisions, "Requests"):

- one system text: `instructions`, then every system and developer text from any place;
- assistant-side items that follow each other are one assistant turn, so two assistant turns always have
  something between them;
- a turn that calls is followed at once by one result for each call, in the order of the calls, also if other
  items stood between them in the request; a call without an output gets `NO_RESULT`;
- images in outputs stand in a user turn after the results of their round;
- calls are numbered by their place (`call00007`): a client's ids only pair outputs with calls, may repeat,
  and some templates refuse ids that are not nine letters or digits.

The decoder has checked which output belongs to which call. The capabilities of templates are not known here:
`adapt` changes a conversation for a template that cannot take it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final, Literal

import msgspec

from b3node.contract.request import (
    FunctionCall,
    FunctionCallOutput,
    FunctionTool,
    ImagePart,
    Item,
    Message,
    Part,
    Reasoning,
    RefusalPart,
    Request,
    TextPart,
)
from b3node.contract.strict_json import MAX_LEVELS

NO_RESULT: Final = "no result"
"""The result of a call without an output."""

PARAGRAPH: Final = "\n\n"
"""Between texts that were separate messages, and between system texts."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call in an assistant turn."""

    id: str
    """The call's place as `call00007`."""
    name: str
    """The function's name."""
    arguments: dict[str, object] | str
    """A JSON object, or text that is none, as the client sent it."""


class UserTurn(msgspec.Struct, frozen=True, tag=True):
    """A user's text and images, in order; text parts that follow each other are one."""

    content: tuple[TextPart | ImagePart, ...]
    """The parts; never empty."""


class AssistantTurn(msgspec.Struct, frozen=True, tag=True):
    """One turn of the model; each field may be empty."""

    text: str = ""
    """The answer."""
    reasoning: str = ""
    """The thinking before it."""
    calls: tuple[ToolCall, ...] = ()
    """The calls of the turn, in order."""
    written_calls: str = ""
    """Calls that stand after the text as a part of it, in the alphabets of `provenance`."""


class ToolTurn(msgspec.Struct, frozen=True, tag=True):
    """The result of the call `call_id` of the function `name`."""

    call_id: str
    """The id of the call."""
    name: str
    """The function's name."""
    text: str
    """The output's texts, or `NO_RESULT`."""


Turn = UserTurn | AssistantTurn | ToolTurn


ThinkingPlacement = Literal["field", "chunks", "blocks"]
"""Where a template looks for a turn's thinking: in a field of its own, or in a part of the content, which
then is a list of typed parts (`chunks`) or an object with one (`blocks`)."""


class Conversation(msgspec.Struct, frozen=True):
    """A conversation for a template."""

    system: str
    """The system text; may be empty."""
    turns: tuple[Turn, ...]
    """The turns; never start with a result."""
    tools: tuple[FunctionTool, ...] = ()
    """The declared functions."""
    thinking_placement: ThinkingPlacement = "field"
    """The form in which the template gets the turns' reasoning."""


def normalise(request: Request) -> Conversation:
    """Returns the conversation of a decoded request; see the module's essay for the rules."""
    systems = [request.instructions or "", *_system_texts(request.input)]
    system = PARAGRAPH.join(text for text in systems if text)
    return Conversation(system, tuple(_turns(request.input)), request.tools)


def joined_text(parts: tuple[Part, ...]) -> str:
    """Returns the texts of `parts`, a line feed between any two; refusals are text, images are none."""
    texts = (part for part in parts if not isinstance(part, ImagePart))
    return "\n".join(part.refusal if isinstance(part, RefusalPart) else part.text for part in texts)


def _system_texts(items: tuple[Item, ...]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Message) and item.role in ("system", "developer"):
            yield joined_text(item.content)


def _turns(items: tuple[Item, ...]) -> Iterator[Turn]:
    outputs = _outputs_by_call(items)
    run: list[tuple[int, Item]] = []
    for index, item in enumerate(items):
        side = _side(item)
        if side == "assistant":
            run.append((index, item))
        elif side == "user" or any(outputs.get(place) is item for place, _ in run):
            yield from _assistant_side(run, outputs)
            run = []
        if isinstance(item, Message) and side == "user":
            yield UserTurn(_merged(item.content))
    yield from _assistant_side(run, outputs)


def _side(item: Item) -> Literal["system", "user", "assistant", "output"]:
    if isinstance(item, FunctionCallOutput):
        return "output"  # written with its call; ends a run only if its call is in it
    if not isinstance(item, Message):
        return "assistant"
    return "system" if item.role == "developer" else item.role


def _outputs_by_call(items: tuple[Item, ...]) -> dict[int, FunctionCallOutput]:
    """Returns each call's output by the call's position: the latest earlier call with the output's id."""
    latest: dict[str, int] = {}
    outputs: dict[int, FunctionCallOutput] = {}
    for index, item in enumerate(items):
        if isinstance(item, FunctionCall):
            latest[item.call_id] = index
        elif isinstance(item, FunctionCallOutput) and item.call_id in latest:
            outputs[latest[item.call_id]] = item
    return outputs


def _assistant_side(run: list[tuple[int, Item]], outputs: dict[int, FunctionCallOutput]) -> Iterator[Turn]:
    """Yields one assistant turn, its calls' results, and the images among those; nothing if it is empty."""
    reasoning = PARAGRAPH.join(item.text for _, item in run if isinstance(item, Reasoning) and item.text)
    messages = [joined_text(item.content) for _, item in run if isinstance(item, Message)]
    calls = [
        (_call(item, index), outputs.get(index)) for index, item in run if isinstance(item, FunctionCall)
    ]
    if not (reasoning or messages or calls):
        return
    text = PARAGRAPH.join(message for message in messages if message)
    yield AssistantTurn(text, reasoning, tuple(call for call, _ in calls))
    for call, output in calls:
        yield ToolTurn(call.id, call.name, joined_text(output.output) if output else NO_RESULT)
    images = [part for _, output in calls if output for part in output.output if isinstance(part, ImagePart)]
    if images:
        yield UserTurn(tuple(images))


def _call(item: FunctionCall, index: int) -> ToolCall:
    return ToolCall(f"call{index:05}", item.name, _parsed(item.arguments))


def _parsed(arguments: str) -> dict[str, object] | str:
    """Returns arguments as a mapping if they are a JSON object, `{}` if they are empty, else as they came."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    return value if isinstance(value, dict) and _depth_within(value, MAX_LEVELS) else arguments


def _depth_within(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return True
    return levels > 0 and all(_depth_within(element, levels - 1) for element in value)


def _merged(parts: tuple[Part, ...]) -> tuple[TextPart | ImagePart, ...]:
    """Returns a user's parts with neighbouring texts joined; never empty."""
    merged: list[TextPart | ImagePart] = []
    for is_image, run in groupby(parts, key=lambda part: isinstance(part, ImagePart)):
        if is_image:
            merged.extend(part for part in run if isinstance(part, ImagePart))
        else:
            merged.append(TextPart(joined_text(tuple(run))))
    return tuple(merged) or (TextPart(""),)
