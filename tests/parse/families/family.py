"""A family: a dialect, its special tokens, and turns in it with what they say.

In these texts a special token is written like any other text; `written` puts the mark before it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import Dialect, Span
from b3node.dialects.outline import Reading

WEATHER = FunctionTool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "n": {"anyOf": [{"type": "integer"}]},
            "deep": {"$ref": "#/$defs/deep"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "$defs": {
            "deep": {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": ["boolean", "null", "string"]}}},
            }
        },
    },
)
PING = FunctionTool("ping")
TOOLS = (WEATHER, PING)

OSLO = {"city": 'Os"lo', "n": 3, "deep": {"a": [True, None, "x"]}}
ROME = {"city": "Röm\nü </tool_call> 🙂"}
ARGS = '{"city": "Os\\"lo", "n": 3, "deep": {"a": [true, null, "x"]}}'
ROMAN = '{"city": "Röm\\nü </tool_call> 🙂"}'

Said = list[tuple[object, ...]]


class Turn(NamedTuple):
    written: str
    said: Said
    thinking: bool = False
    calls: bool = True


class Family(NamedTuple):
    name: str
    dialect: Dialect
    specials: tuple[str, ...]
    turns: tuple[Turn, ...]
    begun: str = ""


def written(text: str, specials: tuple[str, ...]) -> bytes:
    """The bytes that arrive: every special token behind a mark."""
    out = text.encode()
    for special in specials:
        assert not any(special != other and special in other for other in specials)
        out = out.replace(special.encode(), b"\xff" + special.encode())
    return out


def reading(family: Family, turn: Turn) -> Reading:
    return Reading(
        family.dialect,
        thinking=turn.thinking,
        calls=turn.calls,
        specials=family.specials,
        begun=written(family.begun, family.specials),
    )


def call(name: str, arguments: object) -> tuple[object, ...]:
    return ("call", name, arguments)


BOTH: Said = [call("get_weather", OSLO), call("get_weather", ROME)]
THINK = Span("<think>\n", "\n</think>\n\n")


def names(case: object) -> str:
    return (
        case.name
        if isinstance(case, Family)
        else json.dumps(case.written)[1:30]
        if isinstance(case, Turn)
        else "?"
    )
