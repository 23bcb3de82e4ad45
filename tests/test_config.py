from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from b3node import config
from b3node.config import Budgets, Config, ConfigError, EngineOptions, ModelConfig
from tests.option_values import OPTIONS, example


def load(folder: Path, text: str) -> Config:
    path = folder / "node.toml"
    path.write_text(text, encoding="utf-8")
    return config.resolve(config.load(path))


def test_a_file_says_what_it_says_and_leaves_the_rest_open(tmp_path: Path) -> None:
    """Values are taken over, everything else has its default."""
    loaded = load(tmp_path, 'port = 9000\nctx = 512\n[models."a/b"]\npath = "/m.gguf"\nctx = 64\n')

    assert loaded == Config(port=9000, models={"a/b": ModelConfig(path="/m.gguf", ctx=64)})


def test_a_models_own_value_wins_over_the_top_levels() -> None:
    """What a model leaves open is taken from the top level, and what that leaves open stays open."""
    node = config.resolve({"ctx": 512, "threads": 2, "models": {"m": {"path": "m.gguf", "ctx": 64}}})

    assert node.models["m"] == ModelConfig(path="m.gguf", ctx=64, threads=2)


TOP = {
    option.name: example(option).value for option in OPTIONS if option.name in EngineOptions.__struct_fields__
}


def test_every_engine_option_stands_at_the_top_level_and_in_a_model() -> None:
    """A model without a value has the top level's; one with the default as its own value keeps that."""
    default = msgspec.to_builtins(EngineOptions())
    whole = config.resolve({**TOP, "models": {"a": {"path": "x"}, "b": {"path": "x", **default}}})

    assert whole.models["a"] == config.resolve({"models": {"a": {"path": "x", **TOP}}}).models["a"]
    assert all(getattr(whole.models["a"], name) != getattr(EngineOptions(), name) for name in TOP)
    assert whole.models["b"] == ModelConfig(path="x")


def test_a_node_option_is_no_models() -> None:
    """An address belongs to the whole node."""
    with pytest.raises(ConfigError, match=r'^models."m".port: there is no such option'):
        config.resolve({"models": {"m": {"path": "x", "port": 1}}})


def test_what_is_given_wins_over_the_file() -> None:
    """The command line's values replace the file's, and those that are not given do not."""
    table = config.override({"port": 9000, "ctx": 512, "host": "::1"}, {"port": 9001, "ctx": None})

    assert table == {"port": 9001, "ctx": 512, "host": "::1"}


def test_a_given_table_replaces_its_own_keys_only() -> None:
    """One effort on the command line leaves the file's others alone."""
    table = config.override({"thinking": {"low": 1, "high": 2}}, {"thinking": {"low": 3}})

    assert table == {"thinking": {"low": 3, "high": 2}}


def test_given_models_stand_instead_of_the_files() -> None:
    """Whoever names models means those."""
    given = {"b": {"path": "b.gguf"}}

    assert config.override({"models": {"a": {"path": "a.gguf"}}}, {"models": given}) == {"models": given}


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A configuration may be moved along with its models; an absolute path stays what it is."""
    loaded = load(tmp_path, '[models.a]\npath = "models/a.gguf"\n[models.b]\npath = "/b.gguf"\n')

    assert loaded.models["a"].path == str(tmp_path / "models/a.gguf")
    assert loaded.models["b"].path == "/b.gguf"


def test_the_home_of_nobody_is_no_home(tmp_path: Path) -> None:
    """A `~` that names no user is part of a file's name."""
    loaded = load(tmp_path, '[models.a]\npath = "~nobody-at-all/a.gguf"\n')

    assert loaded.models["a"].path == str(tmp_path / "~nobody-at-all/a.gguf")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "prot: there is no such option"),
        ('port = "x"', "port: expected `int`, got `str`"),
        ("port = 99999", "port: expected `int` <= 65535"),
        ("ctx = 0", "ctx: expected `int` >= 1"),
        ("token_gap = 0", "token_gap: expected `float` > 0.0"),
        ("[thinking]\nlow = 0", "thinking.low: expected `int` >= 1"),
        ('[models.a]\npath = "x"\nthinking = {lo = 1}', 'models."a".thinking.lo: there is no such option'),
        ("hosts = [1]", "hosts[0]: expected `str`, got `int`"),
        ("models = 3", "models: expected `object`, got `int`"),
        ("[models.a]\nctx = 1", 'models."a".path: is missing'),
        ("[models]\na = 3", 'models."a": expected `object`, got `int`'),
        ('[models."b/c"]\npath = "x"\nctx = "q"', 'models."b/c".ctx: expected `int | null`, got `str`'),
        (
            '[models.a]\npath = "x"\n[models.b]\npath = "x"\nfoo = 1',
            'models."b".foo: there is no such option',
        ),
        (
            '[models.a]\npath = "x"\nmax_request_bytes = 999999999',
            'models."a".max_request_bytes: expected `int` <= ',
        ),
        ('[models.""]\npath = "x"', "models: a name: expected `str` of length >= 1"),
        ("x = ", "is not TOML"),
        ("x = 1\nx = 2", "is not TOML"),
        pytest.param("ctx = " + "9" * 5000, "is not TOML", id="endless number"),
        pytest.param("hosts = " + "[" * 5000, "is not TOML", id="deep list"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file, the key, and what would be right."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)

    assert str(caught.value).startswith(f"{tmp_path / 'node.toml'}: {said}")


def test_a_thoughts_tokens_are_the_operators_to_set(tmp_path: Path) -> None:
    """For all models or one; a model's own table counts as a whole, and what it leaves out has its
    default.
    """
    loaded = load(
        tmp_path,
        '[thinking]\nlow = 5\n[models.a]\npath = "x"\n[models.b]\npath = "x"\nthinking.high = "unlimited"',
    )

    assert loaded.models["a"].thinking == Budgets(low=5)
    assert loaded.models["b"].thinking == Budgets(high="unlimited")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """TOML is UTF-8."""
    path = tmp_path / "node.toml"
    path.write_bytes(b'node = "\xff"')

    with pytest.raises(ConfigError, match="is not TOML"):
        config.load(path)


@pytest.mark.parametrize(("name", "why"), [("missing.toml", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str, why: str) -> None:
    """With what the system says of it."""
    with pytest.raises(ConfigError, match=f"cannot be read .*{why}"):
        config.load(tmp_path / name)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_may_be_served(host: str) -> None:
    """Whoever can reach these addresses is on the machine already."""
    assert config.check(Config(host=host)).host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", "", "127.0.0.1.example.org"])
def test_other_addresses_are_refused_without_keys(host: str) -> None:
    """A node without keys is not put on a network by a slip of the hand."""
    with pytest.raises(ConfigError, match=r"host: .*loopback"):
        config.check(Config(host=host))


def test_a_model_without_a_file_is_refused(tmp_path: Path) -> None:
    """Before anything is started."""
    with pytest.raises(ConfigError, match=r'models\."a"\.path: there is no file'):
        config.check(Config(models={"a": ModelConfig(path=str(tmp_path / "a.gguf"))}))
