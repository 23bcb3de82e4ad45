"""Fixtures that every room's tests may ask for."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests.zoo.zoo import Zoo

# An assertion inside llama.cpp would otherwise fork a debugger: slow, and it floods stderr.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

# A person's run looks for new examples each time; an unattended one judges a change, always by the same ones.
settings.register_profile("unattended", derandomize=True)
if "CI" in os.environ:
    settings.load_profile("unattended")


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """The tiny models: `zoo.scripted([...])`, `zoo.random("qwen35")`, `zoo.free_choice()` give paths."""
    return Zoo(tmp_path_factory.mktemp("zoo"))
