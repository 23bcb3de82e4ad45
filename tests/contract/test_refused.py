"""Entries that the node refuses by design are found all at once and listed in one message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from b3node.contract import unsupported
from b3node.contract.decode import decode_request
from b3node.contract.refused import MAX_LIST_CHARS, refusal_of, refuse_images, survey
from b3node.contract.unsupported import RefusedEntry
from b3node.errors import MAX_MESSAGE_CHARS, Refusal
from tests.contract.bodies import CALL, FULL, KINDS, OUTPUT, PNG, SCHEMA, TOOL, USER, answer, encoded, refused


def part(**fields: Any) -> list[Any]:
    return [{"role": "user", "content": [{"type": "input_text", "text": "x"}, fields]}]


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"n": 2}, "n"),
        ({"seed": None}, "seed"),
        ({"route": "gateway"}, "route"),
        ({"": 1}, '""'),
        ({"k" * 70: 1}, "k" * 63 + "…"),
        ({"api_base": "https://x"}, "api_base"),
        ({"chat_template_kwargs": {}}, "chat_template_kwargs"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": {"id": "c"}}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"top_logprobs": 0}, "top_logprobs"),
        ({"max_tool_calls": 1}, "max_tool_calls"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["reasoning.encrypted_content", "file_search_call.results"]}, "include[1]"),
        ({"reasoning": {"effort": "low", "mode": "pro"}}, "reasoning.mode"),
        ({"reasoning": {"context": "all"}}, "reasoning.context"),
        *[
            ({"tools": [TOOL, {"type": kind}]}, "tools[1].type")
            for kind in (
                "web_search",
                "file_search",
                "mcp",
                "code_interpreter",
                "custom",
                "namespace",
                "Function",
            )
        ],
        ({"tools": [{**TOOL, "defer_loading": True}]}, "tools[0].defer_loading"),
        *[
            ({"tools": [TOOL], "tool_choice": {"type": kind}}, "tool_choice.type")
            for kind in ("allowed_tools", "web_search_preview", "custom", "mcp")
        ],
        *[
            ({"input": [USER, {"type": kind, "id": "x"}]}, "input[1].type")
            for kind in ("item_reference", "custom_tool_call", "computer_call", "compaction", "tool", "")
        ],
        *[
            ({"input": part(type=kind)}, "input[0].content[1].type")
            for kind in ("input_file", "input_audio", "text", "image_url", "summary_text")
        ],
        ({"input": part(type="input_image", file_id="file_1")}, "input[0].content[1].file_id"),
        ({"input": part(type="input_image", image_url=PNG, file_id="f")}, "input[0].content[1].file_id"),
        ({"input": [CALL, {**OUTPUT, "output": [{"type": "input_file"}]}]}, "input[1].output[0].type"),
        (
            {"input": [CALL, {**OUTPUT, "output": [{"type": "input_image", "file_id": "f"}]}]},
            "input[1].output[0].file_id",
        ),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_refused_entry_is_unsupported(parameters: dict[str, Any], param: str) -> None:
    """Refused parameters, values, tools, items and parts answer `unsupported_parameter` with their path."""
    assert answer(encoded(**parameters)) == ("unsupported_parameter", param)


def test_everything_refused_is_named_at_once() -> None:
    """One answer lists every refused entry of the request; the first one that was written is the param."""
    body = {
        "n": 2,
        "model": "m",
        "tools": [TOOL, {"type": "web_search"}, {"type": "mcp"}],
        "input": [USER, {"type": "item_reference", "id": "a"}, {"type": "item_reference", "id": "b"}],
        "background": True,
        "previous_response_id": "r",
    }
    refusal = refused(json.dumps(body).encode())
    assert refusal.param == "n"
    assert refusal.message.startswith(
        'Not supported on this node: n; tool type "web_search" (tools[1]); tool type "mcp" (tools[2]); '
        'item type "item_reference" (input[1], input[2]); background true; previous_response_id. '
    )
    assert [entry.path for entry in survey(body)] == [
        *("n", "tools[1].type", "tools[2].type", "input[1].type", "input[2].type"),
        *("background", "previous_response_id"),
    ]


@pytest.mark.parametrize(
    ("parameters", "advice"),
    [
        ({"input": [USER, {"type": "item_reference", "id": "a"}]}, "set store: false"),
        ({"tools": [{"type": "web_search"}]}, 'Codex: web_search = "disabled"'),
        ({"tools": [{"type": "namespace", "tools": []}]}, "MCP namespaces are not taken"),
        ({"tools": [{"type": "computer_use"}]}, "Only function tools run here"),
        ({"previous_response_id": "r"}, "send the whole conversation in input"),
        ({"truncation": "auto"}, 'use truncation "disabled"'),
        ({"messages": []}, "Use input for messages."),
        ({"max_tokens": 5}, "Use max_output_tokens for max_tokens."),
        ({"input": part(type="text", text="x")}, "A text part is input_text"),
    ],
)
def test_the_message_says_how_to_turn_it_off(parameters: dict[str, Any], advice: str) -> None:
    """Where a client has a switch, or the field another name, the answer says so."""
    assert advice in refused(encoded(**parameters)).message


def test_many_refused_entries_are_cut_by_place_before_kind() -> None:
    """Hundreds of entries fit into one message: places are counted before a kind is left out."""
    items = [{"type": "item_reference", "id": str(i)} for i in range(500)]
    refusal = refused(encoded(input=items, tools=[{"type": "web_search"}]))
    assert refusal.param == "input[0].type"
    assert 'item type "item_reference" (input[0], input[1]' in refusal.message
    assert 'tool type "web_search" (tools[0])' in refusal.message
    assert "store: false" in refusal.message


def test_kinds_beyond_the_message_are_counted() -> None:
    """A message never grows over its bound; the kinds left out are counted."""
    refusal = refused(encoded(**{f"unknown_parameter_{i}": 1 for i in range(100)}))
    assert "unknown_parameter_0; unknown_parameter_1;" in refusal.message
    listed = refusal.message.count("unknown_parameter_")
    assert f"; and {100 - listed} more." in refusal.message
    assert len(refusal.message) <= MAX_MESSAGE_CHARS


@pytest.mark.parametrize("count", [1, 60, 61, 62, 5000])
def test_every_kind_is_listed_or_counted_however_short(count: int) -> None:
    """Of kinds with one letter 60 fit; of more, as many as leave room for the number of the rest."""
    entries = [RefusedEntry(chr(0x4E00 + i), chr(0x4E00 + i)) for i in range(count)]
    listed = refusal_of(entries).message.removeprefix("Not supported on this node: ").removesuffix(".")
    *kinds, last = listed.split("; ")
    more = int(last.removeprefix("and ").removesuffix(" more")) if last.startswith("and ") else 1
    assert len(kinds) + more == count
    assert len(listed) <= MAX_LIST_CHARS
    assert last.startswith("and ") == (count > 60)


@pytest.mark.parametrize("name", ["\n", "a\r\nb", "\x1b[31m", "\u2028", "x" * 10_000, "<script>", "ключ"])
def test_a_clients_own_name_stays_harmless(name: str) -> None:
    """A parameter's own name is repeated printable and cut."""
    refusal = refused(encoded(**{name: 1}))
    assert refusal.param
    assert refusal.param.isprintable()
    assert len(refusal.param) <= 64


