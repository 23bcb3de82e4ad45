"""One request inside the engine: four counts, from which every other length follows."""

from __future__ import annotations

import random
from array import array
from collections import abc
from dataclasses import dataclass

from b3node.engine.messages import Sampling, Submit
from b3node.engine.sampling.constraint import Constraint
from b3node.engine.speculation.drafter import Drafter
from b3node.spans import ImageSpan, images_by_cell


@dataclass(slots=True, eq=False)
class Sequence:
    """A sequence's tokens and how far they are computed.

    The modules of this room alone mutate it; a draw advances its `rng` and its `constraint`.

    Invariants: `0 <= computed <= len(known)`, `prompt <= len(known) <= limit`, and while it runs at least
    one known token is not computed yet (the next one to decode).
    """

    id: int
    namespace: str
    known: array[int]
    """The prompt, then generated tokens: int32 ids, one a cell, negative ones for images
    (`cache.span_index`)."""
    prompt: int
    """Cells of the prompt."""
    images: abc.Mapping[int, ImageSpan]
    """The images of the prompt by the cell at which each starts; mostly none."""
    limit: int
    """Known tokens at which it ends as `length`."""
    reserve: int
    """Cells that admission promises it."""
    sampling: Sampling
    rng: random.Random
    """Its own random numbers: the seed repeats the response, whichever sequences run at the same time."""
    arrived: float
    deadline: float
    """When it leaves the queue unserved, in seconds of the engine's clock."""
    cache_boundaries: tuple[int, ...]
    """Lengths of the prompt at which later prompts may leave it, ascending."""
    constraint: Constraint | None
    """Its place in its grammar or outline: after the last generated token, also while it is paused."""
    special_pieces: abc.Mapping[int, bytes]
    """The bytes that the front gets for special tokens; other tokens have those of the vocabulary."""
    drafter: Drafter | None = None
    """Guesses its next tokens; None where a wrong guess could not be taken back."""
    computed: int = 0
    """Known tokens that lie in cells."""
    cached: int = 0
    """Prompt tokens that the prefix cache served when it was admitted."""
    slot: int | None = None
    """The llama.cpp sequence id it runs in; None while it waits."""
    suspect: bool = False
    """Whether it was in a step that broke and has not drawn a token since."""
    paused: bool = False
    """Whether it ran before and waits to be computed again."""

    @classmethod
    def of(
        cls,
        submit: Submit,
        known: array[int],
        *,
        n_ctx: int,
        now: float,
        constraint: Constraint | None = None,
        special_pieces: abc.Mapping[int, bytes] | None = None,
    ) -> Sequence:
        """Returns the sequence that a message asks for, bounded by the context of `n_ctx` tokens.

        `known` are the ids of the prompt's cells; the sequence appends to them.
        """
        limit = min(len(known) + submit.max_tokens, n_ctx)
        return cls(
            id=submit.id,
            namespace=submit.namespace,
            known=known,
            prompt=len(known),
            images=images_by_cell(submit.prompt),
            limit=limit,
            reserve=min(len(known) + submit.reserve, limit),
            sampling=submit.sampling,
            rng=random.Random(submit.sampling.seed),  # noqa: S311 - repeatable on purpose
            arrived=now,
            deadline=now + submit.queue_timeout,
            cache_boundaries=submit.cache_boundaries,
            constraint=constraint,
            special_pieces=special_pieces or {},
        )

    def append(self, token: int) -> None:
        """Appends a token of the answer."""
        self.known.append(token)
        self.suspect = False

    @property
    def pending(self) -> int:
        """Known tokens that are not computed yet."""
        return len(self.known) - self.computed

    @property
    def next_image_cells(self) -> int:
        """Cells of the image that is computed next; 0 before text."""
        image = self.images.get(self.computed)
        return 0 if image is None else image.cells

    @property
    def answering(self) -> bool:
        """Whether its prompt is computed but for the last token: its next step generates."""
        return self.computed >= self.prompt - 1

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return len(self.known) - self.prompt

    @property
    def promised(self) -> int:
        """Cells that must stay available to it: its reserve, or its length once that is larger."""
        return max(self.reserve, len(self.known))
