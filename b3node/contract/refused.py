"""What the node refuses by design: found all at once, and said in one message.

The node keeps nothing between requests and runs nothing but function calls, so parameters, tools, items and
parts that need more are refused, not ignored (contract page; contract decisions, "Requests"). A client that is
told of one entry per try gives up before the last, so this survey walks the whole request first, in the order in
which it was written, and lists every entry. It reads loosely: what has the wrong shape altogether is left to
the typed readers, which come after it. A request with both faults is therefore always `unsupported_parameter`.

The line to `invalid_request`: a kind of tool, item or part that the contract does not have, a parameter it does
not have, and a feature it has only switched off (null or false alone) are refused here. A word outside an enum
that offers a choice (`reasoning.effort`, `detail`, ...) is an invalid value and left to the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from b3node.contract.items import ITEM_TYPES
from b3node.contract.path import element, member
from b3node.errors import MAX_MESSAGE, Refusal, quoted

MAX_LIST: Final = 180
"""Characters of the list of entries, so that the advice for the first of them still fits."""

_COUNT_ROOM: Final = 20
"""Characters of a separator and the number of kinds left out."""

_PATHS_SHOWN: Final = (32, 8, 4, 2, 1)
"""How many places of one kind are named: the most that keeps the list short enough."""


class Refused(msgspec.Struct, frozen=True):
    """One refused entry: where it stands, what it is, and how a client gets rid of it ("" if nothing helps).

    Entries with the same `what` are listed together; a parameter's `what` is its path.
    """

    path: str
    what: str
    advice: str = ""


def refusal_of(entries: list[Refused], lead: str = "Not supported on this node:") -> Refusal:
    """One `unsupported_parameter` that names all `entries` (at least one); `param` is the first one's path."""
    text = f"{lead} {_listed(entries)}."
    for advice in dict.fromkeys(entry.advice for entry in entries if entry.advice):
        if len(text) + 1 + len(advice) <= MAX_MESSAGE:
            text = f"{text} {advice}"
    return Refusal("unsupported_parameter", text, param=entries[0].path)


def _listed(entries: list[Refused]) -> str:
    places: dict[str, list[str]] = {}
    for entry in entries:
        places.setdefault(entry.what, []).append(entry.path)
    for most in _PATHS_SHOWN:
        kinds = [_kind(what, paths, most) for what, paths in places.items()]
        text = "; ".join(kinds)
        if len(text) <= MAX_LIST:
            return text
    return _cut(kinds)


def _kind(what: str, paths: list[str], most: int) -> str:
    """One kind of entry with its places, unless its name says the place already."""
    places = [path.removesuffix(".type") for path in paths]
    if what.startswith(places[0]):
        return what
    rest = f" and {len(places) - most} more" if len(places) > most else ""
    return f"{what} ({', '.join(places[:most])}{rest})"


def _cut(kinds: list[str]) -> str:
    """As many of `kinds` as fit, and how many do not."""
    text = kinds[0]
    for position, kind in enumerate(kinds[1:], start=1):
        if len(text) + len(kind) > MAX_LIST - _COUNT_ROOM:
            return f"{text}; and {len(kinds) - position} more"
        text = f"{text}; {kind}"
    return text


# ------------------------------------------------------------------------------------------------- survey

_STATELESS: Final = "Nothing is stored here: send the whole conversation in input (store: false)."
_FUNCTIONS_ONLY: Final = "Only function tools run here; switch the others off in the client."

_TOOL_ADVICE: Final = {
    "web_search": 'Switch web search off in the client (Codex: web_search = "disabled").',
    "web_search_preview": "Switch web search off in the client.",
    "namespace": "MCP namespaces are not taken: send plain functions (Codex: features.multi_agent=false).",
    "mcp": "MCP servers are not called from here: let the client run them as function tools.",
    "custom": "Send a custom tool as a function with one string argument.",
}
_ITEM_ADVICE: Final = {
    "item_reference": "For item_reference set store: false in the client; it then sends whole items.",
    "custom_tool_call": "Send custom tools and their calls as functions.",
    "custom_tool_call_output": "Send custom tools and their calls as functions.",
    "compaction": "Let the client sum up the conversation in a message.",
}
_PART_ADVICE: Final = {
    "text": "A text part is input_text, in assistant messages output_text.",
    "image_url": "An image is an input_image part whose image_url is a string.",
    "input_file": "Send the text of a file as an input_text part.",
}
_CHAT_NAMES: Final = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}
"""Parameters of Chat Completions that this API has under another name."""

