"""Divides a step among sequences: one token of each stream first, then prompts, else drafts.

A chunk of a stateful model ends where its state is to be copied: at the prompt's cache boundaries, and every
`CHECKPOINT_TOKENS` of an answer, so that an answer which is sent back changed is not computed all again.
"""

from __future__ import annotations

from array import array
from collections import abc
from functools import partial
from typing import Final

from b3node.engine.limits import EngineLimits
from b3node.engine.plan import Chunk
from b3node.engine.schedule.sequence import Sequence
from b3node.engine.schedule.sliding_window import SlidingWindows
from b3node.engine.schedule.token_budget import TokenBudget
from b3node.engine.speculation.drafter import Cost

CHECKPOINT_TOKENS: Final = 256
"""Tokens of an answer between two copies of its state."""


class Chunker:
    """Cuts the chunks of a step; changes nothing.

    Args:
        limits: bounds, fixed for its life.
        token_budget: gives the tokens of a step, and their cost.
        windows: the cells of sliding windows.
        eog: ids that end a generation; no draft holds one.
    """

    def __init__(
        self, limits: EngineLimits, token_budget: TokenBudget, windows: SlidingWindows, eog: frozenset[int]
    ) -> None:
        self._limits = limits
        self._eog = eog
        self._token_budget = token_budget
        self._windows = windows

    def chunks(self, running: abc.Mapping[int, Sequence], free: int) -> list[Chunk]:
        """Returns the chunks of streams, then of prompts in order of admission, within the allowance.

        An image is one chunk, also where it is larger than the rest of the allowance. A stream computes one
        token, and of its known tokens after that as many as fit. While a prompt waits, those of all streams
        take no more than half of the allowance, and leave room for the image with which the first prompt goes
        on. While none does, a stream also computes a draft if `free` cells are left.

        Args:
            running: the running sequences by slot.
            free: cells that no sequence reads.
        """
        streams: list[tuple[int, Sequence]] = []
        prompts: list[tuple[int, Sequence]] = []
        for each in running.items():
            (streams if each[1].answering else prompts).append(each)
        left = self._limits.batch - len(streams)
        room = min(self._token_budget.allowance(streams=len(streams)), left)
        room = max(min(room, self._windows.prompt_room(running.values(), len(streams))), 0)
        ahead = max(min(room // 2, left - prompts[0][1].next_image_cells), 0) if prompts else room
        chunks = []
        for slot, sequence in streams:
            chunks.append(self._chunk(slot, sequence, ahead + 1))
            ahead -= len(chunks[-1].tokens) - 1
        wanted = sum(len(chunk.tokens) for chunk in chunks)
        room -= wanted - len(streams)
        for slot, sequence in prompts:
            if room > 0 and wanted + sequence.next_image_cells <= self._limits.batch:
                chunks.append(self._chunk(slot, sequence, room))
                room -= len(chunks[-1].tokens)
                wanted += len(chunks[-1].tokens)
        if streams and not prompts:
            room = min(room, free - wanted, self._limits.slots - len(streams))
            return list(self._with_drafts(running, chunks, room))
        return chunks

    def _with_drafts(
        self, running: abc.Mapping[int, Sequence], chunks: list[Chunk], room: int
    ) -> abc.Iterator[Chunk]:
        """Yields the chunks of streams, followed by drafts of at most `room` tokens together."""
        cost = partial(self._token_budget.cost, len(chunks))
        for chunk in chunks:
            draft = self._draft(running[chunk.slot], chunk, room, cost)
            room -= len(draft)
            yield (
                Chunk(chunk.slot, chunk.start, chunk.tokens + draft, chunk.logits, len(draft))
                if draft
                else chunk
            )

    def _draft(self, sequence: Sequence, chunk: Chunk, room: int, cost: Cost) -> array[int]:
        """Returns the draft after a chunk, never longer than the sequence may go on after its next token.

        A suspect computes no tokens but its own.
        """
        if sequence.drafter is None or sequence.suspect or not chunk.logits:
            return array("i")
        most = min(room, sequence.limit - len(sequence.known) - 1)
        return sequence.drafter.draft(most, cost, self._eog)

    def is_checkpoint(self, sequence: Sequence) -> bool:
        """Returns whether the state of a sequence is to be copied where it stands now."""
        if not self._limits.stateful:
            return False
        generated = sequence.computed - sequence.prompt
        at_boundary = sequence.computed in sequence.cache_boundaries
        return at_boundary or (generated > 0 and generated % CHECKPOINT_TOKENS == 0)

    def _chunk(self, slot: int, sequence: Sequence, most: int) -> Chunk:
        """Returns the next chunk of a sequence: at most `most` tokens, or an image."""
        size = min(sequence.pending, most, self._to_next_checkpoint(sequence))
        start = sequence.computed
        if sequence.images:
            if (image := sequence.images.get(start)) is not None:
                tokens = sequence.known[start : start + image.cells]
                return Chunk(slot, start, tokens, logits=False, image=image)
            size = min([size, *(cell - start for cell in sequence.images if cell > start)])
        tokens = sequence.known[start : start + size]
        return Chunk(slot, start, tokens, logits=size == sequence.pending)

    def _to_next_checkpoint(self, sequence: Sequence) -> int:
        """Returns the tokens up to the next place where the state is to be copied: a chunk must end there."""
        if not self._limits.stateful:
            return sequence.pending
        if (generated := sequence.computed - sequence.prompt) >= 0:
            return CHECKPOINT_TOKENS - generated % CHECKPOINT_TOKENS
        boundaries = (b - sequence.computed for b in sequence.cache_boundaries if b > sequence.computed)
        return next(boundaries, sequence.pending)
