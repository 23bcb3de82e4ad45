from __future__ import annotations

import asyncio

import pytest

from b3node import embedded
from bench import raw
from bench.load import LoadError


@pytest.fixture(scope="module")
def model():
    try:
        return embedded.find()
    except embedded.EmbeddedModelError as error:
        pytest.skip(str(error))


async def series(child, *, clients, rounds):
    return [found async for found in child.pieces(clients=clients, prompt=4, output=3, rounds=rounds)]


def test_the_loop_is_asked_again_and_again(model) -> None:
    """The model is loaded once; every series begins with an empty cache, whatever came before."""
    with raw.child(model, threads=1) as child:
        found = asyncio.run(series(child, clients=2, rounds=2)) + asyncio.run(
            series(child, clients=1, rounds=1)
        )

    assert len(found) == 3
    assert all(measures["step_ms"] > 0 for measures in found)


def test_a_loop_that_ended_is_a_failure_like_any_other(tmp_path) -> None:
    """A model that cannot be loaded measures nothing, and says so."""
    with pytest.raises(LoadError, match="the raw loop ended"), raw.child(tmp_path / "none.gguf", threads=1):
        pass
