"""The conversation: kinds of items and parts, and the rules between items."""

from __future__ import annotations

from typing import Any

import pytest

from b3node.contract.decode import decode_request
from b3node.contract.items import MAX_ITEMS, MAX_PARTS
from b3node.contract.request import FunctionCall, Item, Message, Reasoning, RefusalPart, TextPart
from tests.contract.bodies import CALL, OUTPUT, PNG, USER, answer, encoded


def items_of(*items: Any) -> tuple[Item, ...]:
    return decode_request(encoded(input=list(items))).input


def message(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


def text(kind: str = "input_text", words: str = "x") -> dict[str, str]:
    return {"type": kind, "text": words}


@pytest.mark.parametrize("role", ["user", "assistant", "system", "developer"])
def test_a_string_is_one_text_part(role: str) -> None:
    """The short spelling of a message's content decodes to the same as the long one."""
    assert items_of(USER, {"role": role, "content": "a\nb"})[1] == Message(
        role,  # type: ignore[arg-type] # a role by its name
        (TextPart("a\nb"),),
    )


def test_positions_are_kept() -> None:
    """Item i of the wire is item i of the request, empty ones too, so that paths can be built later."""
    items = items_of({"role": "system", "content": []}, {"type": "reasoning"}, USER, CALL)
    assert items == (
        Message("system", ()),
        Reasoning(""),
        Message("user", (TextPart("hi"),)),
        FunctionCall("c1", "f", ""),
    )


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", "output_text"),
        ("user", "refusal"),
        ("system", "input_image"),
        ("developer", "input_image"),
        ("system", "output_text"),
        ("assistant", "input_text"),
        ("assistant", "input_image"),
    ],
)
def test_a_part_in_the_wrong_place_is_named(role: str, kind: str) -> None:
    """Users and systems have input parts, assistants output parts."""
    part = {"type": kind, "text": "x", "refusal": "x", "image_url": PNG}
    assert answer(encoded(input=[message(role, part)])) == ("invalid_request", "input[0].content[0].type")


@pytest.mark.parametrize(
    ("item", "text_of_it"),
    [
        ({}, ""),
        ({"summary": None, "content": None}, ""),
        ({"summary": [text("summary_text", "s")]}, "s"),
        ({"summary": [text("summary_text", "s")], "content": []}, "s"),
        ({"summary": [text("summary_text", "s")], "content": [text("reasoning_text", "")]}, "s"),
        ({"summary": [text("summary_text", "s")], "content": [text("reasoning_text", "c")]}, "c"),
        ({"content": [text("reasoning_text", "a"), text("summary_text", "b")]}, "a\n\nb"),
        ({"encrypted_content": "opaque"}, ""),
    ],
)
def test_reasoning_is_its_content_or_its_summary(item: dict[str, Any], text_of_it: str) -> None:
    """A reasoning item carries the texts of its content, without those of its summary, as paragraphs."""
    assert items_of(USER, {"type": "reasoning", **item})[1] == Reasoning(text_of_it)


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([5], "input[0]"),
        ([USER, None], "input[1]"),
        ([{}], "input[0].role"),
        ([{"type": 7}], "input[0].type"),
        ([{"role": "tool", "content": "x"}], "input[0].role"),
        ([{"role": "user"}], "input[0].content"),
        ([{"role": "user", "content": {"text": "x"}}], "input[0].content"),
        ([message("user", "x")], "input[0].content[0]"),
        ([message("user", {"text": "x"})], "input[0].content[0].type"),
        ([message("user", {"type": "input_text"})], "input[0].content[0].text"),
        ([message("assistant", {"type": "refusal"})], "input[0].content[0].refusal"),
        ([message("user", {"type": "input_image"})], "input[0].content[0].image_url"),
        ([message("user", {"type": "input_image", "image_url": None})], "input[0].content[0].image_url"),
        (
            [message("user", {"type": "input_image", "image_url": {"url": PNG}})],
            "input[0].content[0].image_url",
        ),
        (
            [message("user", {"type": "input_image", "image_url": PNG, "detail": "max"})],
            "input[0].content[0].detail",
        ),
        (
            [message("user", {**text(), "prompt_cache_breakpoint": {"mode": "implicit"}})],
            "input[0].content[0].prompt_cache_breakpoint.mode",
        ),
        (
            [message("assistant", {**text("output_text"), "annotations": [1]})],
            "input[0].content[0].annotations[0]",
        ),
        ([{**CALL, "call_id": ""}], "input[0].call_id"),
        ([{**CALL, "name": ""}], "input[0].name"),
        ([{**CALL, "arguments": {}}], "input[0].arguments"),
        ([CALL, {**OUTPUT, "output": {}}], "input[1].output"),
        ([CALL, {**OUTPUT, "output": [text("output_text")]}], "input[1].output[0].type"),
        ([{"type": "reasoning", "content": [text("input_text")]}], "input[0].content[0].type"),
        ([{"type": "reasoning", "content": "x"}], "input[0].content"),
        (
            [{"type": "reasoning", "summary": [text("summary_text"), {"type": "summary_text"}]}],
            "input[0].summary[1].text",
        ),
        ([USER] * (MAX_ITEMS + 1), "input"),
        ([message("user", *[text()] * (MAX_PARTS + 1))], "input[0].content"),
        ([CALL, {**OUTPUT, "output": [text()] * (MAX_PARTS + 1)}], "input[1].output"),
        ([{"type": "reasoning", "content": [text("reasoning_text")] * (MAX_PARTS + 1)}], "input[0].content"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_malformed_item_is_named(items: list[Any], param: str) -> None:
    """A wrong type, a missing field or too many of something is refused where it stands."""
    assert answer(encoded(input=items)) == ("invalid_request", param)


def test_the_largest_conversation_is_taken() -> None:
    """As many items and parts as allowed decode."""
    parts = [text()] * MAX_PARTS
    assert len(items_of(*[USER] * (MAX_ITEMS - 1), message("user", *parts))) == MAX_ITEMS


# ------------------------------------------------------------------------------------------------- emptiness


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        [],
        [{"role": "user", "content": ""}],
        [message("user")],
        [message("user", text(words=""))],
        [message("assistant", text("output_text", ""), {"type": "refusal", "refusal": ""})],
        [{"role": "system", "content": "rules"}, {"role": "developer", "content": "more"}],
        [{"type": "reasoning", "content": [text("reasoning_text", "a thought")]}],
    ],
)
def test_input_that_says_nothing_is_refused(nothing: Any) -> None:
    """Without a word of a user, an assistant or a tool there is nothing to answer, with system text too."""
    assert answer(encoded(input=nothing, instructions="Be kind.")) == ("invalid_request", "input")


