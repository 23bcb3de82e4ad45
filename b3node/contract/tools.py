"""Reads function tools, the choice among them, and the JSON Schemas of a request."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from b3node.contract.fields import Fields, invalid, mistyped, needed
from b3node.contract.json_schema import PublishedSchema
from b3node.contract.path import element
from b3node.contract.request import FunctionTool, ToolChoice
from b3node.contract.strict_json import is_deeper
from b3node.errors import quoted

MAX_TOOLS: Final = 128
"""Tools in one request: a bound of this node; the contract page has none."""

_MODES: Final[tuple[Literal["none", "auto", "required"], ...]] = ("none", "auto", "required")

MAX_SCHEMA_BYTES: Final = 64 * 1024
"""Bytes of a schema written without white space (contract decisions)."""

MAX_SCHEMA_LEVELS: Final = 32
"""Levels of arrays and objects in a schema (the same)."""

SCHEMA: Final[PublishedSchema] = {
    "type": "object",
    "description": f"A JSON Schema of at most {MAX_SCHEMA_BYTES // 1024} KiB and {MAX_SCHEMA_LEVELS} levels.",
}
"""Schema of a member that `read_schema` reads."""


def read_schema(fields: Fields, name: str) -> dict[str, object] | None:
    """Reads a JSON Schema object within its bounds. Its keywords are for the schema compiler to judge."""
    schema = fields.mapping(name)
    if schema is None:
        return None
    if is_deeper(schema, MAX_SCHEMA_LEVELS):
        raise invalid(fields.at(name), f"nests arrays and objects more than {MAX_SCHEMA_LEVELS} deep.")
    size = len(msgspec.json.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        raise invalid(fields.at(name), f"is {size} bytes of JSON; at most {MAX_SCHEMA_BYTES} are taken.")
    return schema


def read_tools(request: Fields) -> tuple[FunctionTool, ...]:
    """Reads the functions of `tools`; refuses a repeated name."""
    tools: dict[str, FunctionTool] = {}
    for fields in request.objects("tools", most=MAX_TOOLS) or []:
        tool = _read_tool(fields)
        if tool.name in tools:
            raise invalid(fields.at("name"), f"repeats {quoted(tool.name)}; names are unique.")
        tools[tool.name] = tool
    return tuple(tools.values())


def _read_tool(tool: Fields) -> FunctionTool:
    needed(tool.choice("type", ("function",)), tool, "type")
    name = needed(tool.identifier("name"), tool, "name")
    _check_callers(tool)
    tool.flag("defer_loading")
    tool.mapping("output_schema")
    return FunctionTool(name, tool.text("description"), read_schema(tool, "parameters"), tool.flag("strict"))


def _check_callers(tool: Fields) -> None:
    for index, caller in enumerate(tool.array("allowed_callers") or []):
        if caller != "direct":
            raise invalid(element(tool.at("allowed_callers"), index), 'must be "direct".')


def read_tool_choice(request: Fields, tools: tuple[FunctionTool, ...]) -> ToolChoice:
    """Reads `tool_choice`, "auto" if unset; refuses a choice that the declared `tools` do not allow."""
    value = request.get("tool_choice")
    if value is None or isinstance(value, str):
        mode = request.choice("tool_choice", _MODES) or "auto"
        if mode == "required" and not tools:
            raise invalid(request.at("tool_choice"), 'is "required", but the request has no tools.')
        return ToolChoice(mode)
    if not isinstance(value, dict):
        raise mistyped(request.at("tool_choice"), "a string or an object", value)
    return _read_named(Fields(value, request.at("tool_choice")), request, tools)


def _read_named(choice: Fields, request: Fields, tools: tuple[FunctionTool, ...]) -> ToolChoice:
    needed(choice.choice("type", ("function",)), choice, "type")
    name = needed(choice.text("name"), choice, "name")
    if all(tool.name != name for tool in tools):
        raise invalid(request.at("tool_choice"), f"names {quoted(name)}, which is not among the tools.")
    return ToolChoice("function", name)
