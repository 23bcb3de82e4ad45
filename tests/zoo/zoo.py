"""Where tests get their models: each is written once a session, however many tests ask for it.

`tests/conftest.py` offers one `Zoo` as the fixture `zoo`:

    def test_x(zoo):
        path = zoo.scripted([b"Hello", b" world"])
        path = zoo.random("qwen35", seed=3)

Files are named by a digest of what was asked for. Do not write to them: other tests hold them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypedDict, Unpack

from tests.zoo.architectures import Arch
from tests.zoo.playbook import Page, write_playbook
from tests.zoo.random_weights import random_model
from tests.zoo.script import Piece, Routes, S
from tests.zoo.scripted import free_choice, scripted
from tests.zoo.templates import CHATML


class Scripting(TypedDict, total=False):
    """The options of `scripted.scripted`."""

    end: int | S | None
    routes: Routes | None
    order: int
    arch: Arch
    n_layer: int | None
    context: int
    strict: bool
    template: str | None


class Drawing(TypedDict, total=False):
    """The options of `random_weights.random_model`."""

    n_layer: int | None
    context: int
    strict: bool
    template: str | None


class Zoo:
    """Models in `folder`, by what was asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def scripted(self, pieces: Sequence[Piece], **options: Unpack[Scripting]) -> Path:
        """A model whose greedy output is `pieces`; see `scripted.scripted`."""
        path = self._path("scripted", pieces, sorted(options.items()))
        if not path.exists():
            scripted(path, pieces, **options)
        return path

    def random(self, arch: Arch = "llama", seed: int = 0, **options: Unpack[Drawing]) -> Path:
        """A model whose logits depend on the whole prompt; see `random_weights.random_model`."""
        path = self._path(f"random-{arch}", seed, sorted(options.items()))
        if not path.exists():
            random_model(path, arch, seed, **options)
        return path

    def playbook(self, pages: Mapping[str, Page], template: str) -> Path:
        """A model that answers the last capital of the prompt; see `playbook`."""
        path = self._path("playbook", sorted(pages.items()), template)
        if not path.exists():
            write_playbook(path, pages, template)
        return path

    def free_choice(
        self,
        favour: Mapping[str, float] | None = None,
        *,
        strict: bool = False,
        template: str = CHATML,
    ) -> Path:
        """A model without an opinion, to be sampled under a grammar; see `scripted.free_choice`."""
        path = self._path("free", sorted((favour or {}).items()), strict, template)
        if not path.exists():
            free_choice(path, favour, strict=strict, template=template)
        return path

    def _path(self, kind: str, *asked: object) -> Path:
        return self._folder / f"{kind}-{sha256(repr(asked).encode()).hexdigest()[:24]}.gguf"
