"""The node's configuration: a TOML file, the command line over it, and what both leave open.

    host = "127.0.0.1"
    port = 8080
    ctx = 8192            # for every model; a model may have its own

    [models."b3os/qwen3.5-9b"]
    path = "/models/qwen3.5-9b-q4_k_m.gguf"
    ctx = 32768

A wrong key or value is refused with its path, before anything is started.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

MAX_REQUEST_BYTES: Final = 10_485_760
"""Bytes of a request body that a model takes when nothing else is configured (contract decisions)."""

LARGEST_REQUEST: Final = 1 << 25
"""Bytes that a request body may have at most, whatever is configured: between processes it travels in one frame,
and a frame has at most 64 MiB."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
Memory = Annotated[int, msgspec.Meta(ge=0, le=1 << 44)]
KvType = Literal["f16", "f32", "q8_0"]
Layers = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_REQUEST)]
Thought = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] | Literal["unlimited"]
Gap = Annotated[float, msgspec.Meta(gt=0, le=10)]
ModelId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]

_FAULT: Final = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`)?", re.DOTALL)
_FIELD: Final = re.compile(
    r"object (?P<known>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL
)


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that a thought may have, for each `reasoning.effort` that turns thinking on.

    A thought never takes the room of the answer behind it, unless it is "unlimited". The numbers are a choice: about
    a page, three, a dozen and two dozen.
    """

    low: Thought = 1024
    medium: Thought = 4096
    high: Thought = 16_384
    xhigh: Thought = 32_768


class ConfigError(Exception):
    """The configuration is refused; the message names the path and says what would be right."""


class ModelConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One served model; what is None is taken from the top level, then chosen by the engine.

    `ctx` is the tokens of one conversation, `cells` those of the whole KV cache, `parallel` the sequences
    that run at once, `gpu_layers` how many layers go to the GPU (all, when not said), `threads` how many
    CPU threads compute, `host_cache` the bytes of host memory for prefixes that leave the KV cache,
    `flash_attention` whether it is used (on a GPU, and on a CPU that is not slow at it, when not said), `kv_type` how
    the cache stores keys and values (`f32` twice as large as `f16`, `q8_0` half), `drafts` whether tokens that are
    likely to come are computed ahead where that pays, `token_gap` the seconds that a running stream may wait because of
    a new prompt, `thinking` the tokens of a thought.
    """

    path: str
    ctx: Count | None = None
    cells: Count | None = None
    parallel: Count | None = None
    gpu_layers: Layers | None = None
    threads: Count | None = None
    host_cache: Memory | None = None
    flash_attention: bool | None = None
    kv_type: KvType = "f16"
    drafts: bool = True
    token_gap: Gap | None = None
    thinking: Budgets | None = None
    max_request_bytes: Bytes = MAX_REQUEST_BYTES


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole node. Without `models`, the embedded model is served."""

    host: str = "127.0.0.1"
    port: Port = 8080
    node: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._-]{1,64}$")] = "n1"
    """The node's own name, as responses report it."""
    hosts: tuple[str, ...] = ()
    """Host names, besides the loopback ones, by which clients may call this node."""
    origins: tuple[str, ...] = ()
    """Web origins (`https://app.example`) whose pages may call it; none, unless named here."""
    ctx: Count | None = None
    cells: Count | None = None
    parallel: Count | None = None
    gpu_layers: Layers | None = None
    threads: Count | None = None
    host_cache: Memory | None = None
    token_gap: Gap | None = None
    thinking: Budgets | None = None
    queue: Count = 32
    """Requests that may wait for a slot of one model; more hear `capacity_unavailable`."""
    queue_seconds: Annotated[float, msgspec.Meta(gt=0, le=240)] = 30.0
    """How long one may wait there. Node's fetch gives up 300 s after it asked, prefill included."""
    prepare_workers: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """Processes a model that render and tokenize prompts."""
    models: dict[ModelId, ModelConfig] = {}

    def model(self, name: str) -> ModelConfig:
        """One model's configuration with the top level's values filled in."""
        own = self.models[name]
        shared = ("ctx", "cells", "parallel", "gpu_layers", "threads", "host_cache", "token_gap", "thinking")
        return msgspec.structs.replace(
            own, **{key: getattr(self, key) for key in shared if getattr(own, key) is None}
        )


def load(path: Path) -> Config:
    """The configuration in a TOML file. Raises `ConfigError`; model paths are taken relative to the file."""
    try:
        config = _convert(msgspec.toml.decode(path.read_bytes()))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML ({error})") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    models = {
        name: msgspec.structs.replace(model, path=str(path.parent / Path(model.path).expanduser()))
        for name, model in config.models.items()
    }
    return msgspec.structs.replace(config, models=models)


def override(config: Config, **values: object) -> Config:
    """`config` with the given fields replaced where the value is not None. Raises `ConfigError`."""
    given = {key: value for key, value in values.items() if value is not None}
    return _convert({**msgspec.to_builtins(config), **msgspec.to_builtins(given)})


def check(config: Config) -> Config:
    """`config`, if it can be served. Raises `ConfigError` for what no type can say."""
    if not _is_loopback(config.host):
        raise ConfigError(
            f"host: {config.host} can be reached from other machines, and this node has no keys yet to keep "
            "them out; without keys it serves loopback addresses only (127.0.0.1, ::1, localhost)"
        )
    for name in config.models:
        if not Path(config.models[name].path).is_file():
            raise ConfigError(f'models."{name}".path: there is no file {config.models[name].path}')
    return config


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _convert(raw: dict[str, object]) -> Config:
    """Builtins as a `Config`. Raises `ConfigError`."""
    try:
        return msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(str(error), _culprit(raw.get("models")))) from error


def _culprit(models: object) -> str | None:
    """The name of the first model whose table is refused; msgspec does not tell it."""
    for name, table in models.items() if isinstance(models, dict) else ():
        try:
            msgspec.convert(table, ModelConfig)
        except msgspec.ValidationError:
            return str(name)
    return None


def _explained(message: str, model: str | None) -> str:
    """Msgspec's words with the path in front: `models."m".ctx: expected ...`."""
    found = _FAULT.fullmatch(message)
    if found is None:
        return message
    path = (found["path"] or "").replace("[...]", f'."{model}"')
    what = found["what"][:1].lower() + found["what"][1:]
    if field := _FIELD.fullmatch(what):
        path = f"{path}.{field['name']}".lstrip(".")
        what = "there is no such option" if field["known"] == "contains unknown" else "is missing"
    elif found["key"]:
        what = f"a name: {what}"
    return f"{path}: {what}"
