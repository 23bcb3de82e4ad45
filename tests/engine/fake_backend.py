"""A model that can be checked: its next token is a function of everything before it, and its cells are real.

Each computed position is a cell of its own; a share copies references, as `llama_memory_seq_cp` does. So a
wrong share, a forgotten drop or a miscounted cell shows up as a wrong token, a gap or a full cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from b3node.engine.backend import CellsFullError, DecodeError, Rows
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.plan import Checkpoint, Clear, Drop, Forget, Load, Plan, Restore, Save, Share, Trim
from b3node.engine.sampling.constraint import ForcedText, Mask, TokenIds
from b3node.spans import ImageSpan

N_VOCAB = 97
EOG = 96
PERIOD = 4


def next_token(tokens: list[int]) -> int:
    """The fake model's token after `tokens`: depends on every one of them and on their order.

    It often repeats what it said a few tokens ago, so that guesses come true for a while.
    """
    state = 7
    for token in tokens:
        state = (state * 31 + token + 1) % 1_000_003
    return state % N_VOCAB if state % 5 == 0 or len(tokens) < PERIOD else tokens[-PERIOD] % N_VOCAB


PIECES = [bytes([i]) for i in range(N_VOCAB)]
TOKEN_TABLE = TokenTable(PIECES, {}, (), {EOG})


def dictated(grammar: str, place: int) -> int | None:
    """The only token that a `Dictation` allows at a place of the answer; None where it allows all of them."""
    free, length, *end = map(int, grammar.split())
    if place in end:
        return EOG
    return (7 * place) % 90 if place % (free + length) >= free else None


class Dictation:
    """Implements `engine.sampling.constraint.Grammar`: after so many tokens of the model's, so many are
    dictated, and again.

    It is written "3 5": three and five; "3 5 20" ends after twenty.
    """

    def __init__(self, grammar: str, place: int = 0) -> None:
        self.grammar = grammar
        self.place = place

    def allows(self, tokens: TokenIds) -> Mask:
        only = dictated(self.grammar, self.place)
        return np.ones(len(tokens), bool) if only is None else np.array(tokens == only)

    def narrow(self) -> None:
        return None

    def refused(self) -> None:
        return None

    def forced(self, most: int) -> ForcedText:
        text = b""
        while len(text) < most:
            only = dictated(self.grammar, self.place + len(text))
            if only == EOG:
                return ForcedText(text, frozenset(), (EOG,))
            if only is None:
                break
            text += bytes([only])
        return ForcedText(text)

    def accept(self, token: int) -> None:
        if not self.allows(np.array([token], np.int32))[0]:
            raise ValueError(token)
        self.place += 1

    def after(self, text: bytes) -> Dictation:
        return Dictation(self.grammar, self.place + len(text))


def seen(prompt: Iterable[int | ImageSpan]) -> list[int]:
    """The cells of a prompt as the fake model sees them: an image's digest in each of its cells."""
    return [
        each
        for item in prompt
        for each in (
            [N_VOCAB + int.from_bytes(item.digest)] * item.cells if isinstance(item, ImageSpan) else [item]
        )
    ]


def continuation(prompt: Iterable[int | ImageSpan], limit: int, grammar: str | None = None) -> list[int]:
    """The greedy output after `prompt`: up to `limit` tokens, an end token included."""
    known = seen(prompt)
    size = len(known)
    while (place := len(known) - size) < limit:
        only = None if grammar is None else dictated(grammar, place)
        known.append(next_token(known) if only is None else only)
        if known[-1] == EOG:
            break
    return known[size:]