ADVICE = [
    *(unsupported.TOOL_ADVICE | unsupported.ITEM_ADVICE | unsupported.PART_ADVICE).values(),
    *(unsupported.STATELESS_ADVICE, unsupported.FUNCTIONS_ADVICE),
]
ENTRIES = st.builds(
    RefusedEntry, st.text("pq[0].", min_size=1, max_size=40), st.text("xyz", min_size=1, max_size=80)
)


@given(st.lists(ENTRIES, max_size=40), ENTRIES, st.sampled_from(ADVICE))
def test_the_first_advice_always_fits(others: list[RefusedEntry], entry: RefusedEntry, advice: str) -> None:
    """However many entries a message lists, the first advice is not dropped for want of room."""
    entries = [*others, RefusedEntry(entry.path, entry.label, advice)]
    refusal = refusal_of(entries)
    assert refusal.message.endswith(advice)
    assert refusal.param == entries[0].path


@pytest.mark.parametrize("kind", KINDS)
def test_an_accepted_body_has_no_refused_entry(kind: str) -> None:
    """The survey is silent about every body that the node takes."""
    assert survey(KINDS[kind]) == []


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize(
    "value", [5, "x", [], [5, [], {}], {}, {"type": 5}, [{"content": 5}], [{"content": [5]}]]
)
def test_the_survey_reads_any_shape(name: str, value: Any) -> None:
    """A value of the wrong shape is passed over: the typed readers refuse it."""
    for entry in survey({name: value}):
        assert entry.path.startswith(name)


def test_null_is_accepted_where_only_null_is() -> None:
    """The parameters that the contract lists as null only may be sent as null."""
    names = ("previous_response_id", "conversation", "prompt", "top_logprobs", "max_tool_calls", "background")
    assert decode_request(encoded(**dict.fromkeys(names)))  # type: ignore[truthy-bool] # it does not raise


PICTURE = {"type": "input_image", "image_url": PNG}


@pytest.mark.parametrize(
    ("items", "param"),
    [
        ([USER, {"role": "user", "content": [PICTURE]}], "input[1].content[0].image_url"),
        ([CALL, {**OUTPUT, "output": [PICTURE]}], "input[1].output[0].image_url"),
    ],
)
def test_images_are_not_served_yet(items: list[Any], param: str) -> None:
    """An image is decoded, then refused as `unsupported_parameter` at its wire path."""
    with pytest.raises(Refusal) as caught:
        refuse_images(decode_request(encoded(input=items)))
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", param)


def test_all_images_are_named_at_once() -> None:
    """One message names the place of each image."""
    with pytest.raises(Refusal) as caught:
        refuse_images(decode_request(encoded(**FULL)))
    assert caught.value.message == (
        "This node does not serve this yet: "
        "images (input[0].content[1].image_url, input[5].output[1].image_url)."
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"tools": [TOOL], "tool_choice": "required"},
        {"tools": [TOOL], "tool_choice": {"type": "function", "name": "f"}},
        {"text": {"format": {"type": "json_object"}}},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
        {"reasoning": {"effort": "xhigh"}},
        {"input": [USER, {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]}]},
    ],
    ids=repr,
)
def test_requests_without_images_are_served(parameters: dict[str, Any]) -> None:
    """Function tools, answer formats, reasoning and its history are not refused."""
    refuse_images(decode_request(encoded(**parameters)))
