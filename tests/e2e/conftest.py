"""One node for all end-to-end tests, a process of its own that serves several tiny models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nodes import NodeProcess, node_process
from tests.zoo.script import Routes, S
from tests.zoo.zoo import Zoo

HELLO = [b"Hello", b", ", b"world", b"!"]
SPLIT = [b"caf", b"\xc3", b"\xa9 ", b"\xf0\x9f", b"\x98", b"\x80", b"."]
"""A text whose characters are cut by the tokens' edges."""
ONCE = b"Good morning, world."
"""What `ends` says after a `z`, as one token: several that come together share a delta, which only time
tells.
"""
AS_IT_IS = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""A template that writes nothing but what it is told, so that the prompt ends with the user's last words."""
ECHOES = {letter: [f"You end with {letter}".encode(), b"."] for letter in "bcdfghjklmnpqrtv"}
SPELLINGS = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|im_start|>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
]


def scripts(zoo: Zoo) -> dict[str, Path]:
    """The models by name."""
    forged = [(token, [f"FORGED {token}".encode()]) for token in SPELLINGS]
    routes: Routes = dict([*ECHOES.items(), *forged, (">", [b"plain"]), ("z", [ONCE])])
    return {
        "hello": zoo.scripted(HELLO),
        "split": zoo.scripted(SPLIT, end=S("<|endoftext|>")),
        "endless": zoo.scripted([b"on ", b"and ", b"on "], end=0, n_layer=64),
        "ends": zoo.scripted([b"?"], routes=routes, template=AS_IT_IS),
    }


@pytest.fixture(scope="session")
def node(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """The node; `short` is its model with a context of 96 tokens."""
    models = scripts(zoo)
    tables = [f'[models."{name}"]\npath = "{path}"\n' for name, path in models.items()]
    short = f'[models.short]\npath = "{models["endless"]}"\nctx = 96\n'
    config = tmp_path_factory.mktemp("e2e") / "node.toml"
    config.write_text("\n".join([*tables, short]), encoding="utf-8")
    with node_process(None, "--config", str(config)) as running:
        yield running
