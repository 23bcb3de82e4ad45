"""`b3node grammar`: compiles a schema, or checks an instance against it."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from b3node.errors import Refusal
from b3node.grammar import conforms, schema_to_gbnf, schema_to_loose_gbnf

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("schema", type=_FILE)
@click.option("--check", "instance", type=_FILE, help="Judge this JSON file by the schema instead.")
@click.option("--loose", is_flag=True, help="Leave out what cannot be enforced, and say what.")
def grammar(schema: Path, instance: Path | None, *, loose: bool) -> None:
    """Print the GBNF of a JSON Schema, or the refusal and its place.

    The exit status is 0 for a grammar or a conforming instance, 1 for a refusal or one that does not conform.
    """
    document = _read(schema)
    try:
        if instance is not None:
            _judge(document, _read(instance))
        elif loose:
            _print_loose(document)
        else:
            click.echo(schema_to_gbnf(document, param=None), nl=False)
    except Refusal as refusal:
        raise click.ClickException(refusal.message) from None


def _read(path: Path) -> object:
    try:
        return msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise click.ClickException(f"{path} is no JSON.") from None


def _judge(schema: object, value: object) -> None:
    if not conforms(schema, value, param=None):
        raise click.ClickException("The instance does not conform.")
    click.echo("The instance conforms.")


def _print_loose(schema: object) -> None:
    found = schema_to_loose_gbnf(schema, param=None)
    for place in found.loosened:
        click.echo(f"# not enforced: {place}")
    click.echo(found.gbnf, nl=False)
