"""The protocol between the engine's loop and a model: `llama` implements it, and a fake in tests."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from b3node.engine.plan import Plan

Rows = npt.NDArray[np.float32]


class CellsFullError(Exception):
    """The step did not fit into the cache; none of it was computed, and the cache is unchanged."""


class DecodeError(Exception):
    """The step failed half-way: the cells of every sequence in it are unusable."""


class Backend(Protocol):
    """A loaded model with its cache. Each `start` is followed by one `rows`, unless it raised."""

    @property
    def overlaps(self) -> bool:
        """Whether `start` returns while the device computes, so that other work fits in before `rows`."""
        ...

    def start(self, plan: Plan) -> None:
        """Begins to carry a plan out. Raises `CellsFullError` or `DecodeError`."""
        ...

    def rows(self) -> Rows:
        """Returns the logits of the started plan's chunks that asked for them; waits for the device.

        The result has shape (rows, n_vocab), float32, one row a chunk with `logits`, and one more a drafted
        token, in the plan's order; it is a view that the next `start` overwrites.
        """
        ...

    def on_idle(self) -> None:
        """Takes in that no step follows until a message comes, which may be long."""
        ...
