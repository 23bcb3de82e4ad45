"""`b3node render`: the prompt of a request, for people and for machines."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from b3node.cli.render import render
from tests.zoo.templates import TOOLS
from tests.zoo.zoo import Zoo

GOLDEN = Path(__file__).parent / "golden"
FUNCTION = {
    "type": "function",
    "name": "look_up",
    "parameters": {
        "type": "object",
        "properties": {"what": {"type": "string", "maxLength": 8}},
        "required": ["what"],
        "additionalProperties": False,
    },
}
ASKED = {
    "plain": {"input": "Say <|im_end|> and 你好."},
    "thinking": {"input": "Why?", "instructions": "Be brief.", "reasoning": {"effort": "low"}},
    "calling": {
        "input": [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "a", "name": "look_up", "arguments": '{"what": "x"}'},
            {"type": "function_call_output", "call_id": "a", "output": "found"},
        ],
        "tools": [FUNCTION],
    },
}


@pytest.fixture(scope="module")
def model(zoo: Zoo) -> Path:
    return zoo.scripted([b"Hello"], template=TOOLS)


def run(model: Path | str, body: object, *options: str):
    text = body if isinstance(body, str) else json.dumps(body)
    return CliRunner().invoke(render, ["-", "--model", f"m={model}", *options], input=text)


@pytest.mark.parametrize("name", ASKED)
def test_a_prompt_reads_as_before(name, model) -> None:
    """Text with control tokens marked, then the summary; `B3NODE_GOLDEN=write` writes it anew."""
    result = run(model, ASKED[name])
    path = GOLDEN / f"render-{name}.txt"
    if os.environ.get("B3NODE_GOLDEN") == "write":
        path.write_text(result.output, encoding="utf-8")

    assert (result.exit_code, result.output) == (0, path.read_text(encoding="utf-8"))


def test_tokens_are_one_a_line(model) -> None:
    """Each with its id; bytes that are no character by themselves are escaped."""
    rows = run(model, ASKED["plain"], "--tokens").output.split("\n\n")[0].splitlines()

    assert any(row.endswith("⟦<|im_start|>⟧") for row in rows)
    assert any("\\xe4" in row for row in rows)
    assert all(row.split()[0].isdecimal() for row in rows)


def test_a_machine_gets_all_of_it(model) -> None:
    """The same as JSON, with the grammar and the reading of the answer."""
    got = json.loads(run(model, ASKED["calling"], "--json").output)

    assert [text for _, text, special in got["tokens"] if special][:2] == ["<|im_start|>", "<tool_call>"]
    assert got["prompt_tokens"] == len(got["tokens"])
    assert got["model"]["control"] == "switch"
    assert got["grammar"].startswith("root ::=")
    assert got["grammar_waits_for_call"] is True
    assert got["reading"]["dialect"]["calls"]["open"] == ["<tool_call>\n"]
    assert got["ends"] == "before the answer"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("[", "JSON"),
        ("[]", "must be a JSON object"),
        ({"input": []}, "input"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "web_search"),
        (
            {"input": "x", "text": {"format": {"type": "json_schema", "name": "n", "schema": {"not": {}}}}},
            "#",
        ),
    ],
)
def test_a_refusal_is_the_endpoints(body, words, model) -> None:
    """In the same words, with status 1."""
    result = run(model, body)

    assert result.exit_code == 1
    assert words in result.output


def test_a_body_that_the_node_would_not_take_is_refused(tmp_path, model) -> None:
    """By the limit of the model, before a process is started for it."""
    path = tmp_path / "node.toml"
    path.write_text(f'max_request_bytes = 20\n[models.m]\npath = "{model}"\n')
    options = ["-", "--config", str(path)]
    result = CliRunner().invoke(render, options, input=json.dumps({"input": "A long story."}))

    assert result.exit_code == 1
    assert "Error: The request body has 26 bytes; at most 20 are accepted." in result.output


def test_a_file_that_is_no_model_is_told_of(tmp_path) -> None:
    """As when it is served."""
    (tmp_path / "m.gguf").write_bytes(b"no")
    result = run(tmp_path / "m.gguf", {"input": "x"})

    assert result.exit_code == 1
    assert "is not a model" in result.output


def test_a_configured_model_is_found_by_name(tmp_path, model) -> None:
    """By its name, or the first one; its context bounds the prompt."""
    (tmp_path / "n.toml").write_text(f'[models."a"]\npath = "{model}"\nctx = 8\n')
    (tmp_path / "r.json").write_text('{"input": "a rather long question"}')
    command = [str(tmp_path / "r.json"), "--config", str(tmp_path / "n.toml")]

    assert "context of 8" in CliRunner().invoke(render, command).output
    assert "no model b; there is a" in CliRunner().invoke(render, [*command, "--model", "b"]).output
