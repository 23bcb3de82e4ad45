"""What every dialect's parser looks like from outside."""

from __future__ import annotations

from typing import Protocol

from b3node.parse.deltas import Delta


class Parser(Protocol):
    """A model's output, piece by piece, to deltas; any cutting of the bytes says the same in the end.

    Deltas obey the order that `events.states` asks for, and a call that is `CallEnd`ed has whole arguments.
    Neither method ever raises because of what a model wrote.
    """

    @property
    def thinking(self) -> bool:
        """Whether what comes next belongs to a thought, as far as is known."""

    def feed(self, piece: bytes) -> list[Delta]:
        """What is certain once `piece` is known; what may yet be part of a marker is held back."""

    def finish(self) -> list[Delta]:
        """What was held back, now that nothing follows. The last call of all; an open call stays open."""
