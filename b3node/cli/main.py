"""The command line: `b3node serve`, `b3node ask`, `b3node demo`."""

from __future__ import annotations

import click

from b3node import __version__
from b3node.cli.ask import ask
from b3node.cli.serve import demo, serve


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, package_name="b3node")
def main() -> None:
    """Serve GGUF models through the OpenAI Responses API."""


main.add_command(serve)
main.add_command(ask)
main.add_command(demo)

if __name__ == "__main__":
    main()
