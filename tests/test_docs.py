"""The pages for people name only modules, files and pages that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = tuple(
    path.name for path in (ROOT / "b3node").iterdir() if path.is_dir() and path.name != "__pycache__"
)
PAGES: Final = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "bench/README.md", "grammars/README.md")
    for path in ROOT.glob(pattern)
)
_MODULE: Final = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.[a-z_]+)+)(?:\.[A-Z_]\w*)*[`( ]")
_FILE: Final = re.compile(r"`((?:b3node|tests|bench|grammars|docs)/[a-z_./-]+)`")
_LINK: Final = re.compile(r"\]\((?!https?:|#)([^)#]+)")
_REFERENCE: Final = re.compile(r"`((?:" + "|".join(ROOMS) + r")(?:\.[a-z_]+)+)(?:\.[A-Z_]\w*)?`")


def _exists(dotted: str) -> bool:
    """Returns whether a path names a room, a module, or a name that a module defines."""
    *folder, last = dotted.split(".")
    path = ROOT.joinpath("b3node", *folder)
    if (path / last).is_dir() or (path / f"{last}.py").is_file():
        return True
    source = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    return source.is_file() and re.search(rf"\b{last}\b", source.read_text(encoding="utf-8")) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_name_what_exists(page: Path) -> None:
    """Each module, file and page, so that a reader who follows one arrives."""
    text = page.read_text(encoding="utf-8")

    assert [name for name in _MODULE.findall(text) if not _exists(name)] == []
    assert [name for name in _FILE.findall(text) if not (ROOT / name).exists()] == []
    assert [name for name in _LINK.findall(text) if not (page.parent / name).exists()] == []


def test_docstrings_name_modules_that_exist() -> None:
    """A module that moved would leave its old name in others' docstrings."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "b3node").rglob("*.py")
        for name in _REFERENCE.findall(path.read_text(encoding="utf-8"))
        if not _exists(name)
    }

    assert found == set()
