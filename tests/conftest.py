"""Fixtures that every room's tests may ask for."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.zoo.zoo import Zoo

# An assertion inside llama.cpp would otherwise fork a debugger: slow, and it floods stderr.
os.environ.setdefault("GGML_NO_BACKTRACE", "1")

# New examples in every run: Hypothesis by itself would repeat the same ones wherever it sees CI, and judge by
# time.
settings.register_profile(
    "new", derandomize=False, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("new")


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """The tiny models: `zoo.scripted([...])`, `zoo.random("qwen35")`, `zoo.free_choice()` give paths."""
    return Zoo(tmp_path_factory.mktemp("zoo"))
