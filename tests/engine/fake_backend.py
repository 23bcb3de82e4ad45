"""A model that can be checked: its next token is a function of everything before it, and its cells are real.

Each computed position is a cell of its own; a share copies references, as `llama_memory_seq_cp` does. So a
wrong share, a forgotten drop or a miscounted cell shows up as a wrong token, a gap or a full cache.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from b3node.engine.backend import CellsFullError, DecodeError, Rows
from b3node.engine.plan import Drop, Plan

N_VOCAB = 97
EOG = 96


def next_token(tokens: list[int]) -> int:
    """What the fake model says after `tokens`: depends on every one of them and on their order."""
    state = 7
    for token in tokens:
        state = (state * 31 + token + 1) % 1_000_003
    return state % N_VOCAB


def continuation(prompt: list[int], limit: int) -> list[int]:
    """The greedy output after `prompt`: up to `limit` tokens, an end token included."""
    known = list(prompt)
    while len(known) - len(prompt) < limit:
        known.append(next_token(known))
        if known[-1] == EOG:
            break
    return known[len(prompt) :]


class FakeBackend:
    """Implements `engine.backend.Backend`; `fault` may raise in place of a decode."""

    def __init__(self, cells: int, slots: int, fault: Callable[[], str | None] = lambda: None) -> None:
        self.cells = cells
        self.slots = slots
        self.fault = fault
        self.held: dict[int, list[tuple[int, int]]] = {}
        """Slot to (cell, token) a position."""
        self.computed = 0
        self._next_cell = 0

    @property
    def used(self) -> int:
        """Distinct cells that any slot holds."""
        return len({cell for held in self.held.values() for cell, _ in held})

    def run(self, plan: Plan) -> Rows:
        for move in plan.moves:
            if isinstance(move, Drop):
                self.held[move.slot] = self.held.get(move.slot, [])[: move.start]
            else:
                assert not self.held.get(move.target), "a share onto a slot that is not empty"
                assert len(self.held[move.source]) >= move.length, "a share of what is not computed"
                self.held[move.target] = self.held[move.source][: move.length]
        fault = self.fault() if plan.chunks else None
        if fault == "full" or self.used + plan.tokens > self.cells:
            raise CellsFullError
        rows = [row for chunk in plan.chunks if (row := self._compute(chunk)) is not None]
        if fault == "broken":
            raise DecodeError
        return np.stack(rows) if rows else np.empty((0, N_VOCAB), np.float32)

    def _compute(self, chunk):
        assert 0 <= chunk.slot < self.slots
        held = self.held.setdefault(chunk.slot, [])
        assert chunk.start == len(held), "a position gap"
        assert len(chunk.tokens) > 0
        for token in chunk.tokens:
            held.append((self._next_cell, token))
            self._next_cell += 1
        self.computed += len(chunk.tokens)
        if not chunk.logits:
            return None
        row = np.full(N_VOCAB, -1.0, np.float32)
        row[next_token([token for _, token in held])] = 1.0
        return row
