"""`b3node render`: what a model is given for a request, for people who wonder why it answers as it does."""

from __future__ import annotations

import sys
import time
from itertools import groupby
from pathlib import Path
from typing import IO, Final

import click
import msgspec

from b3node import config as configuration, embedded
from b3node.cli.ask import for_terminal
from b3node.cli.prompt_report import document, summary
from b3node.config import ConfigError, ModelConfig
from b3node.contract.decode import decode_request
from b3node.contract.request import Request
from b3node.errors import Refusal
from b3node.workers.messages import PrepareFailed, RequestRefused
from b3node.workers.render_prompt import RenderedPrompt, RenderedToken, RenderOrder, render_prompt

UNBOUNDED: Final = 1 << 20
"""Tokens of a context, where none is configured: a prompt is shown whatever its length."""
_OPEN, _CLOSE = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
"""Around a special token."""


@click.command()
@click.argument("request", type=click.File("rb"))
@click.option(
    "--model", metavar="ID[=PATH]", help="Which model.  [default: the configured or the embedded one]"
)
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="The TOML file that configures it."
)
@click.option("--tokens", is_flag=True, help="Show the tokens, one a line, instead of the text.")
@click.option("--json", "machine", is_flag=True, help="Show all of it, as JSON.")
def render(
    request: IO[bytes], model: str | None, config_file: Path | None, *, tokens: bool, machine: bool
) -> None:
    """Show the prompt that REQUEST becomes, a file with the JSON body of a request (- is standard input).

    Control tokens are marked; what a client wrote is never one. Nothing is generated. The exit status is 1 for a
    request that is refused.
    """
    shown = _shown(request.read(), *_chosen(model, config_file))
    if machine:
        click.echo(msgspec.json.format(msgspec.json.encode(document(shown)), indent=2))
        return
    click.echo("\n".join(map(_row, shown.tokens)) if tokens else _told(shown.tokens))
    click.echo("\n" + "\n".join(summary(shown)))


def _chosen(model: str | None, config_file: Path | None) -> tuple[str, ModelConfig]:
    """The model's name and configuration. Raises `click.ClickException`."""
    try:
        table = configuration.load(config_file) if config_file is not None else {}
        name, named, path = (model or "").partition("=")
        if named:
            table = configuration.override(table, {"models": {name: {"path": path}}})
        elif not table.get("models"):
            table = configuration.override(
                table, {"models": {embedded.MODEL_ID: {"path": str(embedded.find())}}}
            )
        config = configuration.check(configuration.resolve(table))
    except (ConfigError, embedded.EmbeddedModelError) as error:
        raise click.ClickException(str(error)) from error
    name = name or next(iter(config.models))
    if name not in config.models:
        raise click.ClickException(f"There is no model {name}; there is {', '.join(config.models)}.")
    return name, config.models[name]


def _shown(body: bytes, name: str, config: ModelConfig) -> RenderedPrompt:
    """What the model is given. Raises `click.ClickException` if it is given nothing."""
    order = RenderOrder(
        config.path,
        config.ctx or UNBOUNDED,
        config.thinking,
        _decoded(body, name),
        time.time(),
    )
    try:
        answer = render_prompt(order)
    except EOFError:
        raise click.ClickException("The process that prepares prompts died of this request.") from None
    match answer:
        case RequestRefused(message=message) | PrepareFailed(reason=message):
            raise click.ClickException(message)
    return answer


def _decoded(body: bytes, name: str) -> Request:
    """The request, for the model of that name whatever it says itself."""
    try:
        return decode_request(_named(body, name))
    except Refusal as refusal:
        raise click.ClickException(refusal.message) from None


def _named(body: bytes, name: str) -> bytes:
    """The body with a `model`, if it is an object without one; else as it is, for the decoder to judge."""
    try:
        members = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if isinstance(members, dict) and "model" not in members:
        return msgspec.json.encode({"model": name, **members})
    return body


def _told(tokens: tuple[RenderedToken, ...]) -> str:
    """The prompt's text, special tokens marked; characters that several tokens make up are whole."""
    told = ""
    for special, run in groupby(tokens, key=lambda token: token.special):
        if special:
            told += "".join(map(_marked, run))
        else:
            text = b"".join(token.piece for token in run).decode(errors="backslashreplace")
            told += for_terminal(text) if sys.stdout.isatty() else text
    return told


def _marked(token: RenderedToken) -> str:
    """A special token in brackets, and in colour on a terminal."""
    return click.style(f"{_OPEN}{token.text}{_CLOSE}", fg="cyan", bold=True)


def _row(token: RenderedToken) -> str:
    return f"{token.id:>8}  {_marked(token) if token.special else repr(token.text)}"
