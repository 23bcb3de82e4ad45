"""What lies in host memory, in bytes and in the order of use: copies of runs and recurrent states.

It decides what is forgotten when the budget is spent: the least recently used first. A path is touched from
its leaf to its root, so a run is never older than what hangs below it, and what goes first hangs lowest.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass

from b3node.engine.cache.prefix_tree import Copy, Run


@dataclass(slots=True)
class HostItem:
    """One piece of host memory: a copy, or the state at `position` of `run`."""

    size: int
    copy: Copy | None = None
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
        """Whether a copy of so many positions could ever lie here; changes nothing."""
        return self._copy_size(tokens) <= self.budget

    def has_room(self, tokens: int) -> bool:
        """Whether a copy of so many positions can lie here and nothing has to be forgotten for it; changes nothing."""
        return self.used + self._copy_size(tokens) <= self.budget

    @property
    def takes_state(self) -> bool:
        """Whether a recurrent state could ever lie here."""
        return self._state_bytes <= self.budget

    def put_copy(self, run: Run) -> Copy:
        """Makes room in the books for a copy of `run` and ties it to the run."""
        run.copy = Copy(next(self._keys), run.start, run.end, [run])
        self._add(run.copy.key, HostItem(self._copy_size(len(run.tokens)), copy=run.copy))
        return run.copy

    def put_state(self, run: Run, position: int) -> int:
        """Makes room in the books for the recurrent state at `position` of `run`; returns its key."""
        key = next(self._keys)
        run.checkpoints[position] = key
        self._add(key, HostItem(self._state_bytes, run=run, position=position))
        return key

    def touch(self, run: Run) -> None:
        """Marks all that belongs to a path as just used, from its tip upwards."""
        for part in reversed(run.path()):
            for key in part.checkpoints.values():
                self.items.move_to_end(key)
            if part.copy is not None:
                self.items.move_to_end(part.copy.key)

    def remove(self, key: int) -> HostItem:
        """Takes a piece out of the books."""
        item = self.items.pop(key)
        self.used -= item.size
        return item

    def clear(self) -> None:
        """Empties the books."""
        self.items.clear()
        self.used = 0

    @property
    def eldest(self) -> HostItem | None:
        """The piece that was used longest ago; changes nothing."""
        return next(iter(self.items.values()), None)

    def oldest(self) -> int | None:
        """The key to forget next, while the budget is overdrawn; None when it is not."""
        return next(iter(self.items)) if self.used > self.budget else None

    def _copy_size(self, tokens: int) -> int:
        return tokens * self._token_bytes + self._state_bytes

    def _add(self, key: int, item: HostItem) -> None:
        self.items[key] = item
        self.used += item.size
