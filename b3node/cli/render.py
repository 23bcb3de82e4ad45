"""`b3node render`: shows the prompt of a request as the model gets it."""

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
from b3node.errors import Refusal, too_large
from b3node.workers.messages import PrepareFailed, RequestRefused
from b3node.workers.one_shot import ANSWER_SECONDS
from b3node.workers.render_prompt import RenderedPrompt, RenderedToken, RenderOrder, render_prompt

MAX_CONTEXT_TOKENS: Final = 1 << 20
"""Tokens of the context if none is configured: large enough for a prompt of any length."""
_OPEN, _CLOSE = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"
"""Brackets around a special token."""


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

    Control tokens are marked; what a client wrote is never one. Nothing is generated. The exit status is 1
    for a request that is refused.
    """
    prompt = _rendered(request.read(), *_chosen(model, config_file))
    if machine:
        click.echo(msgspec.json.format(msgspec.json.encode(document(prompt)), indent=2))
        return
    click.echo("\n".join(map(_row, prompt.tokens)) if tokens else _marked_text(prompt.tokens))
    click.echo("\n" + "\n".join(summary(prompt)))


def _chosen(model: str | None, config_file: Path | None) -> tuple[str, ModelConfig]:
    """Returns the model's name and configuration. Raises `click.ClickException`."""
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


def _rendered(body: bytes, name: str, config: ModelConfig) -> RenderedPrompt:
    """Returns the prompt. Raises `click.ClickException` if the request gets none."""
    order = RenderOrder(
        config.path,
        config.ctx or MAX_CONTEXT_TOKENS,
        config.thinking,
        _decoded(body, name, config.max_request_bytes),
        time.time(),
    )
    try:
        answer = render_prompt(order)
    except EOFError:
        raise click.ClickException("The process that prepares prompts died of this request.") from None
    except TimeoutError:
        raise click.ClickException(f"The request got no prompt within {ANSWER_SECONDS:.0f} s.") from None
    match answer:
        case RequestRefused(message=message) | PrepareFailed(reason=message):
            raise click.ClickException(message)
    return answer


def _decoded(body: bytes, name: str, most_bytes: int) -> Request:
    """Returns the request, decoded for the model of that name. Raises `click.ClickException`."""
    try:
        if len(body) > most_bytes:
            raise too_large(len(body), most_bytes)
        return decode_request(_named(body, name))
    except Refusal as refusal:
        raise click.ClickException(refusal.message) from None


def _named(body: bytes, name: str) -> bytes:
    """Returns the body, with a `model` if it is an object without one."""
    try:
        members = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if isinstance(members, dict) and "model" not in members:
        return msgspec.json.encode({"model": name, **members})
    return body


def _marked_text(tokens: tuple[RenderedToken, ...]) -> str:
    """Returns the prompt's text, special tokens marked; characters of several tokens are whole."""
    text = ""
    for special, run in groupby(tokens, key=lambda token: token.special):
        if special:
            text += "".join(map(_marked, run))
        else:
            plain = b"".join(token.piece for token in run).decode(errors="backslashreplace")
            text += for_terminal(plain) if sys.stdout.isatty() else plain
    return text


def _marked(token: RenderedToken) -> str:
    """Returns a special token in brackets, in colour on a terminal."""
    return click.style(f"{_OPEN}{token.text}{_CLOSE}", fg="cyan", bold=True)


def _row(token: RenderedToken) -> str:
    return f"{token.id:>8}  {_marked(token) if token.special else repr(token.text)}"
