"""Finders of refused entries: one function for each parameter that has refused values.

The node keeps nothing between requests and runs nothing but function calls, so parameters, tools, items and
parts that need more are refused, not ignored (contract page; contract decisions, "Requests"). A finder takes
a parameter's value and path. It reads loosely: a value of the wrong shape is left to the typed readers, which
come after it.

The line to `invalid_request`: a kind of tool, item or part that the contract does not have, and a feature
that it has only switched off (null or false alone) are refused here. A word outside an enum that offers a
choice (`reasoning.effort`, `detail`, ...) is an invalid value and left to the readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from b3node.contract.items import ITEM_TYPES
from b3node.contract.path import element, member
from b3node.errors import quoted

STATELESS_ADVICE: Final = "Nothing is stored here: send the whole conversation in input (store: false)."
FUNCTIONS_ADVICE: Final = "Only function tools run here; switch the others off in the client."

TOOL_ADVICE: Final = {
    "web_search": 'Switch web search off in the client (Codex: web_search = "disabled").',
    "web_search_preview": "Switch web search off in the client.",
    "namespace": "MCP namespaces are not taken: send plain functions (Codex: features.multi_agent=false).",
    "mcp": "MCP servers are not called from here: let the client run them as function tools.",
    "custom": "Send a custom tool as a function with one string argument.",
}
ITEM_ADVICE: Final = {
    "item_reference": "For item_reference set store: false in the client; it then sends whole items.",
    "custom_tool_call": "Send custom tools and their calls as functions.",
    "custom_tool_call_output": "Send custom tools and their calls as functions.",
    "compaction": "Let the client sum up the conversation in a message.",
}
PART_ADVICE: Final = {
    "text": "A text part is input_text, in assistant messages output_text.",
    "image_url": "An image is an input_image part whose image_url is a string.",
    "input_file": "Send the text of a file as an input_text part.",
}

ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
"""The one word of `include` that is accepted."""

_PART_TYPES: Final = ("input_text", "input_image", "output_text", "refusal")


class RefusedEntry(msgspec.Struct, frozen=True):
    """One refused entry of a request. Entries with the same `label` are listed together."""

    path: str
    """Path of the entry."""

    label: str
    """Name of the refused thing; a parameter's is its path."""

    advice: str = ""
    """How a client gets rid of it; "" if nothing helps."""


def nothing(_value: object, _path: str) -> Iterator[RefusedEntry]:
    """Yields nothing: the parameter has no refused values."""
    return iter(())


def stateful(_value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields the parameter, which would need a stored conversation."""
    yield RefusedEntry(path, path, STATELESS_ADVICE)


def null_only(_value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields the parameter, which may only be null."""
    yield RefusedEntry(path, path)


def background(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields `background` if it is true."""
    if value is True:
        yield RefusedEntry(path, f"{path} true", "Leave background unset: the answer comes at once.")


def truncation(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields `truncation` if it is "auto"."""
    if value == "auto":
        yield RefusedEntry(path, f'{path} "auto"', 'Input is never cut here: use truncation "disabled".')


def include(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields each word of `include` other than encrypted reasoning."""
    for index, word in enumerate(_array(value)):
        if isinstance(word, str) and word != ENCRYPTED_REASONING:
            yield RefusedEntry(element(path, index), f"included {quoted(word)}", "Leave that include out.")


def reasoning(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields the members of `reasoning` that must be null."""
    for name in ("context", "mode"):
        if _object(value).get(name) is not None:
            place = member(path, name)
            yield RefusedEntry(place, place)


def tools(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields each tool that is no function, or is to be loaded later."""
    for index, tool in enumerate(_array(value)):
        fields, place = _object(tool), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind != "function":
            advice = TOOL_ADVICE.get(kind, FUNCTIONS_ADVICE)
            yield RefusedEntry(member(place, "type"), f"tool type {quoted(kind)}", advice)
        elif fields.get("defer_loading") is True:
            yield RefusedEntry(
                member(place, "defer_loading"), "defer_loading true", "Load all tools at once."
            )


def tool_choice(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields the choice of a tool that is no function."""
    kind = _object(value).get("type")
    if isinstance(kind, str) and kind != "function":
        advice = "Choose none, auto, required or one function."
        yield RefusedEntry(member(path, "type"), f"{path} {quoted(kind)}", advice)


def conversation(value: object, path: str) -> Iterator[RefusedEntry]:
    """Yields each item of `input` of a refused kind, and each such part of the others."""
    for index, item in enumerate(_array(value)):
        fields, place = _object(item), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind not in ITEM_TYPES:
            advice = ITEM_ADVICE.get(kind, "")
            yield RefusedEntry(member(place, "type"), f"item type {quoted(kind)}", advice)
        elif kind in (None, "message"):
            yield from _parts(fields.get("content"), member(place, "content"))
        elif kind == "function_call_output":
            yield from _parts(fields.get("output"), member(place, "output"))


def _parts(value: object, path: str) -> Iterator[RefusedEntry]:
    for index, part in enumerate(_array(value)):
        fields, place = _object(part), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind not in _PART_TYPES:
            advice = PART_ADVICE.get(kind, "")
            yield RefusedEntry(member(place, "type"), f"part type {quoted(kind)}", advice)
        elif kind == "input_image" and fields.get("file_id") is not None:
            yield RefusedEntry(member(place, "file_id"), "file_id", "Send the image itself in image_url.")


def _array(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
