"""Fixture of llama.cpp's engine, loaded once."""

from __future__ import annotations

import pytest

from tests.grammar.judge import Engine


@pytest.fixture(scope="session")
def engine(zoo) -> Engine:
    """llama.cpp's engine over a tiny vocabulary of bytes."""
    return Engine(str(zoo.random("llama")))
