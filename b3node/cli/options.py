"""The configuration of a node from a file and the options of a command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from b3node import config as configuration, embedded
from b3node.config import Config, ConfigError, ModelConfig


def configured(config_file: Path | None, models: tuple[str, ...], **given: Any) -> Config:
    """The file, the command line over it, and the embedded model where neither names one.

    Raises `click.ClickException` where that is no configuration.
    """
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
    click.echo(f"No model is configured: serving the embedded one, {embedded.MODEL_ID}.", err=True)
    return {embedded.MODEL_ID: ModelConfig(path=str(path))}
