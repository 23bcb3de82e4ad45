"""The plan of one step, as values: moves, which change the cache, then chunks, which are computed.

Positions count cells; see `b3node.spans`.
"""

from __future__ import annotations

from array import array
from collections import abc
from itertools import takewhile

import msgspec

from b3node.spans import ImageSpan


class Drop(msgspec.Struct, frozen=True):
    """Forget everything that `slot` holds."""

    slot: int


class Trim(msgspec.Struct, frozen=True):
    """Forget the positions of `slot` from `length` on: drafted tokens that were not drawn."""

    slot: int
    length: int


class Share(msgspec.Struct, frozen=True):
    """Let `target` (empty) read the first `length` positions of `source`, without computing them."""

    source: int
    target: int
    length: int


class Save(msgspec.Struct, frozen=True):
    """Copy the positions `start` .. `end` of `slot` to host memory under `key`."""

    slot: int
    start: int
    end: int
    key: int


class Load(msgspec.Struct, frozen=True):
    """Append to `slot` the positions `start` .. `end` of the copy under `key`."""

    slot: int
    start: int
    end: int
    key: int


class Checkpoint(msgspec.Struct, frozen=True):
    """Copy the recurrent state of `slot`, as it is now, to host memory under `key`."""

    slot: int
    key: int


class Restore(msgspec.Struct, frozen=True):
    """Give `slot` the recurrent state that was copied under `key`; its other cells are already there."""

    slot: int
    key: int


class Forget(msgspec.Struct, frozen=True):
    """Free the host memory under `key`."""

    key: int


class Clear(msgspec.Struct, frozen=True):
    """Wipe the whole cache, numbers and all, and everything in host memory."""


Move = Clear | Drop | Trim | Share | Save | Load | Checkpoint | Restore | Forget


class Chunk(msgspec.Struct, frozen=True):
    """Positions `start` .. `start + len(tokens)` of `slot` to compute: text, or one whole image."""

    slot: int
    start: int
    tokens: array[int]
    """The ids of the positions; of an image, ids that mean nothing to a model (`cache.span_index`)."""
    logits: bool
    """Whether a row of logits is wanted after the last known token, and after each drafted one."""
    drafted: int = 0
    """How many of the last tokens are not known but guessed."""
    image: ImageSpan | None = None
    """The image to compute; None for text."""

    @property
    def known(self) -> int:
        """How many of its tokens are known."""
        return len(self.tokens) - self.drafted

    @property
    def draft(self) -> array[int]:
        """The tokens that are guessed."""
        return self.tokens[self.known :]

    def accepted(self, drawn: abc.Sequence[int]) -> int:
        """Returns how many of its tokens stand once the known ones are followed by `drawn`."""
        pairs = zip(self.draft, drawn, strict=False)
        return self.known + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    @property
    def rows(self) -> int:
        """Rows of logits that it asks for."""
        return self.drafted + 1 if self.logits else 0


class Plan(msgspec.Struct, frozen=True):
    """One step: the moves in their order (a slot may be shared, dropped and filled anew), then the chunks."""

    moves: tuple[Move, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    @property
    def tokens(self) -> int:
        """Positions that this step computes."""
        return sum(len(chunk.tokens) for chunk in self.chunks)

    @property
    def copies(self) -> bool:
        """Whether it copies to or from host memory, which takes time of its own."""
        return any(isinstance(move, Save | Load | Checkpoint | Restore) for move in self.moves)

    @property
    def drafted(self) -> int:
        """How many of them are guessed."""
        return sum(chunk.drafted for chunk in self.chunks)
