"""Function tools, and the bounds of every schema a request carries."""

from __future__ import annotations

from typing import Any

import pytest

from b3node.contract.decode import decode_request
from b3node.contract.request import FunctionTool
from b3node.contract.tools import MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS, MAX_TOOLS
from tests.contract.bodies import TOOL, answer, encoded


def tools_of(*tools: Any) -> tuple[FunctionTool, ...]:
    return decode_request(encoded(tools=list(tools))).tools


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


def sized(size: int) -> dict[str, Any]:
    """A schema of exactly `size` bytes without white space."""
    return {"title": "x" * (size - len('{"title":""}'))}


def test_a_tool_has_only_a_name_for_sure() -> None:
    """Without parameters a function takes no arguments; null is the same."""
    nulls = dict.fromkeys(
        ["description", "parameters", "strict", "allowed_callers", "defer_loading", "output_schema"]
    )
    assert tools_of(TOOL, {**TOOL, "name": "g", **nulls}) == (FunctionTool("f"), FunctionTool("g"))


def test_a_schema_arrives_as_it_was_sent() -> None:
    """Keywords are not looked at here: unknown, odd and foreign ones pass."""
    schema: dict[str, object] = {
        "$schema": "x",
        "type": "objekt",
        "properties": {"a": True, "b": {"maximum": 2**63}},
    }
    assert tools_of({**TOOL, "parameters": schema, "strict": False}) == (
        FunctionTool("f", None, schema, strict=False),
    )


@pytest.mark.parametrize(
    ("tools", "param"),
    [
        ({}, "tools"),
        ([None], "tools[0]"),
        ([{"name": "f"}], "tools[0].type"),
        ([{"type": None, "name": "f"}], "tools[0].type"),
        ([{"type": "function"}], "tools[0].name"),
        ([{"type": "function", "function": {"name": "f"}}], "tools[0].name"),
        *[
            ([TOOL, {**TOOL, "name": name}], "tools[1].name")
            for name in ("", "x" * 65, "a b", "a.b", "ä", "f\n", "f")
        ],
        ([{**TOOL, "description": 1}], "tools[0].description"),
        ([{**TOOL, "parameters": []}], "tools[0].parameters"),
        ([{**TOOL, "parameters": True}], "tools[0].parameters"),
        ([{**TOOL, "strict": "yes"}], "tools[0].strict"),
        ([{**TOOL, "allowed_callers": ["direct", "code"]}], "tools[0].allowed_callers[1]"),
        ([{**TOOL, "defer_loading": "no"}], "tools[0].defer_loading"),
        ([{**TOOL, "output_schema": []}], "tools[0].output_schema"),
        ([{**TOOL, "name": f"f{i}"} for i in range(MAX_TOOLS + 1)], "tools"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_malformed_tool_is_named(tools: Any, param: str) -> None:
    """A wrong type, a bad or repeated name or too many tools is refused where it stands."""
    assert answer(encoded(tools=tools)) == ("invalid_request", param)


def test_names_of_the_full_alphabet_are_taken() -> None:
    """64 of letters, digits, underscore and hyphen make a name."""
    name = ("-_09azAZ" * 8)[:64]
    assert tools_of({**TOOL, "name": name})[0].name == name
    assert len(tools_of(*({**TOOL, "name": f"f{i}"} for i in range(MAX_TOOLS)))) == MAX_TOOLS


def schema_places(schema: Any) -> list[tuple[bytes, str]]:
    """A body for every place that holds an enforced schema, and its path."""
    described = {"type": "json_schema", "name": "n", "schema": schema}
    return [
        (encoded(tools=[TOOL, {**TOOL, "name": "g", "parameters": schema}]), "tools[1].parameters"),
        (encoded(text={"format": described}), "text.format.schema"),
    ]


def test_a_schema_at_its_bounds_is_taken() -> None:
    """32 levels and 64 KiB without white space decode."""
    for schema in (nested(MAX_SCHEMA_LEVELS), sized(MAX_SCHEMA_BYTES), {}):
        for body, _ in schema_places(schema):
            decode_request(body)


@pytest.mark.parametrize("schema", [nested(MAX_SCHEMA_LEVELS + 1), sized(MAX_SCHEMA_BYTES + 1), nested(70)])
def test_a_schema_beyond_its_bounds_is_named(schema: dict[str, Any]) -> None:
    """One level or one byte more is refused by the path of the schema."""
    for body, path in schema_places(schema):
        assert answer(body) == ("invalid_request", path)
