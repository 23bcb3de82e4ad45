"""`b3node serve` runs a node."""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from b3node.workers.prestart import ahead

if TYPE_CHECKING:
    from b3node.config import Config
    from b3node.service.log import Level

Then = Callable[["Config", str], Awaitable[None]]
"""What is done with a node's configuration and URL once a model is ready."""
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


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say what is served and how."""
    for option in reversed(_options):
        command = option(command)
    return command


@click.command(short_help="Serve models until Ctrl-C; by default the embedded one.")
@with_options
@click.option("--port", type=int, help="The port; 0 takes a free one.  [default: 8080]")
@click.option("--quiet", is_flag=True, help="No log line a request.")
def serve(quiet: bool, **given: Any) -> None:  # noqa: FBT001 - click passes options by name
    """Serve models until Ctrl-C; without one, the embedded SmolLM2-135M."""
    sys.exit(run(given, "warning" if quiet else "info"))


def run(given: dict[str, Any], level: Level, then: Then | None = None) -> int:
    """Runs a node to its end, as the options say, or until `then` returns. The exit status.

    A model's processes are started before anything else, and the rest is imported while the embedded model is found and
    checked. Raises `click.ClickException` on options that cannot be meant.
    """
    gc.disable()  # of what is imported nothing is garbage
    try:
        with ahead():
            with ThreadPoolExecutor(1) as beside:
                running = beside.submit(import_module, "b3node.cli.node_runner")
                config = import_module("b3node.cli.options").configured(**given)
            return int(running.result().served(config, level, then and partial(then, config)))
    finally:
        gc.enable()
