"""`b3node grammar`: grammar, refusal or judgement, for people."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from b3node.cli.grammar import grammar
from b3node.grammar import schema_to_gbnf


@pytest.fixture
def run(tmp_path):
    """Runs the command on a schema and perhaps an instance."""

    def one(schema, *options, instance=None):
        (tmp_path / "schema.json").write_text(schema if isinstance(schema, str) else json.dumps(schema))
        arguments = [str(tmp_path / "schema.json"), *options]
        if instance is not None:
            (tmp_path / "instance.json").write_text(json.dumps(instance))
            arguments += ["--check", str(tmp_path / "instance.json")]
        return CliRunner().invoke(grammar, arguments)

    return one


def test_the_grammar_is_printed(run):
    """As the compiler gives it."""
    result = run({"type": "boolean"})
    assert result.exit_code == 0
    assert result.output == schema_to_gbnf({"type": "boolean"})


def test_a_refusal_has_its_place(run):
    """On standard error, with status 1."""
    result = run({"properties": {"a": {"type": "string", "pattern": "("}}})
    assert result.exit_code == 1
    assert "#/properties/a/pattern" in result.output


def test_an_instance_is_judged(run):
    """Status 0 if it conforms, 1 if not."""
    assert run({"minimum": 3}, instance=3).exit_code == 0
    result = run({"minimum": 3}, instance=2)
    assert result.exit_code == 1
    assert "does not conform" in result.output


def test_the_loosened_grammar_says_what_it_left_out(run):
    """As comments before the rules."""
    result = run({"type": "string", "pattern": "\\bx"}, "--loose")
    assert result.exit_code == 0
    assert result.output.startswith("# not enforced: #/pattern\nroot ::= ")


def test_what_is_no_json_is_said_so(run):
    """Without a traceback."""
    result = run("{")
    assert result.exit_code == 1
    assert "is no JSON" in result.output