class FakeBackend:
    """Implements `engine.backend.Backend`; `fault` may raise in place of a decode.

    With `stateful`, a slot has a state beside its cells (how many positions went into it), and a share of a
    part, or a load, leaves it wrong until one is restored: as in llama.cpp, where nothing says so either.
    """

    def __init__(
        self,
        cells: int,
        slots: int,
        fault: Callable[[], str | None] = lambda: None,
        *,
        stateful: bool = False,
        overlaps: bool = False,
    ) -> None:
        self.overlaps = overlaps
        self._rows: Rows | None = None
        self.cells = cells
        self.slots = slots
        self.fault = fault
        self.stateful = stateful
        self.held: dict[int, list[tuple[int, int]]] = {}
        """Slot to (cell, token) a position."""
        self.state: dict[int, tuple[int, ...]] = {}
        """Slot to the tokens that its state has seen."""
        self.copies: dict[int, list[int] | tuple[int, ...]] = {}
        self.computed = 0
        self.plans: list[Plan] = []
        self._next_cell = 0

    def on_idle(self) -> None:
        """Part of `Backend`."""

    @property
    def used(self) -> int:
        """Distinct cells that any slot holds."""
        return len({cell for held in self.held.values() for cell, _ in held})

    def start(self, plan: Plan) -> None:
        assert self._rows is None, "a plan was started before the last one's rows were read"
        self.plans.append(plan)
        for move in plan.moves:
            self._move(move)
        fault = self.fault() if plan.chunks else None
        if fault == "full" or self.used + plan.tokens > self.cells:
            raise CellsFullError
        rows = [row for chunk in plan.chunks for row in self._compute(chunk)]
        if fault == "broken":
            raise DecodeError
        self._rows = np.stack(rows) if rows else np.empty((0, N_VOCAB), np.float32)

    def rows(self) -> Rows:
        rows, self._rows = self._rows, None
        assert rows is not None, "rows were read before a plan was started"
        return rows

    def _move(self, move):
        match move:
            case Clear():
                self.held, self.state, self.copies = {}, {}, {}
            case Drop(slot=slot):
                self.held[slot], self.state[slot] = [], ()
            case Trim(slot=slot, length=length):
                assert not self.stateful, "a state cannot be taken back"
                assert len(self.held[slot]) > length > 0, "a trim of nothing, or of everything"
                del self.held[slot][length:]
            case Share(source=source, target=target, length=length):
                assert not self.held.get(target), "a share onto a slot that is not empty"
                assert len(self.held[source]) >= length, "a share of what is not computed"
                self.held[target] = self.held[source][:length]
                self.state[target] = self.state[source]
            case _:
                self._copy(move)

    def _copy(self, move):
        """Moves to and from host memory."""
        match move:
            case Save(slot=slot, start=start, end=end, key=key):
                assert key not in self.copies
                assert len(self.held[slot]) >= end > start
                self.copies[key] = [start, *(token for _, token in self.held[slot][start:end])]
            case Load(slot=slot, start=start, end=end, key=key):
                first, *tokens = self.copies[key]
                held = self.held.setdefault(slot, [])
                assert len(held) == start, "a load that leaves a gap"
                assert self.used + len(tokens) <= self.cells, "a load without room"
                for token in tokens[start - first : end - first]:
                    held.append((self._next_cell, token))
                    self._next_cell += 1
                assert len(held) == end
                self.state[slot] = (-1,)
            case Checkpoint(slot=slot, key=key):
                assert key not in self.copies
                self.copies[key] = self.state[slot]
            case Restore(slot=slot, key=key):
                self.state[slot] = tuple(self.copies[key])
            case Forget(key=key):
                del self.copies[key]

    def _compute(self, chunk):
        assert 0 <= chunk.slot < self.slots
        held = self.held.setdefault(chunk.slot, [])
        assert chunk.start == len(held), "a position gap"
        assert len(chunk.tokens) > 0
        tokens = chunk.tokens if chunk.image is None else seen([chunk.image])
        assert len(tokens) == len(chunk.tokens)
        assert min(tokens) >= 0
        for token in tokens:
            held.append((self._next_cell, token))
            self._next_cell += 1
        self.state[chunk.slot] = (*self.state.get(chunk.slot, ()), *tokens)
        self.computed += len(chunk.tokens)
        tokens = [token for _, token in held]
        if self.stateful:
            assert list(self.state[chunk.slot]) == tokens, "the state is not that of its position"
        ends = range(len(tokens) - chunk.drafted, len(tokens) + 1) if chunk.logits else ()
        return [self._row(tokens[:end]) for end in ends]

    def _row(self, tokens):
        row = np.full(N_VOCAB, -1.0, np.float32)
        row[next_token(tokens)] = 1.0
        return row
