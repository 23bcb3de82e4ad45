"""Configuration of a node: every option once, with its type, bounds, default and help.

    host = "127.0.0.1"
    port = 8080
    ctx = 8192            # for every model; a model may have its own

    [models."b3os/qwen3.5-9b"]
    path = "/models/qwen3.5-9b-q4_k_m.gguf"
    ctx = 32768

`NodeOptions` and `EngineOptions` are the only definitions of options. The file, the command line with its
help (`cli.options`) and the README's tables are made from them, and an engine gets its `ModelConfig` whole.
An option of `EngineOptions` stands at the top level for every model or in a model's table; the model's own
value wins.

A wrong key or value is refused with its path before anything is started.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

LARGEST_REQUEST_BYTES: Final = 1 << 25
"""Bytes that `max_request_bytes` may allow: a request travels in one frame, of at most 64 MiB."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)]
MemoryBytes = Annotated[int, msgspec.Meta(ge=0, le=1 << 44)]
KvType = Literal["f16", "f32", "q8_0"]
ModelId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
ThinkingTokens = Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] | Literal["unlimited"]
Table = dict[str, object]
"""A configuration as TOML gives it: options by name, and `models` with a table each."""

_FAULT: Final = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>.*)`)?", re.DOTALL)
_FIELD: Final = re.compile(
    r"object (?P<known>contains unknown|missing required) field `(?P<name>.*)`", re.DOTALL
)


def _help(text: str, default: str | None = None) -> msgspec.Meta:
    """Returns the help of an option; `default` describes a default that the field's value does not show."""
    return msgspec.Meta(description=text, extra={"default": default})


class ConfigError(Exception):
    """The configuration is refused; the message names the path and says what would be right."""


class Budgets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Most tokens of thinking for each `reasoning.effort` that turns it on.

    Bounded thinking leaves the answer its room; "unlimited" does not. The numbers are a choice: about a page,
    three, a dozen and two dozen.
    """

    low: ThinkingTokens = 1024
    medium: ThinkingTokens = 4096
    high: ThinkingTokens = 16_384
    xhigh: ThinkingTokens = 32_768


class EngineOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of a model; None leaves the choice to the engine (`llama.settings`)."""

    ctx: Annotated[
        Count | None,
        _help("Tokens of one conversation.", "as trained, up to 8192 on a CPU and 32768 on a GPU"),
    ] = None
    cells: Annotated[Count | None, _help("Tokens of the whole KV cache.", "twice ctx")] = None
    parallel: Annotated[
        Count | None,
        _help("Conversations that run at once.", "16; 8 for a model with recurrent layers"),
    ] = None
    queue: Annotated[
        Count, _help("Requests that may wait for a slot; further ones get 503 capacity_unavailable.")
    ] = 32
    # Node's fetch gives up 300 s after it asked, prefill included.
    queue_seconds: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=240)], _help("Seconds that a request may wait for a slot.")
    ] = 30.0
    token_gap: Annotated[
        Annotated[float, msgspec.Meta(gt=0, le=10)] | None,
        _help("Seconds that a running stream may pause for a new prompt.", "0.15 on a CPU, 0.05 on a GPU"),
    ] = None
    gpu_layers: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None,
        _help("Layers on the GPU.", "all, with a GPU build"),
    ] = None
    threads: Annotated[Count | None, _help("CPU threads that compute.", "the physical cores")] = None
    host_cache: Annotated[
        MemoryBytes | None,
        _help(
            "Bytes of host memory for prefixes that leave the KV cache.",
            "1 GiB, at most an eighth of the memory",
        ),
    ] = None
    # q8_0 needs flash attention and heads whose width is a multiple of 32.
    kv_type: Annotated[
        KvType,
        _help(
            "Type of keys and values in the cache: "
            "f32 is exact and twice as large as f16, q8_0 half as large."
        ),
    ] = "f16"
    # Unset, a CPU goes without it where it is slow (`llama.attention`) and with f32, which the kernel would
    # convert to halves, the whole cache with each step. Logits depend on the other sequences of a step by
    # 1e-5 without it and with f32, by 1e-3 with it or with f16.
    flash_attention: Annotated[
        bool | None,
        _help("llama.cpp's fused attention.", "on; off on a CPU where it is measured to be slower"),
    ] = None
    drafts: Annotated[
        bool,
        _help(
            "Compute likely tokens ahead where that pays. "
            "With an f16 cache the sizes of steps move logits by 0.001."
        ),
    ] = True
    thinking: Annotated[
        Budgets,
        _help("Most tokens of thinking for each reasoning.effort, or unlimited."),
    ] = Budgets()
    # The contract decides 10 MiB.
    max_request_bytes: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=LARGEST_REQUEST_BYTES)], _help("Bytes of a request body.")
    ] = 10_485_760
    prepare_workers: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=8)], _help("Processes that render and tokenize prompts.")
    ] = 1


class ModelConfig(EngineOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One served model: its file and its options."""

    path: str


class NodeOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of the node itself, at the top level only."""

    host: Annotated[str, _help("Address to listen on; without keys, loopback only.")] = "127.0.0.1"
    port: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=65_535)], _help("Port to listen on; 0 takes a free one.")
    ] = 8080
    node: Annotated[
        Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9._-]{1,64}$")], _help("The node's name in responses.")
    ] = "n1"
    hosts: Annotated[
        tuple[str, ...], _help("Further host names that clients may use.", "loopback names only")
    ] = ()
    origins: Annotated[
        tuple[str, ...],
        _help(
            "Web origins (https://app.example) whose pages may call the node.", "the node's own pages only"
        ),
    ] = ()
    quiet: Annotated[bool, _help("Log no line for a request that went well.")] = False


class Config(NodeOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole node, every value in its place."""

    models: dict[ModelId, ModelConfig] = {}


def load(path: Path) -> Table:
    """Returns the table in a TOML file, model paths made relative to the file. Raises `ConfigError`."""
    try:
        table: Table = msgspec.toml.decode(path.read_bytes())
        resolve(table)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:  # also endless numbers, deep lists
        raise ConfigError(f"{path}: is not TOML ({error})") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    models = {
        name: {**model, "path": str(path.parent / _expanded(model["path"]))}
        for name, model in _models(table).items()
    }
    return {**table, "models": models}


def override(table: Table, given: Mapping[str, object]) -> Table:
    """Returns `table` with the values of `given` that are not None; of a table, its keys only.

    `models` is replaced as a whole.
    """
    merged = dict(table)
    for name, value in given.items():
        below = table.get(name)
        if isinstance(value, dict) and isinstance(below, dict) and name != "models":
            merged[name] = {**below, **value}
        elif value is not None:
            merged[name] = value
    return merged


def resolve(table: Table) -> Config:
    """Returns the configuration in a table: each model with the top level's values filled in.

    Raises `ConfigError`.
    """
    shared = {name: value for name, value in table.items() if name in EngineOptions.__struct_fields__}
    own = {name: value for name, value in table.items() if name not in shared}
    try:
        msgspec.convert(shared, EngineOptions)
        if "models" in own:
            own["models"] = _filled(own["models"], shared)
        return msgspec.convert(own, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(str(error), _culprit(own.get("models")))) from error


def check(config: Config) -> Config:
    """Returns `config` if it can be served. Raises `ConfigError` for faults that no type can express."""
    if not _is_loopback(config.host):
        raise ConfigError(
            f"host: {config.host} can be reached from other machines, and this node has no keys yet to keep "
            "them out; without keys it serves loopback addresses only (127.0.0.1, ::1, localhost)"
        )
    for name in config.models:
        if not Path(config.models[name].path).is_file():
            raise ConfigError(f'models."{name}".path: there is no file {config.models[name].path}')
    return config


def _filled(models: object, shared: Table) -> object:
    """Returns the tables of models with `shared` below each; of a wrong type, `models` itself."""
    if not isinstance(models, dict):
        return models
    return {name: {**shared, **model} if isinstance(model, dict) else model for name, model in models.items()}


def _models(table: Table) -> dict[str, dict[str, str]]:
    """Returns the models' tables of a table that was found right."""
    models = table.get("models", {})
    return models if isinstance(models, dict) else {}


def _expanded(path: str) -> Path:
    """Returns a path with its `~` replaced, as it is where that names nobody's home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _culprit(models: object) -> str | None:
    """Returns the name of the first model whose table is refused; msgspec's message lacks it."""
    for name, table in models.items() if isinstance(models, dict) else ():
        try:
            msgspec.convert(table, ModelConfig)
        except msgspec.ValidationError:
            return str(name)
    return None


def _explained(message: str, model: str | None) -> str:
    """Returns msgspec's words with the path in front: `models."m".ctx: expected ...`."""
    found = _FAULT.fullmatch(message)
    if found is None:
        return message
    path = (found["path"] or "").replace("[...]", f'."{model}"')
    fault = found["what"][:1].lower() + found["what"][1:]
    if field := _FIELD.fullmatch(fault):
        path = f"{path}.{field['name']}".lstrip(".")
        fault = "there is no such option" if field["known"] == "contains unknown" else "is missing"
    elif found["key"]:
        fault = f"a name: {fault}"
    return f"{path}: {fault}"
