"""`b3node demo` runs a node, asks it one question, and stops."""

from __future__ import annotations

import asyncio
import shlex
import sys
from typing import Any, Final

import click

from b3node.cli.ask import DEFAULT_URL, stream
from b3node.cli.serve import run, with_options
from b3node.config import Config

QUESTION: Final = "What is the capital of France? Answer in one sentence."


@click.command(short_help="Serve, ask one question, print the answer, and stop.")
@click.option("--question", default=QUESTION, show_default=True, help="What to ask.")
@with_options
@click.option("--port", type=int, help="The port.  [default: a free one]")
def demo(question: str, **given: Any) -> None:
    """Serve, ask one question over HTTP, print the answer and how to go on, and stop."""
    command = _serve_command(click.get_current_context())

    async def once(config: Config, url: str) -> None:
        click.secho(f"\n> {question}\n", bold=True)
        await asyncio.to_thread(stream, url, question, max_output_tokens=128, temperature=0.0)
        click.echo(_how_to_go_on(command, next(iter(config.models)), config.port or Config().port))

    sys.exit(run({**given, "port": given["port"] or 0}, "warning", once))


def _serve_command(demo: click.Context) -> str:
    """The `b3node serve` with the options of a `b3node demo`."""
    words = ["b3node", "serve"]
    for option in demo.command.params:
        value = demo.params.get(option.name or "")
        if option.name != "question" and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words += [word for each in values for word in (option.opts[0], str(each))]
    return shlex.join(words)


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
