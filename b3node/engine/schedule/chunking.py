"""Who computes how much of the next step: running streams first, then prompts, else guesses.

A chunk of a stateful model ends where its state is to be copied: at the prompt's marks, and every `CHECKPOINT_TOKENS`
tokens of an answer, so that an answer which is sent back changed is not computed all again.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from functools import partial
from typing import Final

from b3node.engine.limits import EngineLimits
from b3node.engine.plan import Chunk
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.sliding_window import SlidingWindows
from b3node.engine.schedule.token_budget import TokenBudget
from b3node.engine.speculation.drafter import Cost

CHECKPOINT_TOKENS: Final = 256


class Chunker:
    """Divides steps among sequences; changes nothing."""

    def __init__(
        self, limits: EngineLimits, token_budget: TokenBudget, windows: SlidingWindows, eog: frozenset[int]
    ) -> None:
        self._limits = limits
        self._eog = eog
        self._token_budget = token_budget
        self._windows = windows

    def chunks(self, running: Collection[Sequence], free: int) -> list[Chunk]:
        """Streams first, then prompts in order of admission, within the allowance.

        A stream computes one token, and of what is known behind it what fits: no more than half of the allowance
        where a prompt waits. Where none does, and cells are left of the `free` ones, it computes what it is likely to
        say, too.
        """
        streams = [s for s in running if s.answering]
        prompts = [s for s in running if not s.answering]
        room = min(self._token_budget.allowance(streams=len(streams)), self._limits.batch - len(streams))
        room = max(min(room, self._windows.prompt_room(running, len(streams))), 0)
        kept = room // 2 if prompts else 0
        chunks = []
        for sequence in streams:
            chunks.append(self._chunk(sequence, room - kept + 1))
            room -= len(chunks[-1].tokens) - 1
        for sequence in prompts:
            if room > 0:
                chunks.append(self._chunk(sequence, room))
                room -= len(chunks[-1].tokens)
        if streams and not prompts:
            wanted = sum(len(chunk.tokens) for chunk in chunks)
            room = min(room, free - wanted, self._limits.slots - len(streams))
            return list(self._with_drafts(streams, chunks, room))
        return chunks

    def _with_drafts(self, streams: list[Sequence], chunks: list[Chunk], room: int) -> Iterator[Chunk]:
        """The chunks of streams, and behind them at most `room` tokens that are guessed."""
        cost = partial(self._token_budget.cost, len(streams))
        for sequence, chunk in zip(streams, chunks, strict=True):
            draft = self._draft(sequence, chunk, room, cost)
            room -= len(draft)
            yield (
                Chunk(chunk.slot, chunk.start, chunk.tokens + draft, chunk.logits, len(draft))
                if draft
                else chunk
            )

    def _draft(self, sequence: Sequence, chunk: Chunk, room: int, cost: Cost) -> array[int]:
        """What is guessed to follow a chunk, and never more than its sequence may still say behind the next token.

        Who is under suspicion of having broken a step is given nothing to compute that it may not say.
        """
        if sequence.drafter is None or sequence.suspect or not chunk.logits:
            return array("i")
        most = min(room, sequence.limit - len(sequence.known) - 1)
        return sequence.drafter.draft(most, cost, self._eog)

    def is_checkpoint(self, sequence: Sequence) -> bool:
        """Whether someone may want to go on from where a sequence stands now."""
        if not self._limits.stateful:
            return False
        generated = sequence.computed - sequence.prompt
        return sequence.computed in sequence.cache_boundaries or (
            generated > 0 and generated % CHECKPOINT_TOKENS == 0
        )

    def _chunk(self, sequence: Sequence, most: int) -> Chunk:
        """What a sequence computes next, of at most so many tokens."""
        size = min(sequence.pending, most, self._to_next_mark(sequence))
        start = sequence.computed
        tokens = sequence.known[start : start + size]
        return Chunk(sequence.slot, start, tokens, logits=size == sequence.pending)

    def _to_next_mark(self, sequence: Sequence) -> int:
        """Tokens up to the next place where the state is to be copied: a chunk must end there."""
        if not self._limits.stateful:
            return sequence.pending
        if (generated := sequence.computed - sequence.prompt) >= 0:
            return CHECKPOINT_TOKENS - generated % CHECKPOINT_TOKENS
        ahead = (mark - sequence.computed for mark in sequence.cache_boundaries if mark > sequence.computed)
        return next(ahead, sequence.pending)
