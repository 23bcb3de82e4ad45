"""Accounts for host memory, in bytes and in the order of use: copies of runs and of recurrent states.

When the budget is overdrawn, the least recently used piece goes first. A path is touched from its leaf to its
root, so a run is never older than the runs below it, and the lowest run goes first.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass

from b3node.engine.cache.prefix_tree import HostCopy, Run


@dataclass(slots=True)
class HostItem:
    """One piece of host memory: a copy, or the state at `position` of `run`."""

    size: int
    copy: HostCopy | None = None
    run: Run | None = None
    position: int = 0


class HostCache:
    """Accounts for at most `budget` bytes; every method mutates it.

    Args:
        budget: bytes in all.
        token_bytes: bytes of one position's cells.
        state_bytes: bytes of one recurrent state; 0 for models without one.
    """

    def __init__(self, *, budget: int, token_bytes: int, state_bytes: int) -> None:
        self.budget = budget
        self.used = 0
        self.items: OrderedDict[int, HostItem] = OrderedDict()
        self._token_bytes = token_bytes
        self._state_bytes = state_bytes
        self._keys = itertools.count(1)

    def takes(self, tokens: int) -> bool:
        """Returns whether a copy of so many positions fits into the whole budget; changes nothing."""
        return self._copy_size(tokens) <= self.budget

    def has_room(self, tokens: int) -> bool:
        """Returns whether a copy of so many positions fits without an eviction; changes nothing."""
        return self.used + self._copy_size(tokens) <= self.budget

    @property
    def takes_state(self) -> bool:
        """Whether a recurrent state fits into the whole budget."""
        return self._state_bytes <= self.budget

    def put_copy(self, run: Run) -> HostCopy:
        """Accounts for a copy of `run`, ties it to the run, and returns it."""
        run.copy = HostCopy(next(self._keys), run.start, run.end, [run])
        self._add(run.copy.key, HostItem(self._copy_size(len(run.tokens)), copy=run.copy))
        return run.copy

    def put_state(self, run: Run, position: int) -> int:
        """Accounts for the recurrent state at `position` of `run`, and returns its key."""
        key = next(self._keys)
        run.checkpoints[position] = key
        self._add(key, HostItem(self._state_bytes, run=run, position=position))
        return key

    def touch(self, run: Run) -> None:
        """Marks all pieces of a path as just used, from its leaf upwards."""
        for part in reversed(run.path()):
            for key in part.checkpoints.values():
                self.items.move_to_end(key)
            if part.copy is not None:
                self.items.move_to_end(part.copy.key)

    def remove(self, key: int) -> HostItem:
        """Removes a piece, and returns it."""
        item = self.items.pop(key)
        self.used -= item.size
        return item

    def clear(self) -> None:
        """Removes all pieces."""
        self.items.clear()
        self.used = 0

    @property
    def least_recent(self) -> HostItem | None:
        """The least recently used piece, None when there is none; changes nothing."""
        return next(iter(self.items.values()), None)

    def overdrawn(self) -> int | None:
        """Returns the key of the piece to evict next while the budget is overdrawn; None when it is not."""
        return next(iter(self.items)) if self.used > self.budget else None

    def _copy_size(self, tokens: int) -> int:
        return tokens * self._token_bytes + self._state_bytes

    def _add(self, key: int, item: HostItem) -> None:
        self.items[key] = item
        self.used += item.size
