"""A head start for a node's first model: its processes import while it is being found out what they are to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from b3node.workers.spawn import abandon, spawn_ahead
from b3node.workers.tunables import tunables

ENGINE: Final = "b3node.workers.engine_process"
PREPARE: Final = "b3node.workers.prepare_process"
"""What children run."""


@contextmanager
def ahead() -> Iterator[None]:
    """One process of each kind, for whoever starts such a one first; those that nobody took end with the context."""
    spawn_ahead(ENGINE, environment=tunables())
    spawn_ahead(PREPARE)
    try:
        yield
    finally:
        abandon()
