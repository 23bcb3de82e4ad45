"""The options of a node: one definition for the file, the command line, its help and the README."""

from __future__ import annotations

import os
from typing import Any

import click
import pytest

from b3node import config
from b3node.cli.options import SECTIONS, options, parameters
from b3node.config import Budgets, Config, NodeOptions
from tests.cli import option_tables
from tests.cli.test_serve import configured

MODEL = ("--model", f"m={__file__}")
GIVEN: dict[str, tuple[tuple[str, ...], object]] = {
    "host": (("--host", "::1"), "::1"),
    "port": (("--port", "0"), 0),
    "node": (("--node", "a-1"), "a-1"),
    "hosts": (("--hosts", "a", "--hosts", "b"), ("a", "b")),
    "origins": (("--origins", "https://a"), ("https://a",)),
    "quiet": (("--quiet",), True),
    "ctx": (("--ctx", "1"), 1),
    "cells": (("--cells", "2"), 2),
    "parallel": (("--parallel", "3"), 3),
    "queue": (("--queue", "4"), 4),
    "queue_seconds": (("--queue-seconds", "5.5"), 5.5),
    "token_gap": (("--token-gap", "0.5"), 0.5),
    "gpu_layers": (("--gpu-layers", "6"), 6),
    "threads": (("--threads", "7"), 7),
    "host_cache": (("--host-cache", "8"), 8),
    "kv_type": (("--kv-type", "f32"), "f32"),
    "flash_attention": (("--no-flash-attention",), False),
    "drafts": (("--no-drafts",), False),
    "thinking": (("--thinking", "low=9", "--thinking", "high=unlimited"), Budgets(low=9, high="unlimited")),
    "max_request_bytes": (("--max-request-bytes", "10"), 10),
    "prepare_workers": (("--prepare-workers", "2"), 2),
}


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
    named = {option.name for struct in SECTIONS.values() for option in options(struct)}

    assert named == GIVEN.keys()
    assert {parameter.name for parameter in parameters()} == {*named, "config_file", "models"}


@pytest.mark.parametrize("name", GIVEN)
def test_a_given_option_reaches_the_configuration(name: str) -> None:
    """With the type that the Struct gives it."""
    arguments, value = GIVEN[name]
    made: Any = configured(*MODEL, *arguments)
    found = made if name in NodeOptions.__struct_fields__ else made.models["m"]

    assert getattr(found, name) == value


def test_nothing_given_is_all_defaults() -> None:
    """An option that is left out does not hide the file's value or a default."""
    assert configured(*MODEL) == config.resolve({"models": {"m": {"path": __file__}}})


@pytest.mark.parametrize("text", ["low", "=1", "low="])
def test_a_table_is_given_by_name_and_value(text: str) -> None:
    """Anything else is refused with the option's name."""
    with pytest.raises(click.ClickException, match=f"--thinking {text}: expected NAME=VALUE"):
        configured(*MODEL, "--thinking", text)


def test_defaults_read_as_on_the_command_line() -> None:
    """Switches are on or off, seconds have no needless digits."""
    shown = {option.name: option.default for struct in SECTIONS.values() for option in options(struct)}

    assert (shown["drafts"], shown["quiet"], shown["queue_seconds"]) == ("on", "off", "30")
    assert shown["thinking"] == "low=1024 medium=4096 high=16384 xhigh=32768"
    assert "None" not in shown.values()
    assert Config().port == int(shown["port"])
