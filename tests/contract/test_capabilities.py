"""What this version does not do yet is refused plainly, and its history is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from b3node.contract.capabilities import THIS_VERSION, Capabilities, refuse_unsupported
from b3node.contract.decode import decode_request
from b3node.errors import MAX_MESSAGE, Refusal
from tests.contract.bodies import CALL, FULL, KINDS, OUTPUT, PNG, SCHEMA, TOOL, USER, encoded

NONE = Capabilities()
ALL = Capabilities(tools=True, formats=True, reasoning=True, images=True)
PICTURE = {"type": "input_image", "image_url": PNG}
NAMED = {"type": "function", "name": "f"}
JSON_SCHEMA = {"type": "json_schema", "name": "a", "schema": SCHEMA}

BEYOND: list[tuple[str, dict[str, Any], str]] = [
    ("tools", {"tools": [TOOL]}, "tools"),
    ("tools", {"tools": [TOOL], "tool_choice": "auto"}, "tools"),
    ("tools", {"tools": [TOOL], "tool_choice": "required"}, "tools"),
    ("tools", {"tools": [TOOL], "tool_choice": NAMED}, "tools"),
    ("formats", {"text": {"format": {"type": "json_object"}}}, "text.format.type"),
    ("formats", {"text": {"format": JSON_SCHEMA}}, "text.format.type"),
    *[
        ("reasoning", {"reasoning": {"effort": effort}}, "reasoning.effort")
        for effort in ("low", "medium", "xhigh")
    ],
    ("images", {"input": [USER, {"role": "user", "content": [PICTURE]}]}, "input[1].content[0].image_url"),
    ("images", {"input": [CALL, {**OUTPUT, "output": [PICTURE]}]}, "input[1].output[0].image_url"),
]

WITHIN: list[dict[str, Any]] = [
    {},
    {"tools": []},
    {"tools": [TOOL], "tool_choice": "none"},
    {"tool_choice": "none"},
    {"text": {"format": {"type": "text"}, "verbosity": "low"}},
    {"reasoning": {"effort": "none", "summary": "auto"}},
    {"reasoning": {"effort": "minimal"}},
    {
        "input": [
            USER,
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]},
            CALL,
            OUTPUT,
        ]
    },
]


@pytest.mark.parametrize(("flag", "parameters", "param"), BEYOND, ids=lambda value: repr(value)[:50])
def test_what_is_not_served_yet_is_named(flag: str, parameters: dict[str, Any], param: str) -> None:
    """With a flag off, the request is `unsupported_parameter` at its wire path; with it on, it passes."""
    request = decode_request(encoded(**parameters))
    with pytest.raises(Refusal) as caught:
        refuse_unsupported(request, msgspec.structs.replace(ALL, **{flag: False}))
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", param)
    refuse_unsupported(request, msgspec.structs.replace(NONE, **{flag: True}))


@pytest.mark.parametrize("parameters", WITHIN, ids=repr)
def test_plain_text_needs_no_capability(parameters: dict[str, Any]) -> None:
    """Text, system words, switched-off features and replayed calls and thoughts are served from the start."""
    refuse_unsupported(decode_request(encoded(**parameters)), NONE)


def test_everything_missing_is_said_at_once() -> None:
    """A request that needs all flags gets one plain message, in the words of the contract."""
    with pytest.raises(Refusal) as caught:
        refuse_unsupported(decode_request(encoded(**FULL)), NONE)
    assert caught.value.param == "input[0].content[1].image_url"
    assert caught.value.message.startswith(
        "This node does not serve this yet: "
        "images (input[0].content[1].image_url, input[5].output[1].image_url); function tools (tools); "
        "tool_choice function; text.format json_schema; reasoning.effort low."
    )
    assert len(caught.value.message) <= MAX_MESSAGE


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_does_all_refuses_nothing(kind: str) -> None:
    """With every flag on, every accepted body passes."""
    refuse_unsupported(decode_request(encoded(**KINDS[kind])), ALL)


def test_this_version_is_the_default() -> None:
    """Without a value of its own, the check uses what this version serves."""
    for _, parameters, param in BEYOND:
        request = decode_request(encoded(**parameters))
        outcomes = [_param_of(request, *arguments) for arguments in ([], [THIS_VERSION])]
        assert outcomes[0] == outcomes[1]
        assert outcomes[0] in (None, param)


def _param_of(request: Any, *capabilities: Capabilities) -> str | None:
    try:
        refuse_unsupported(request, *capabilities)
    except Refusal as refusal:
        return refusal.param
    return None
