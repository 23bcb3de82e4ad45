"""Options of a command that runs a node, made from the Structs of `config`.

A new field of `NodeOptions` or `EngineOptions` is an option of `serve` and `demo`, with its type, choices,
help and default, without a line here. Bounds are checked with the file's, by `config`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec import inspect

from b3node import config as configuration, embedded
from b3node.config import Config, ConfigError, EngineOptions, NodeOptions

SECTIONS: Final[dict[str, type[msgspec.Struct]]] = {"Node": NodeOptions, "Each model": EngineOptions}
"""Headings of the help and of the README, and the Structs whose fields stand under them."""


class Option(NamedTuple):
    """One option: `kind` is the type of its value, `default` a text for people."""

    name: str
    help: str
    default: str
    kind: inspect.Type

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"


class NodeOption(click.Option):
    """An option under a heading of the help."""

    section: str

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Returns names and help; a switch as `--[no-]drafts`, which keeps the column narrow."""
        record = super().get_help_record(ctx)
        if record is None or not self.secondary_opts:
            return record
        return f"--[no-]{self.opts[0][2:]}", record[1]


def options(struct: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Returns the options that a Struct defines, in its order."""
    match inspect.type_info(struct):
        case inspect.StructType(fields=fields):
            return tuple(map(_option, fields))
    raise TypeError(f"{struct.__name__} defines no options")


def parameters() -> list[click.Option]:
    """Returns the command-line options of a node: file, models, and one for each field of the Structs."""
    found: list[click.Option] = [
        click.Option(
            ["--config", "config_file"],
            type=click.Path(path_type=Path),
            help="A TOML file; options here win over its top level.",
        ),
        click.Option(
            ["--model", "models"],
            multiple=True,
            metavar="ID=PATH",
            help="A model to serve, instead of the file's; repeatable.",
        ),
    ]
    for section, struct in SECTIONS.items():
        for option in options(struct):
            parameter = _parameter(option)
            parameter.section = section
            found.append(parameter)
    return found


def configured(config_file: Path | None, models: tuple[str, ...], **given: Any) -> Config:
    """Returns the file's configuration with the command line over it; without a model, with the embedded one.

    Raises `click.ClickException` if the result cannot be served.
    """
    try:
        table = configuration.load(config_file) if config_file is not None else {}
        table = configuration.override(table, {"models": _models(models), **_values(given)})
        if not table.get("models"):
            table = configuration.override(table, {"models": _embedded()})
        return configuration.check(configuration.resolve(table))
    except (ConfigError, embedded.EmbeddedModelError) as error:
        raise click.ClickException(str(error)) from error


def _option(field: inspect.Field) -> Option:
    """Returns the option that a field defines. Raises `TypeError` where the field has no help."""
    match field.type:
        case inspect.Metadata(type=kind, extra=extra, extra_json_schema={"description": description}):
            if isinstance(kind, inspect.UnionType):
                kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
            default = (extra or {}).get("default") or _shown(field.default)
            return Option(field.encode_name, description, default, kind)
    raise TypeError(f"the option {field.encode_name} has no help")


def _shown(default: object) -> str:
    """Returns a default in the notation of the command line."""
    match default:
        case bool():
            return "on" if default else "off"
        case float():
            return f"{default:g}"
        case msgspec.Struct():
            return " ".join(f"{key}={value}" for key, value in msgspec.structs.asdict(default).items())
    return str(default)


def _parameter(option: Option) -> NodeOption:
    text = f"{option.help}  [default: {option.default}]"
    match option.kind:
        case inspect.BoolType():
            return NodeOption([f"{option.flag}/--no-{option.flag[2:]}"], default=None, help=text)
        case inspect.LiteralType(values=values):
            return NodeOption([option.flag], type=click.Choice([*map(str, values)]), help=text)
        case inspect.VarTupleType():
            return NodeOption([option.flag], multiple=True, help=_repeatable(text))
        case inspect.StructType(fields=fields):
            name = fields[0].encode_name
            return NodeOption([option.flag], multiple=True, metavar=f"{name}=N", help=_repeatable(text))
        case inspect.IntType():
            return NodeOption([option.flag], type=int, metavar="N", help=text)
        case inspect.FloatType():
            return NodeOption([option.flag], type=float, metavar="X", help=text)
    return NodeOption([option.flag], help=text)


def _repeatable(text: str) -> str:
    return text.replace(".  [default", "; repeatable.  [default")


def _values(given: dict[str, Any]) -> dict[str, object]:
    """Returns the options that were given, as the file would say them. Raises `ConfigError`."""
    tables = {
        option.name: option.flag
        for struct in SECTIONS.values()
        for option in options(struct)
        if isinstance(option.kind, inspect.StructType)
    }
    values = {name: value for name, value in given.items() if value is not None and value != ()}
    for name, flag in tables.items():
        if name in values:
            values[name] = dict(_assigned(flag, text) for text in values[name])
    return values


def _assigned(flag: str, text: str) -> tuple[str, object]:
    """Returns name and value of `low=1024`. Raises `ConfigError`."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ConfigError(f"{flag} {text}: expected NAME=VALUE")
    try:
        return name, int(value)
    except ValueError:
        return name, value


def _models(given: tuple[str, ...]) -> dict[str, object] | None:
    models: dict[str, object] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ConfigError(f"--model {text}: expected ID=PATH")
        if name in models:
            raise ConfigError(f"--model {text}: there is another model of that name")
        models[name] = {"path": path}
    return models or None


def _embedded() -> dict[str, object]:
    path = embedded.find()
    click.echo(f"No model is configured: serving the embedded one, {embedded.MODEL_ID}.", err=True)
    return {embedded.MODEL_ID: {"path": str(path)}}
