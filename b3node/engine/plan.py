"""The decision for one step, as values: what to forget, share, put away and bring back, what to compute."""

from __future__ import annotations

from array import array

import msgspec


class Drop(msgspec.Struct, frozen=True):
    """Forget everything that `slot` holds."""

    slot: int


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
    """Append to `slot` the positions `start` .. `end` out of what was saved under `key`."""

    slot: int
    start: int
    end: int
    key: int


class Point(msgspec.Struct, frozen=True):
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


Move = Clear | Drop | Share | Save | Load | Point | Restore | Forget


class Chunk(msgspec.Struct, frozen=True):
    """Positions `start` .. `start + len(tokens)` of `slot` to compute; `logits` asks for the last one's row."""

    slot: int
    start: int
    tokens: array[int]
    logits: bool


class Plan(msgspec.Struct, frozen=True):
    """One step: the moves in their order (a slot may be shared, dropped and filled anew), then the chunks."""

    moves: tuple[Move, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.moves or self.chunks)

    @property
    def tokens(self) -> int:
        """Positions that this step computes."""
        return sum(len(chunk.tokens) for chunk in self.chunks)