_INCLUDED: Final = "reasoning.encrypted_content"
_PART_TYPES: Final = ("input_text", "input_image", "output_text", "refusal")


def survey(request: dict[str, object]) -> list[Refused]:
    """Every refused entry of a decoded request, in the order in which the client wrote them."""
    entries: list[Refused] = []
    for name, value in request.items():
        if name not in _PARAMETERS:
            entries.append(_unknown(name))
        elif value is not None:
            entries.extend(_PARAMETERS[name](value, name))
    return entries


def _unknown(name: str) -> Refused:
    path = member("", name)
    own = _CHAT_NAMES.get(name)
    return Refused(path, path, f"Use {own} for {name}." if own else "")


def _taken(_value: object, _path: str) -> Iterator[Refused]:
    """A parameter that has no refused values."""
    return iter(())


def _stateful(_value: object, path: str) -> Iterator[Refused]:
    yield Refused(path, path, _STATELESS)


def _null_only(_value: object, path: str) -> Iterator[Refused]:
    yield Refused(path, path)


def _background(value: object, path: str) -> Iterator[Refused]:
    if value is True:
        yield Refused(path, f"{path} true", "Leave background unset: the answer comes at once.")


def _truncation(value: object, path: str) -> Iterator[Refused]:
    if value == "auto":
        yield Refused(path, f'{path} "auto"', 'Input is never cut here: use truncation "disabled".')


def _include(value: object, path: str) -> Iterator[Refused]:
    for index, word in enumerate(_array(value)):
        if isinstance(word, str) and word != _INCLUDED:
            yield Refused(element(path, index), f"included {quoted(word)}", "Leave that include out.")


def _reasoning(value: object, path: str) -> Iterator[Refused]:
    for name in ("context", "mode"):
        if _object(value).get(name) is not None:
            place = member(path, name)
            yield Refused(place, place)


def _tools(value: object, path: str) -> Iterator[Refused]:
    for index, tool in enumerate(_array(value)):
        fields, place = _object(tool), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind != "function":
            advice = _TOOL_ADVICE.get(kind, _FUNCTIONS_ONLY)
            yield Refused(member(place, "type"), f"tool type {quoted(kind)}", advice)
        elif fields.get("defer_loading") is True:
            yield Refused(member(place, "defer_loading"), "defer_loading true", "Load all tools at once.")


def _tool_choice(value: object, path: str) -> Iterator[Refused]:
    kind = _object(value).get("type")
    if isinstance(kind, str) and kind != "function":
        advice = "Choose none, auto, required or one function."
        yield Refused(member(path, "type"), f"{path} {quoted(kind)}", advice)


def _input(value: object, path: str) -> Iterator[Refused]:
    for index, item in enumerate(_array(value)):
        fields, place = _object(item), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind not in ITEM_TYPES:
            yield Refused(member(place, "type"), f"item type {quoted(kind)}", _ITEM_ADVICE.get(kind, ""))
        elif kind in (None, "message"):
            yield from _parts(fields.get("content"), member(place, "content"))
        elif kind == "function_call_output":
            yield from _parts(fields.get("output"), member(place, "output"))


def _parts(value: object, path: str) -> Iterator[Refused]:
    for index, part in enumerate(_array(value)):
        fields, place = _object(part), element(path, index)
        kind = fields.get("type")
        if isinstance(kind, str) and kind not in _PART_TYPES:
            yield Refused(member(place, "type"), f"part type {quoted(kind)}", _PART_ADVICE.get(kind, ""))
        elif kind == "input_image" and fields.get("file_id") is not None:
            yield Refused(member(place, "file_id"), "file_id", "Send the image itself in image_url.")


def _array(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


_PARAMETERS: Final[dict[str, Callable[[object, str], Iterator[Refused]]]] = {
    **dict.fromkeys(
        (
            *("model", "instructions", "max_output_tokens", "temperature", "top_p", "parallel_tool_calls"),
            *("text", "stream", "stream_options", "store", "metadata", "user", "safety_identifier"),
            *("prompt_cache_key", "service_tier"),
        ),
        _taken,
    ),
    "input": _input,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "reasoning": _reasoning,
    "truncation": _truncation,
    "background": _background,
    "include": _include,
    "previous_response_id": _stateful,
    "conversation": _stateful,
    "prompt": _stateful,
    "top_logprobs": _null_only,
    "max_tool_calls": _null_only,
}
"""Every parameter of the contract page, and the values of it that are refused."""
