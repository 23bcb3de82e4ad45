"""The bytes of whole streams, as a person last reviewed them.

`B3NODE_GOLDEN=write pytest tests/events/test_golden.py` writes them anew; review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.events.transcripts import TRANSCRIPTS, transcript

GOLDEN = Path(__file__).parent / "golden"
WRITING = os.environ.get("B3NODE_GOLDEN") == "write"


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_bytes_are_those_of_the_golden_file(name: str) -> None:
    """A stream is written byte for byte as before."""
    path, written = GOLDEN / f"{name}.sse", transcript(name)
    if WRITING:
        path.write_bytes(written)
    assert path.read_bytes() == written


@pytest.mark.skipif(WRITING, reason="the files are being written")
def test_every_golden_file_has_its_transcript() -> None:
    """No file is left over from a stream that is not made any more."""
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}.sse" for name in TRANSCRIPTS}
