"""What the scheduler's loop needs of a model: the seam that `llama` fills, and a fake one in tests."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from b3node.engine.plan import Plan

Rows = npt.NDArray[np.float32]


class CellsFullError(Exception):
    """The step did not fit into the cache; nothing of it was computed and nothing was changed."""


class DecodeError(Exception):
    """The step failed half-way: the cells of every sequence in it are worth nothing."""


class Backend(Protocol):
    """A loaded model with its cache. Each `start` is followed by one `rows`, unless it raised."""

    @property
    def overlaps(self) -> bool:
        """Whether `start` returns while the device still computes, so that other work fits in before `rows`."""
        ...

    def start(self, plan: Plan) -> None:
        """Begins to carry a plan out. Raises `CellsFullError` or `DecodeError`."""
        ...

    def rows(self) -> Rows:
        """The logits of the started plan's chunks that asked for them; waits for the device.

        The result has shape (rows, n_vocab), float32, one row a chunk with `logits`, in the plan's order;
        it is a view that the next `start` overwrites.
        """
        ...

    def rest(self) -> None:
        """Hears that there is nothing to compute until somebody asks again, which may be long."""
        ...
