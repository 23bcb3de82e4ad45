from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from b3node.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_reads_as_before(command: str) -> None:
    """What a person sees first is what another person last looked at; `B3NODE_GOLDEN=write` writes it anew."""
    result = CliRunner().invoke(main, [*command.split(), "--help"], prog_name="b3node", terminal_width=100)
    path = GOLDEN / f"help{'-' * bool(command)}{command}.txt"
    if os.environ.get("B3NODE_GOLDEN") == "write":
        path.write_text(result.output, encoding="utf-8")

    assert result.exit_code == 0
    assert result.output == path.read_text(encoding="utf-8")


def test_the_version_is_the_packages() -> None:
    """One number, in the project file and on the command line."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    result = CliRunner().invoke(main, ["--version"], prog_name="b3node")

    assert (result.exit_code, result.output) == (0, f"b3node, version {project['version']}\n")


def test_asking_loads_no_server() -> None:
    """Only the command that is asked for is imported, so a question is out at once."""
    script = (
        "import sys; from b3node.cli.main import main; main(['ask', '--help'], standalone_mode=False);"
        "print(sorted({'litestar', 'uvicorn', 'jsonschema'} & set(sys.modules)))"
    )
    command = [sys.executable, "-P", "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert said.endswith("\n[]\n")


def test_a_command_that_is_none_is_told() -> None:
    """With the name that was typed."""
    result = CliRunner().invoke(main, ["srve"], prog_name="b3node")

    assert result.exit_code == 2
    assert "No such command 'srve'" in result.output


def test_no_command_shows_what_there_is() -> None:
    """A bare `b3node` is a question."""
    result = CliRunner().invoke(main, [], prog_name="b3node")

    assert result.exit_code == 2
    assert "Commands:" in result.output
