"""Bodies that real clients sent, and faults that other servers had, replayed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from b3node.contract.decode import decode_request
from b3node.contract.request import FunctionCall, ImagePart, Message, Request, TextPart, ToolChoice
from tests.contract.bodies import answer, refused

SHARED = Path(__file__).parents[3] / "shared"
REQUESTS = SHARED / "corpora" / "client_requests.jsonl"
FAULTS = SHARED / "cases" / "faults.jsonl"


def rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        pytest.skip(f"{path.name} is reference data that this checkout does not have")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_what_clients_send_is_taken_or_refused_as_the_contract_says() -> None:
    """Of 149 recorded bodies 138 decode, six are refused for item references and five for stored
    responses.
    """
    outcomes: dict[str, list[int]] = {}
    for index, row in enumerate(rows(REQUESTS)):
        body = json.dumps(row["body"]).encode()
        if row["accepted"]:
            request = decode_request(body)
            assert request.model == row["body"]["model"]
            outcomes.setdefault("taken", []).append(index)
        else:
            code, param = answer(body)
            assert code == "unsupported_parameter"
            outcomes.setdefault(str(param), []).append(index)
    assert len(outcomes.pop("taken")) == 138
    assert outcomes == {
        "input[1].type": [42, 43, 44, 45, 50, 51],
        "previous_response_id": [109, 110, 111, 112, 114],
    }


def test_the_message_of_a_refused_client_names_its_switch() -> None:
    """Each recorded refusal advises the client to send `store: false`, and names every reference."""
    for row in rows(REQUESTS):
        if row["accepted"]:
            continue
        message = refused(json.dumps(row["body"]).encode()).message
        assert "store: false" in message
        items = row["body"]["input"]
        for index, item in enumerate(items):
            if item.get("type") == "item_reference":
                assert f"input[{index}]" in message


def expanded(value: Any) -> Any:
    """A fault's request with its repetitions written out."""
    if isinstance(value, str):
        return re.sub(
            r'%%REPEAT\((\d+),"(.*?)"\)%%', lambda match: match[2] * int(match[1]), value, flags=re.DOTALL
        )
    if isinstance(value, list):
        return [expanded(each) for each in value]
    if isinstance(value, dict):
        return {key: expanded(each) for key, each in value.items()}
    return value


REFUSED_FAULTS = {
    "fault-001": ("unsupported_parameter", "tools[1].type"),
    "fault-002": ("unsupported_parameter", "tools[1].type"),
    "fault-016": ("invalid_request", "input[0].call_id"),
    "fault-122": ("unsupported_parameter", "logprobs"),
}
"""Faults whose right answer is the decoder's refusal; all others are judged later."""


def faults() -> dict[str, bytes]:
    return {
        row["id"]: json.dumps(expanded(row["request"])).encode()
        for row in rows(FAULTS)
        if isinstance(row.get("request"), dict)
    }


def test_recorded_faults_get_the_right_answer() -> None:
    """Each request decodes, or is refused for the fault in its report."""
    found = faults()
    assert len(found) > 60
    for name, body in found.items():
        if name in REFUSED_FAULTS:
            assert answer(body) == REFUSED_FAULTS[name], name
        else:
            assert isinstance(decode_request(body), Request), name


def test_a_fault_with_many_unknown_parameters_is_answered_once() -> None:
    """Ten refused parameters are named in one message."""
    message = refused(faults()["fault-122"]).message
    for name in ("logprobs", "n", "max_tool_calls", "top_logprobs", "truncation", "background"):
        assert name in message
    for name in ("previous_response_id", "frequency_penalty", "seed", "stop"):
        assert name in message


def test_recorded_histories_keep_their_words() -> None:
    """Replayed calls, odd arguments, long texts and images arrive unchanged."""
    found = faults()

    def items(name: str) -> tuple[Any, ...]:
        return decode_request(found[name]).input

    assert items("fault-004")[1] == FunctionCall("call_1", "docs_search", '{"q":"borrowck"}')
    assert items("fault-011")[1].arguments == '["Oslo"]'
    assert items("fault-013")[1].arguments == ""
    assert [item.call_id for item in items("fault-014") if isinstance(item, FunctionCall)] == ["search:0"] * 2
    assert items("fault-112") == (Message("user", (TextPart("word " * 300_000),)),)
    assert [type(part) for part in items("fault-103")[2].output] == [TextPart, ImagePart]
    assert decode_request(found["fault-058"]).tool_choice == ToolChoice("function", "skill")
