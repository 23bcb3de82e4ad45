"""Reads the conversation in `input`, item by item, and checks the rules between items.

Types, enums and required fields are the contract page's; null is unset; fields that it does not name are
ignored. Items and parts of kinds that the node refuses by design were refused before (see `unsupported`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar, get_args

from b3node.contract.fields import Fields, invalid, mistyped, needed
from b3node.contract.image import check_image_count, check_image_url
from b3node.contract.path import element, member
from b3node.contract.request import (
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    Part,
    Reasoning,
    RefusalPart,
    Role,
    TextPart,
)

MAX_ITEMS: Final = 1024
"""Items in one request: a bound of this node; the contract page has none."""

MAX_PARTS: Final = 256
"""Parts in one item (the same)."""

ITEM_TYPES: Final = ("message", "function_call", "function_call_output", "reasoning")
"""Types of items that the node accepts; an item without `type` is a message."""

REASONING_PARTS: Final = ("reasoning_text", "summary_text")
"""Types of the parts of a reasoning item."""

DETAILS: Final = ("auto", "low", "high", "original")
"""Values of an image's `detail`, which is ignored."""

_ROLES: Final[tuple[Role, ...]] = get_args(Role)

P = TypeVar("P")


def read_input(request: Fields) -> tuple[Item, ...]:
    """Reads the items of `input`; a string is one user message. Refuses the first malformed item."""
    value = needed(request.get("input"), request, "input")
    if isinstance(value, str):
        return (Message("user", (TextPart(value),)),)
    if not isinstance(value, list):
        raise mistyped(request.at("input"), "a string or an array of items", value)
    items = request.objects("input", most=MAX_ITEMS) or []
    return tuple(_read_item(item) for item in items)


def _read_item(item: Fields) -> Item:
    kind = item.choice("type", ITEM_TYPES) or "message"
    for name in ("id", "status"):
        item.text(name)
    return _READERS[kind](item)


def _message(item: Fields) -> Message:
    role: Role = needed(item.choice("role", _ROLES), item, "role")
    item.text("phase")
    return Message(role, _read_parts(item, "content", _PART_READERS[role]))


def _function_call(item: Fields) -> FunctionCall:
    item.mapping("caller")
    item.text("namespace")
    item.flag("async")
    return FunctionCall(
        needed(item.text("call_id", least=1), item, "call_id"),
        needed(item.text("name", least=1), item, "name"),
        needed(item.text("arguments"), item, "arguments"),
    )


def _function_call_output(item: Fields) -> FunctionCallOutput:
    item.mapping("caller")
    item.text("name")
    item.text("namespace")
    call_id = needed(item.text("call_id"), item, "call_id")
    return FunctionCallOutput(call_id, _read_parts(item, "output", _user_part))


def _reasoning(item: Fields) -> Reasoning:
    item.text("encrypted_content")
    summary, content = _read_reasoning_text(item, "summary"), _read_reasoning_text(item, "content")
    return Reasoning(content or summary)


def _read_reasoning_text(item: Fields, name: str) -> str:
    """Reads the texts of a reasoning item's member and joins them, one paragraph each."""
    parts = item.objects(name, most=MAX_PARTS) or []
    for part in parts:
        needed(part.choice("type", REASONING_PARTS), part, "type")
    return "\n\n".join(needed(part.text("text"), part, "text") for part in parts)


_READERS: Final[dict[str, Callable[[Fields], Item]]] = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_call_output,
    "reasoning": _reasoning,
}


# -------------------------------------------------------------------------------------------------- parts


def _read_parts(item: Fields, name: str, read: Callable[[Fields], P]) -> tuple[P | TextPart, ...]:
    """Reads the parts of an item's member, each with `read`; a string is one text part."""
    value = needed(item.get(name), item, name)
    if isinstance(value, str):
        return (TextPart(value),)
    if not isinstance(value, list):
        raise mistyped(item.at(name), "a string or an array of parts", value)
    return tuple(read(part) for part in item.objects(name, most=MAX_PARTS) or [])


def _user_part(part: Fields) -> TextPart | ImagePart:
    kind = needed(part.choice("type", ("input_text", "input_image")), part, "type")
    return _image(part) if kind == "input_image" else _input_text(part)


def _system_part(part: Fields) -> TextPart:
    needed(part.choice("type", ("input_text",)), part, "type")
    return _input_text(part)


def _assistant_part(part: Fields) -> TextPart | RefusalPart:
    kind = needed(part.choice("type", ("output_text", "refusal")), part, "type")
    if kind == "refusal":
        return RefusalPart(needed(part.text("refusal"), part, "refusal"))
    part.objects("annotations")
    part.objects("logprobs")
    return TextPart(needed(part.text("text"), part, "text"))


_PART_READERS: Final[dict[Role, Callable[[Fields], Part]]] = {
    "user": _user_part,
    "system": _system_part,
    "developer": _system_part,
    "assistant": _assistant_part,
}


def _input_text(part: Fields) -> TextPart:
    _check_breakpoint(part)
    return TextPart(needed(part.text("text"), part, "text"))


def _image(part: Fields) -> ImagePart:
    url = needed(part.text("image_url"), part, "image_url")
    check_image_url(url, part.at("image_url"))
    part.choice("detail", DETAILS)
    _check_breakpoint(part)
    return ImagePart(url)


def _check_breakpoint(part: Fields) -> None:
    breakpoint_ = part.record("prompt_cache_breakpoint")
    if breakpoint_:
        breakpoint_.choice("mode", ("explicit",))


# ------------------------------------------------------------------------------------ rules between items


def check_history(items: tuple[Item, ...]) -> None:
    """Refuses a history without content, with too many images, or with outputs that have no call."""
    if not any(_has_content(item) for item in items):
        raise invalid("input", "holds no text or image of a user, an assistant or a tool.")
    check_image_count(items)
    _check_pairs(items)


def _has_content(item: Item) -> bool:
    """Returns whether the model can answer an item; it cannot answer system text or reasoning alone."""
    if isinstance(item, Message):
        return item.role in ("user", "assistant") and any(map(_is_filled, item.content))
    return isinstance(item, FunctionCall | FunctionCallOutput)


def _is_filled(part: Part) -> bool:
    if isinstance(part, TextPart):
        return bool(part.text)
    return not isinstance(part, RefusalPart) or bool(part.refusal)


def _check_pairs(items: tuple[Item, ...]) -> None:
    """Refuses an output unless it is the only one of the latest earlier call with its `call_id`."""
    unanswered: dict[str, bool] = {}
    for index, item in enumerate(items):
        if isinstance(item, FunctionCall):
            unanswered[item.call_id] = True
        elif isinstance(item, FunctionCallOutput):
            path = member(element("input", index), "call_id")
            if item.call_id not in unanswered:
                raise invalid(path, "belongs to no function_call that stands earlier in input.")
            if not unanswered[item.call_id]:
                raise invalid(path, "is answered already: a call has one function_call_output.")
            unanswered[item.call_id] = False
