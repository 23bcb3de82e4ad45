"""Functions to call, and spellings of calls of their own."""

from __future__ import annotations

from typing import Any

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import Calls, NamedBody, TaggedArguments

WEATHER = FunctionTool(
    "weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["city"],
    },
)
PING = FunctionTool("ping")


def taking(parameters: Any, *, strict: bool | None = None, name: str = "f") -> FunctionTool:
    return FunctionTool(name, parameters=parameters, strict=strict)


BOTH = (WEATHER, PING)

TAGS = NamedBody((">\n",), TaggedArguments("<p=", ">\n", "\n</p>\n"))
CODER = Calls(TAGS, open=("<call>\n<f=",), close="</f>\n</call>", between="\n")


def tagged(**spelling) -> Calls:
    form = TaggedArguments("<p=", ">", "</p>", **spelling)
    return Calls(NamedBody((">",), form), open=("<f=",), close="</f>")