@pytest.mark.parametrize(
    "something",
    [
        " ",
        [message("user"), message("user", text(words="x"))],
        [message("user", {"type": "input_image", "image_url": PNG})],
        [{"role": "assistant", "content": "x"}],
        [message("assistant", {"type": "refusal", "refusal": "no"})],
        [CALL],
        [CALL, {**OUTPUT, "output": ""}],
    ],
)
def test_input_that_says_anything_is_taken(something: Any) -> None:
    """One part with content is enough, even white space, and so is a call."""
    assert decode_request(encoded(input=something)).input


def test_a_refusal_is_history() -> None:
    """An assistant's refusal comes back as it was."""
    assert items_of(USER, message("assistant", {"type": "refusal", "refusal": "no"}))[1] == Message(
        "assistant", (RefusalPart("no"),)
    )


# --------------------------------------------------------------------------------------------------- pairing


def call(call_id: str) -> dict[str, Any]:
    return {**CALL, "call_id": call_id}


def output(call_id: str) -> dict[str, Any]:
    return {**OUTPUT, "call_id": call_id}


@pytest.mark.parametrize(
    "items",
    [
        [call("a"), output("a")],
        [call("a"), call("b"), output("b"), output("a")],
        [call("a"), USER, output("a")],
        [call("a"), USER],
        [call("a"), output("a"), call("a"), output("a")],
        [call("a"), call("a"), output("a")],
        [call("search:0"), output("search:0"), USER, call("search:0"), output("search:0"), USER],
    ],
)
def test_outputs_that_follow_their_calls_are_taken(items: list[Any]) -> None:
    """Outputs in any order after their calls pair up, and a call id may be used again in a later round."""
    assert len(items_of(*items)) == len(items)


@pytest.mark.parametrize(
    ("items", "index"),
    [
        ([output("gone"), USER], 0),
        ([output(""), USER], 0),
        ([output("a"), call("a")], 0),
        ([call("a"), output("a"), output("a")], 2),
        ([call("a"), output("b")], 1),
        ([call("a"), call("a"), output("a"), output("a")], 3),
        ([call("a"), output("a"), call("a"), output("a"), output("a")], 4),
    ],
)
def test_an_output_without_its_own_call_is_named(items: list[Any], index: int) -> None:
    """An output that no earlier call waits for is refused by its call_id."""
    assert answer(encoded(input=items)) == ("invalid_request", f"input[{index}].call_id")
