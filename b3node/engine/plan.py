"""The decision for one step, as values: what to forget, what to share, what to compute."""

from __future__ import annotations

from array import array

import msgspec


class Drop(msgspec.Struct, frozen=True):
    """Forget the cells of `slot` from position `start` on."""

    slot: int
    start: int = 0


class Share(msgspec.Struct, frozen=True):
    """Let `target` (empty) read the first `length` positions of `source`, without computing them."""

    source: int
    target: int
    length: int


class Chunk(msgspec.Struct, frozen=True):
    """Positions `start` .. `start + len(tokens)` of `slot` to compute; `logits` asks for the last one's row."""

    slot: int
    start: int
    tokens: array[int]
    logits: bool


class Plan(msgspec.Struct, frozen=True):
    """One step: the moves in their order (a slot may be shared, dropped and filled anew), then the chunks."""

    moves: tuple[Drop | Share, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.moves or self.chunks)

    @property
    def tokens(self) -> int:
        """Positions that this step computes."""
        return sum(len(chunk.tokens) for chunk in self.chunks)
