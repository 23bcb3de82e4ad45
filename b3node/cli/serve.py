"""`b3node serve` runs a node; `b3node demo` runs one, asks it one question, and stops."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click
import uvloop
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from b3node import config as configuration, embedded
from b3node.api.listener import listen
from b3node.cli.ask import DEFAULT_URL, stream
from b3node.config import Config, ConfigError, ModelConfig
from b3node.service import log
from b3node.workers.fleet import Fleet, FleetModel

if TYPE_CHECKING:
    from b3node.api.server import Server

QUESTION: Final = "What is the capital of France? Answer in one sentence."
_console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

_Then = Callable[[str], Awaitable[None]]
_options = [
    click.option(
        "--config", "config_file", type=click.Path(path_type=Path), help="A TOML file; options here win."
    ),
    click.option(
        "--model",
        "models",
        multiple=True,
        metavar="ID=PATH",
        help="A model to serve, instead of the file's; repeatable.",
    ),
    click.option("--host", help="Where to listen.  [default: 127.0.0.1]"),
    click.option(
        "--ctx",
        type=int,
        help="Tokens of one conversation.  [default: the model's, up to 8192, on a GPU 32768]",
    ),
    click.option("--parallel", type=int, help="Conversations that run at once.  [default: 16]"),
    click.option("--gpu-layers", type=int, help="Layers on the GPU.  [default: all, with a GPU build]"),
    click.option("--threads", type=int, help="CPU threads that compute.  [default: the physical cores]"),
]


def _with_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_options):
        command = option(command)
    return command


@click.command(short_help="Serve models until Ctrl-C; by default the embedded one.")
@_with_options
@click.option("--port", type=int, help="The port; 0 takes a free one.  [default: 8080]")
@click.option("--quiet", is_flag=True, help="No log line a request.")
def serve(quiet: bool, **given: Any) -> None:  # noqa: FBT001 - click passes options by name
    """Serve models until Ctrl-C; without one, the embedded SmolLM2-135M."""
    sys.exit(_served(_configured(**given), "warning" if quiet else "info", None))


@click.command(short_help="Serve, ask one question, print the answer, and stop.")
@click.option("--question", default=QUESTION, show_default=True, help="What to ask.")
@_with_options
@click.option("--port", type=int, help="The port.  [default: a free one]")
def demo(question: str, **given: Any) -> None:
    """Serve, ask one question over HTTP, print the answer and how to go on, and stop."""
    config = _configured(**{**given, "port": given["port"] or 0})
    command = _serve_command(click.get_current_context())

    async def once(url: str) -> None:
        click.secho(f"\n> {question}\n", bold=True)
        await asyncio.to_thread(stream, url, question, max_output_tokens=128, temperature=0.0)
        click.echo(_how_to_go_on(command, next(iter(config.models)), config.port or Config().port))

    sys.exit(_served(config, "warning", once))


def _serve_command(demo: click.Context) -> str:
    """The `b3node serve` with the options of a `b3node demo`."""
    words = ["b3node", "serve"]
    for option in demo.command.params:
        value = demo.params.get(option.name or "")
        if option.name != "question" and value is not None:
            values = value if isinstance(value, tuple) else (value,)
            words += [word for each in values for word in (option.opts[0], str(each))]
    return shlex.join(words)


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
            raise ConfigError(f"--model {text}: expected ID=PATH")
        if name in models:
            raise ConfigError(f"--model {text}: there is another model of that name")
        models[name] = ModelConfig(path=path)
    return models or None


def _embedded() -> dict[str, ModelConfig]:
    path = embedded.find()
    _console.print(f"No model is configured: serving the embedded one, {embedded.MODEL_ID}.")
    return {embedded.MODEL_ID: ModelConfig(path=str(path))}


def _served(config: Config, level: log.Level, then: _Then | None) -> int:
    """Runs a node to its end, and writes its log to the last line. The exit status.

    On uvloop, which halves what a streamed token costs.
    """
    lines = log.Lines(sys.stderr)
    log.configure(level, lines)
    try:
        _give_way()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_run(config, then))
    finally:
        lines.close()


def _give_way() -> None:
    """Lets the compute threads of engines finish what they are at before this process handles a token.

    Each barrier of a step waits for its slowest thread, so a thread that is interrupted holds up all. Under
    Linux's batch policy waking up interrupts nobody; children are started under the usual one. (One client,
    two cores: 7.7 instead of 8.3 ms a token.)
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH | os.SCHED_RESET_ON_FORK, os.sched_param(0))


async def _run(config: Config, then: _Then | None) -> int:
    """Serves; with `then`, calls it with the URL once a model is ready, and stops. The exit status."""
    with _Bars() as bars:
        try:
            listener = listen(config.host, config.port)
        except OSError as error:
            _console.print(f"Cannot listen on {config.host}:{config.port}: {error.strerror}.")
            return 1
        fleet = Fleet(config, bars.show)
        try:
            fleet.start()
            return await _serve_fleet(config, fleet, listener, bars, then)
        finally:
            await fleet.stop()


async def _serve_fleet(
    config: Config, fleet: Fleet, listener: socket.socket, bars: _Bars, then: _Then | None
) -> int:
    """Serves models that are being loaded; the server is imported beside them. The exit status."""
    front = await asyncio.to_thread(import_module, "b3node.cli.front")
    server: Server = front.front(config, fleet.models.values(), listener, _in_url(config.host))
    serving = asyncio.create_task(front.serve(server))
    settled = asyncio.create_task(fleet.settle())
    await asyncio.wait({serving, settled}, return_when=asyncio.FIRST_COMPLETED)
    bars.end()
    loaded = settled.done()
    try:
        if loaded:
            url = f"http://{_in_url(config.host)}:{server.port}"
            _announce(url, fleet)
            if then is not None and _any_ready(fleet):
                await then(url)
        if then is None:
            await serving
    finally:
        server.stop()
        await asyncio.wait([serving])
        settled.cancel()
    return 1 if loaded and not _any_loaded(fleet) else 0


def _any_ready(fleet: Fleet) -> bool:
    return any(model.state == "ready" for model in fleet.models.values())


def _any_loaded(fleet: Fleet) -> bool:
    return any(model.facts is not None for model in fleet.models.values())


def _announce(url: str, fleet: Fleet) -> None:
    for model in fleet.models.values():
        _console.print(f"{url}  {_line(model)}")


def _line(model: FleetModel) -> str:
    facts = model.facts
    if model.state != "ready" or facts is None:
        return f"{model.id} could not be loaded; the log says why"
    return (
        f"{model.id} ({facts.description})  context {facts.n_ctx}  slots {facts.n_parallel}  {facts.device}"
    )


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


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


class _Bars:
    """One progress bar a loading model; invisible once all are loaded, and where there is no terminal."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("loading {task.description}", markup=False),
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
        self.end()

    def end(self) -> None:
        """Takes the bars away. Idempotent."""
        self._progress.stop()

    def show(self, model: str, share: float) -> None:
        """Shows that `share` of `model` is loaded; does nothing once the bars are gone."""
        if model not in self._tasks:
            self._tasks[model] = self._progress.add_task(model, total=1.0)
        self._progress.update(self._tasks[model], completed=share)
