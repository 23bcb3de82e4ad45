"""Random plans for a context, with a note of what each row of theirs must be.

A walk knows the moves' contract and nothing of how they are done: which tokens each slot holds, which states
were copied after which tokens, which ranges lie in host memory. Every row is handed out with the tokens that
it comes after, so that it can be held against a fresh prefill of exactly those.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from b3node.engine.backend import Rows
from b3node.engine.plan import Checkpoint, Chunk, Drop, Forget, Load, Move, Plan, Restore, Save, Share, Trim
from b3node.llama.context import Context
from tests.llama.loaded import chunk


@dataclass(frozen=True)
class Shelved:
    """A sequence in host memory: its range up to `middle` and the rest under two keys, its state under a
    third.
    """

    tokens: list[int]
    middle: int
    first: int
    second: int
    state: int


class Walk:
    """Plans on `context` drawn from `seed`; `stateful` models are entered only at copied states."""

    def __init__(self, context: Context, seed: int, *, stateful: bool, slots: int) -> None:
        self.context = context
        self.stateful = stateful
        self.rng = np.random.default_rng(seed)
        self.held: dict[int, list[int]] = {slot: [] for slot in range(slots)}
        self.states: dict[int, list[int]] = {}
        """Key to the tokens after which a state was copied."""
        self.shelf: list[Shelved] = []
        self.done: set[str] = set()
        """The kinds of moves that were made."""
        self._keys = itertools.count(1)

    def step(self) -> list[tuple[Rows, list[int]]]:
        """One plan: its rows, each with the tokens that it comes after."""
        kind = self.rng.choice(
            ["none", "drop", "point", "branch", "shelve", "fetch", "fetch", "forget", "trim"]
        )
        moves: list[Move] = getattr(self, f"_{kind}")()
        self.done.update(type(move).__name__ for move in moves)
        busy = [int(slot) for slot in self.rng.permutation(len(self.held)) if self.rng.random() < 0.6]
        chunks = [self._chunk(slot) for slot in busy]
        rows = self.context.run(Plan(tuple(moves), tuple(chunks))).copy()
        return list(zip(rows, [tokens for part in chunks for tokens in self._asked(part)], strict=True))

    def _asked(self, part: Chunk) -> list[list[int]]:
        """What each row of a chunk comes after."""
        held = self.held[part.slot]
        return [held[: len(held) - behind] for behind in range(part.rows - 1, -1, -1)]

    def _two(self) -> tuple[int, int]:
        one, other = (int(slot) for slot in self.rng.permutation(len(self.held))[:2])
        return one, other

    def _chunk(self, slot: int) -> Chunk:
        tokens = [int(token) for token in self.rng.integers(0, 256, int(self.rng.choice([1, 1, 2, 9, 30])))]
        start = len(self.held[slot])
        self.held[slot] += tokens
        logits = bool(self.rng.random() < 0.6)
        drafted = int(self.rng.integers(0, min(len(tokens), 4))) if logits and not self.stateful else 0
        return chunk(slot, start, tokens, logits=logits, drafted=drafted)

    def _none(self) -> list[Move]:
        return []

    def _drop(self) -> list[Move]:
        slot, _ = self._two()
        self.held[slot] = []
        return [Drop(slot)]

    def _trim(self) -> list[Move]:
        """The end of a slot goes; of a state nothing can."""
        slot, _ = self._two()
        if self.stateful or len(self.held[slot]) < 2:
            return []
        length = int(self.rng.integers(1, len(self.held[slot])))
        del self.held[slot][length:]
        return [Trim(slot, length)]

    def _point(self) -> list[Move]:
        """Copies the states of all slots that have one, of dense models too: it must not disturb them."""
        keys = {slot: next(self._keys) for slot, held in self.held.items() if held}
        self.states |= {key: list(self.held[slot]) for slot, key in keys.items()}
        return [Checkpoint(slot, key) for slot, key in keys.items()]

    def _branch(self) -> list[Move]:
        """A second reader of a slot's beginning."""
        source, target = self._two()
        held = self.held[source]
        if not self.stateful:
            length = int(self.rng.integers(0, len(held) + 1))
            shared: list[Move] = [Share(source, target, length)] if length else []
            return [*self._emptied(target, held[:length]), *shared]
        fitting = [key for key, tokens in self.states.items() if held[: len(tokens)] == tokens]
        if not fitting:
            return []
        key = int(self.rng.choice(fitting))
        tokens = self.states[key]
        return [*self._emptied(target, tokens), Share(source, target, len(tokens)), Restore(target, key)]

    def _shelve(self) -> list[Move]:
        """A slot's content to host memory, in two ranges, with its state; the slot may go on or not."""
        slot, _ = self._two()
        tokens = list(self.held[slot])
        if len(tokens) < 2:
            return []
        middle = int(self.rng.integers(1, len(tokens)))
        first, second, state = (next(self._keys) for _ in range(3))
        self.shelf.append(Shelved(tokens, middle, first, second, state))
        dropped = self._emptied(slot, []) if self.rng.random() < 0.5 else []
        saved = Save(slot, 0, middle, first), Save(slot, middle, len(tokens), second)
        return [Checkpoint(slot, state), *saved, *dropped]

    def _fetch(self) -> list[Move]:
        """Out of host memory into a slot; what another slot still holds of it is shared instead."""
        if not self.shelf:
            return []
        found, (_, target) = self.shelf[int(self.rng.integers(len(self.shelf)))], self._two()
        begin = found.tokens[: found.middle]
        holders = [
            slot for slot, held in self.held.items() if held[: found.middle] == begin and slot != target
        ]
        end = (
            len(found.tokens)
            if self.stateful
            else int(self.rng.integers(found.middle + 1, len(found.tokens) + 1))
        )
        moves = self._emptied(target, found.tokens[:end])
        if holders:
            moves.append(Share(holders[0], target, found.middle))
        else:
            moves.append(Load(target, 0, found.middle, found.first))
        moves.append(Load(target, found.middle, end, found.second))
        return moves + [Restore(target, found.state)] * self.stateful

    def _forget(self) -> list[Move]:
        if not self.shelf or self.rng.random() < 0.5:
            return []
        gone = self.shelf.pop(int(self.rng.integers(len(self.shelf))))
        return [Forget(gone.first), Forget(gone.second), Forget(gone.state)]

    def _emptied(self, slot: int, tokens: list[int]) -> list[Move]:
        """Drops a slot, in which `tokens` are to be next."""
        self.held[slot] = list(tokens)
        return [Drop(slot)]
