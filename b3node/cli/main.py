"""The command line: `b3node` serve, ask, demo, grammar and render."""

from __future__ import annotations

import importlib
from typing import Final

import click

from b3node import __version__

COMMANDS: Final = {
    "ask": "b3node.cli.ask",
    "demo": "b3node.cli.demo",
    "grammar": "b3node.cli.grammar",
    "render": "b3node.cli.render",
    "serve": "b3node.cli.serve",
}
"""Modules by command; each holds the command under its name, and is imported for that command only."""


class Commands(click.Group):
    """A group of commands that are imported on first use."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Returns the names, in the order of the help."""
        return sorted(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Returns the command of that name; None if there is none."""
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(COMMANDS[name]), name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="b3node")
def main() -> None:
    """Serve GGUF models through the OpenAI Responses API."""


if __name__ == "__main__":
    main()
