"""The options of a node: one definition for the file, the command line, its help and the README."""

from __future__ import annotations

import os

import click
import msgspec
import pytest

from b3node import config
from b3node.cli.options import Option, options, parameters
from b3node.config import Config, EngineOptions, NodeOptions
from b3node.llama import settings
from b3node.workers.engine_process import GAP_SECONDS_CPU, GAP_SECONDS_GPU
from tests.cli import option_tables
from tests.cli.test_serve import configured
from tests.option_values import OPTIONS, example

MODEL = ("--model", f"m={__file__}")


def test_the_readme_lists_every_option() -> None:
    """With the words and defaults of the help; `B3NODE_GOLDEN=write` writes the tables anew."""
    readme = option_tables.README.read_text(encoding="utf-8")
    if os.environ.get("B3NODE_GOLDEN") == "write":
        readme = option_tables.replaced(readme)
        option_tables.README.write_text(readme, encoding="utf-8")

    assert option_tables.replaced(readme) == readme


def test_a_readme_without_the_marks_is_refused() -> None:
    """Rather than left without tables."""
    with pytest.raises(ValueError, match="no place"):
        option_tables.replaced("# b3node\n")


def test_every_option_is_on_the_command_line() -> None:
    """Each field of the Structs, and nothing else but the file and the models."""
    fields = {*NodeOptions.__struct_fields__, *EngineOptions.__struct_fields__}

    assert {option.name for option in OPTIONS} == fields
    assert {parameter.name for parameter in parameters()} == {*fields, "config_file", "models"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: str(option.name))
def test_the_command_line_sets_the_same_as_the_file(option: Option) -> None:
    """With the type that the Struct gives it."""
    value, arguments = example(option)
    table: config.Table = {option.name: value, "models": {"m": {"path": __file__}}}

    assert configured(*MODEL, *arguments) == config.resolve(table) != configured(*MODEL)


def test_an_option_without_help_is_refused() -> None:
    """Help is part of an option's one definition; so is being a field of a Struct."""

    class Silent(msgspec.Struct):
        loud: bool = False

    with pytest.raises(TypeError, match="the option loud has no help"):
        options(Silent)


def test_nothing_given_is_all_defaults() -> None:
    """An option that is left out does not hide the file's value or a default."""
    assert configured(*MODEL) == config.resolve({"models": {"m": {"path": __file__}}})


@pytest.mark.parametrize("text", ["low", "=1", "low="])
def test_a_table_is_given_by_name_and_value(text: str) -> None:
    """Anything else is refused with the option's name."""
    with pytest.raises(click.ClickException, match=f"--thinking {text}: expected NAME=VALUE"):
        configured(*MODEL, "--thinking", text)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("-1", "expected `int` >= 1"),
        ("9" * 20, "expected `int` <= "),
        ("9" * 5000, "invalid enum value"),
        ("many", "invalid enum value"),
    ],
    ids=["negative", "large", "endless", "word"],
)
def test_a_value_of_a_table_is_judged_as_the_files(value: str, said: str) -> None:
    """A number is a number, whatever its sign and length, and the refusal names its place."""
    with pytest.raises(click.ClickException) as caught:
        configured(*MODEL, "--thinking", f"low={value}")

    assert caught.value.message.startswith(f"thinking.low: {said}")


def test_defaults_read_as_on_the_command_line() -> None:
    """Switches are on or off, seconds have no needless digits."""
    shown = {option.name: option.default for option in OPTIONS}

    assert (shown["drafts"], shown["quiet"], shown["queue_seconds"]) == ("on", "off", "30")
    assert shown["thinking"] == "low=1024 medium=4096 high=16384 xhigh=32768"
    assert "None" not in shown.values()
    assert Config().port == int(shown["port"])


def test_defaults_that_an_engine_chooses_are_the_ones_described() -> None:
    """Their texts name the numbers of `llama.settings` and of the engine's process."""
    shown = {option.name: option.default for option in OPTIONS}

    assert shown["ctx"] == (
        f"as trained, up to {settings.DEFAULT_CTX_CPU} on a CPU and {settings.DEFAULT_CTX_GPU} on a GPU"
    )
    assert shown["parallel"] == (
        f"{settings.DEFAULT_PARALLEL}; {settings.DEFAULT_PARALLEL_RECURRENT} for a model with recurrent layers"
    )
    assert shown["token_gap"] == f"{GAP_SECONDS_CPU} on a CPU, {GAP_SECONDS_GPU} on a GPU"
    assert (settings.DEFAULT_HOST_CACHE_BYTES, settings.HOST_CACHE_SHARE) == (1 << 30, 8)
