"""`b3node serve` runs a node; `b3node demo` runs one, asks it one question, and stops."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from b3node import config as configuration, embedded
from b3node.api.access import Access
from b3node.api.app import create_app
from b3node.api.server import Server, serve as serve_http
from b3node.cli.ask import stream
from b3node.config import Config, ConfigError, ModelConfig
from b3node.service import log
from b3node.service.node import Node
from b3node.workers.fleet import Fleet, FleetModel

QUESTION: Final = "What is the capital of France? Answer in one sentence."
_console = Console(stderr=True, highlight=False)

_options = [
    click.option("--config", "config_file", type=click.Path(path_type=Path), help="A TOML file."),
    click.option("--model", "models", multiple=True, metavar="ID=PATH", help="A model to serve; repeatable."),
    click.option("--host", help="Where to listen.  [default: 127.0.0.1]"),
    click.option("--port", type=int, help="The port; 0 takes a free one.  [default: 8080]"),
    click.option("--ctx", type=int, help="Tokens of one conversation.  [default: the model's, up to 8192]"),
    click.option("--parallel", type=int, help="Conversations that run at once.  [default: 16]"),
    click.option("--gpu-layers", type=int, help="Layers on the GPU.  [default: all, with a GPU build]"),
    click.option("--threads", type=int, help="CPU threads that compute.  [default: the physical cores]"),
]


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_options):
        command = option(command)
    return command


@click.command()
@_with_options
@click.option("--quiet", is_flag=True, help="No log line a request.")
def serve(quiet: bool, **given: Any) -> None:  # noqa: FBT001 - click passes options by name
    """Serve models until Ctrl-C; without one, the embedded SmolLM2-135M."""
    config = _configured(**given)
    log.configure("warning" if quiet else "info")
    sys.exit(asyncio.run(_run(config, None)))


@click.command()
@click.option("--question", default=QUESTION, show_default=True, help="What to ask.")
@_with_options
def demo(question: str, **given: Any) -> None:
    """Serve, ask one question over HTTP, print the answer and how to go on, and stop."""
    config = _configured(**{**given, "port": given["port"] or 0})
    log.configure("warning")

    async def once(url: str) -> None:
        click.secho(f"\n> {question}\n", bold=True)
        await asyncio.to_thread(stream, url, question, max_output_tokens=128, temperature=0.0)
        click.echo(_how_to_go_on(next(iter(config.models))))

    sys.exit(asyncio.run(_run(config, once)))


def _configured(config_file: Path | None, models: tuple[str, ...], **given: Any) -> Config:
    """The file, the command line over it, and the embedded model where neither names one."""
    try:
        config = configuration.load(config_file) if config_file is not None else Config()
        config = configuration.override(config, models=_models(models), **given)
        if not config.models:
            config = configuration.override(config, models=_embedded())
        return configuration.check(config)
    except (ConfigError, embedded.EmbeddedModelError) as error:
        raise click.ClickException(str(error)) from error


def _models(given: tuple[str, ...]) -> dict[str, ModelConfig] | None:
    models: dict[str, ModelConfig] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ConfigError(f"--model {text}: is to be ID=PATH")
        models[name] = ModelConfig(path=path)
    return models or None


def _embedded() -> dict[str, ModelConfig]:
    path = embedded.find()
    _console.print(f"No model is configured: serving the embedded one, {embedded.MODEL_ID}.")
    return {embedded.MODEL_ID: ModelConfig(path=str(path))}


async def _run(config: Config, then: Callable[[str], Awaitable[None]] | None) -> int:
    """Serves; with `then`, calls it with the URL once every model is ready, and stops. The exit status."""
    with _Bars() as bars:
        fleet = Fleet(config, bars.show)
        node = Node(config.node, fleet.models.values())
        try:
            app = create_app(node, Access.on_loopback(config.hosts, config.origins))
            server = Server(app, node, host=config.host, port=config.port)
        except OSError as error:
            _console.print(f"Cannot listen on {config.host}:{config.port}: {error.strerror}.")
            return 1
        fleet.start()
        serving = asyncio.create_task(serve_http(server))
        settled = asyncio.create_task(fleet.settle())
        await asyncio.wait({serving, settled}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if settled.done():
            url = f"http://{_in_url(config.host)}:{server.port}"
            _announce(url, fleet)
            if then is not None:
                await then(url)
                server.stop()
        await serving
    finally:
        settled.cancel()
        server.stop()
        await fleet.stop()
    return 0 if any(model.facts is not None for model in fleet.models.values()) else 1


def _announce(url: str, fleet: Fleet) -> None:
    for model in fleet.models.values():
        _console.print(f"{url}  {_line(model)}", soft_wrap=True)


def _line(model: FleetModel) -> str:
    facts = model.facts
    if model.state != "ready" or facts is None:
        return f"{model.id}: cannot be served, see the log above"
    return (
        f"{model.id} ({facts.description})  context {facts.n_ctx}  slots {facts.n_parallel}  {facts.device}"
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _how_to_go_on(model: str) -> str:
    return f"""
Keep it running:  b3node serve
Ask from a shell: b3node ask "your question"
From any OpenAI SDK, with only the base URL changed:

    from openai import OpenAI
    client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none")
    print(client.responses.create(model="{model}", input="Hello!").output_text)
"""


class _Bars:
    """One progress bar a loading model; invisible once all are loaded, and where there is no terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("loading {task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            console=_console,
            transient=True,
            disable=not _console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, model: str, share: float) -> None:
        """Shows that `share` of `model` is loaded; does nothing once the bars are gone."""
        if model not in self._tasks:
            self._tasks[model] = self._progress.add_task(model, total=1.0)
        self._progress.update(self._tasks[model], completed=share)
