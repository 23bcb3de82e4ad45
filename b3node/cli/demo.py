"""`b3node demo` runs a node, asks it one question, and stops."""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from b3node.cli.ask import DEFAULT_URL, stream
from b3node.cli.serve import NodeCommand, run

if TYPE_CHECKING:
    from b3node.config import Config

QUESTION: Final = "What is the capital of France? Answer in one sentence."


@click.command(cls=NodeCommand, short_help="Serve, ask one question, print the answer, and stop.")
@click.option("--question", default=QUESTION, show_default=True, help="What to ask.")
@click.option("--port", type=int, metavar="N", default=0, help="The port.  [default: a free one]")
@click.option("--quiet", is_flag=True, default=True, hidden=True)
def demo(question: str, **given: Any) -> None:
    """Serve, ask one question over HTTP, print the answer and how to go on, and stop."""
    command = _serve_command(click.get_current_context())

    async def once(config: Config, url: str) -> None:
        click.secho(f"\n> {question}\n", bold=True)
        await import_module("asyncio").to_thread(
            stream, url, question, max_output_tokens=128, temperature=0.0
        )
        click.echo(_how_to_go_on(command, next(iter(config.models)), config.port or type(config)().port))

    sys.exit(run(given, once))


def _serve_command(demo: click.Context) -> str:
    """Returns the `b3node serve` with the options that were given to a `b3node demo`."""
    words = ["b3node", "serve"]
    for option in demo.command.get_params(demo):
        name = option.name or ""
        if name != "question" and demo.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += _words(option, demo.params[name])
    return shlex.join(words)


def _words(option: click.Parameter, value: object) -> list[str]:
    """Returns an option's part of a command line."""
    if isinstance(value, bool):
        return [option.opts[0] if value else option.secondary_opts[0]]
    values = value if isinstance(value, tuple) else (value,)
    return [word for each in values for word in (option.opts[0], str(each))]


def _how_to_go_on(command: str, model: str, port: int) -> str:
    url = f"http://127.0.0.1:{port}"
    where = "" if url == DEFAULT_URL else f" --url {url}"
    return f"""
Keep it running:  {command}
Ask from a shell: b3node ask "your question"{where}
From any OpenAI SDK, with only the base URL changed:

    from openai import OpenAI
    client = OpenAI(base_url="{url}/v1", api_key="none")
    print(client.responses.create(model="{model}", input="Hello!").output_text)
"""
