"""`b3node serve` runs a node. See `workers.startup` for the order of its imports."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from b3node.workers import startup

if TYPE_CHECKING:
    from b3node.config import Config

AfterStart = Callable[["Config", str], Awaitable[None]]
"""Called with a node's configuration and URL once a model is ready; the node stops when it returns."""


class NodeCommand(click.Command):
    """A command that runs a node: its options come from `cli.options`, after processes were started ahead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Starts processes for a command line that asks for more than help, then reads it.

        A shell that completes a word asks for nothing.
        """
        with ExitStack() as stack:
            if not ctx.resilient_parsing and not {*ctx.help_option_names} & {*args}:
                stack.enter_context(startup.prestart())
            rest = super().parse_args(ctx, args)
            ctx.call_on_close(stack.pop_all().close)  # a line that was refused ends them at once
            return rest

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Returns the command's own options and those of a node that it does not declare itself."""
        *own, help_option = super().get_params(ctx)
        names = {parameter.name for parameter in own}
        return [*own, *(option for option in _parameters() if option.name not in names), help_option]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if (record := parameter.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        width = max(len(names) for records in sections.values() for names, _ in records)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl([(names.ljust(width), text) for names, text in records])


@click.command(cls=NodeCommand, short_help="Serve models until Ctrl-C; by default the embedded one.")
def serve(**given: Any) -> None:
    """Serve models until Ctrl-C; without one, the embedded SmolLM2-135M."""
    sys.exit(run(given))


def run(given: dict[str, Any], then: AfterStart | None = None) -> int:
    """Runs a node to its end, as the options say, or until `then` returns. Returns the exit status.

    Raises `click.ClickException` on options that cannot be served.
    """
    runner = startup.importing("b3node.cli.node_runner")
    config = import_module("b3node.cli.options").configured(**given)
    return int(runner.result().served(config, then and partial(then, config)))


@cache
def _parameters() -> tuple[click.Option, ...]:
    return tuple(import_module("b3node.cli.options").parameters())
