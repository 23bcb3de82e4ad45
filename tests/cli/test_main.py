from __future__ import annotations

import json
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


HELP = """
import json, sys
from click.testing import CliRunner
from b3node.cli.main import main
run = lambda words: CliRunner().invoke(main, [*words, "--help"], prog_name="b3node", terminal_width=100)
print(json.dumps({word: run(word.split()).output for word in json.loads(sys.argv[1])}))
"""


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """Returns the help of every command, from a process of its own: click keeps the commands of earlier
    tests.
    """
    command = [sys.executable, "-P", "-c", HELP, json.dumps(["", *COMMANDS])]
    said: dict[str, str] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return said


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_reads_as_before(helps: dict[str, str], command: str) -> None:
    """The golden text was read by a person; `B3NODE_GOLDEN=write` writes it anew."""
    path = GOLDEN / f"help{'-' * bool(command)}{command}.txt"
    if os.environ.get("B3NODE_GOLDEN") == "write":
        path.write_text(helps[command], encoding="utf-8")

    assert helps[command] == path.read_text(encoding="utf-8")


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
