"""One request inside the engine: four counts, from which every other length follows."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from b3node.engine.guidance.guide import Guide
from b3node.engine.messages import Sampling, Submit
from b3node.engine.sampling.constraint import Constraint
from b3node.engine.speculation.drafter import Drafter


@dataclass(slots=True, eq=False)
class Sequence:
    """A sequence's tokens and how far they are computed; the scheduler alone mutates it.

    Invariants: `0 <= computed <= len(known)`, `prompt <= len(known) <= limit`, and while it runs at least
    one known token is not computed yet (the next one to decode).
    """

    id: int
    namespace: str
    known: array[int]
    """Prompt tokens, then generated ones (int32 ids)."""
    prompt: int
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
    cache_boundaries: tuple[int, ...] = ()
    constraint: Constraint | None = None
    """Where it stands in its grammar or outline: behind the last generated token, also while it is paused."""
    drafter: Drafter | None = None
    """Guesses its next tokens; None where a wrong guess could not be taken back."""
    marked: Mapping[int, bytes] = field(default_factory=dict)
    """What the front is told of special tokens; the others say what they say."""
    computed: int = 0
    cached: int = 0
    slot: int = -1
    """The llama.cpp sequence id it runs in; -1 while it waits."""
    suspect: bool = False
    """Whether it was in a step that broke and has not drawn a token since."""
    paused: bool = False
    """Whether it ran before and waits to be computed again."""

    @classmethod
    def of(cls, submit: Submit, *, n_ctx: int, now: float, constraint: Constraint | None = None) -> Sequence:
        """The sequence a message asks for, bounded by the context of `n_ctx` tokens."""
        known = array("i")
        known.frombytes(submit.tokens)
        limit = min(len(known) + submit.max_tokens, n_ctx)
        return cls(
            id=submit.id,
            namespace=submit.namespace,
            known=known,
            prompt=len(known),
            limit=limit,
            reserve=min(len(known) + submit.reserve, limit),
            sampling=submit.sampling,
            rng=random.Random(submit.sampling.seed),  # noqa: S311 - repeatable on purpose
            arrived=now,
            deadline=now + submit.queue_timeout,
            cache_boundaries=submit.cache_boundaries,
            constraint=constraint,
            marked=constraint.marked if isinstance(constraint, Guide) else {},
        )

    def append(self, token: int) -> None:
        """A new token of the answer."""
        self.known.append(token)
        self.suspect = False

    @property
    def pending(self) -> int:
        """Known tokens that are not computed yet."""
        return len(self.known) - self.computed

    @property
    def answering(self) -> bool:
        """Whether its prompt is computed but for the last token: what comes next is a step of its answer."""
        return self.computed >= self.prompt - 1

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return len(self.known) - self.prompt

    @property
    def promised(self) -> int:
        """Cells that must stay available to it: its reserve, or what it has grown to."""
        return max(self.reserve, len(self.known))
