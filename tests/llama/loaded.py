"""Loaded models for tests: small, exact unless asked otherwise, and freed at the end."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from b3node.config import EngineOptions
from b3node.engine.plan import Chunk
from b3node.llama.library import lib
from b3node.llama.model import Model

EXACT = EngineOptions(ctx=512, cells=1024, parallel=4, threads=1, flash_attention=False, kv_type="f32")
"""Logits that do not depend on what else is in a step, up to the order of sums."""
TOLERANCE = 5e-3
"""How far two logits may lie apart that mean the same. Sums in another order move those of gemma4 by up to
4e-3, of gemma3 by 2e-3, of the others by 4e-5; one wrong token moves some logit by 1e-2 at least."""


@contextmanager
def loaded(path: Path, settings: EngineOptions = EXACT) -> Iterator[Model]:
    """The model at `path`, as the engine loads it."""
    model = Model.load(str(path), settings, lambda _: None)
    try:
        yield model
    finally:
        lib.llama_free(model.backend._pointer)
        lib.llama_model_free(model._model)


def ids(seed: int, count: int) -> list[int]:
    """`count` random byte tokens; the same for the same seed."""
    return [int(token) for token in np.random.default_rng(seed).integers(0, 256, count)]


def chunk(slot: int, start: int, tokens: Sequence[int], *, logits: bool = True, drafted: int = 0) -> Chunk:
    return Chunk(slot, start, array("i", tokens), logits, drafted)
