"""Messages between the front and an engine: frozen values, msgpack on the wire, never pickle.

The `id` of a request is an integer that the front counts up for each engine process. A restarted engine
starts empty, so ids of the dead process mean nothing to it. The engine sends one `Step` for every decode
step, for all sequences together: it is also the heartbeat.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.dialects.outline import Outline
from b3node.spans import PromptSpan


class Sampling(msgspec.Struct, frozen=True, array_like=True):
    """How tokens are drawn; travels whole from the request to the draw (`engine.sampling`)."""

    temperature: float
    """At least 0; 0 is greedy."""
    top_p: float
    """0 to 1; 0 is greedy, and 1 leaves out no token."""
    seed: int
    """Repeats a response."""

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is always taken (contract: `top_p` 0 is the same as that)."""
        return self.temperature <= 0.0 or self.top_p <= 0.0


class Submit(msgspec.Struct, frozen=True, tag="submit", array_like=True):
    """A new sequence."""

    id: int
    namespace: str
    """The organization within which prefixes are shared."""
    prompt: tuple[PromptSpan, ...]
    """Never empty, and its last span is text."""
    max_tokens: int
    """The most tokens to generate."""
    reserve: int
    """How many of them are promised cells before it starts. A sequence that outgrows them may be paused, and
    computed again, when cells run out."""
    sampling: Sampling
    queue_timeout: float
    """Seconds that it may wait in the queue."""
    cache_boundaries: tuple[int, ...] = ()
    """Lengths of the prompt, in cells and ascending, at which later prompts are likely to leave it."""
    grammar: str | None = None
    """GBNF text that holds for the generated tokens; None allows any."""
    outline: Outline | None = None
    """Where the grammar applies, and the bound of the thinking; None: from the beginning, and no thinking."""


class Cancel(msgspec.Struct, frozen=True, tag="cancel", array_like=True):
    """The client left: the sequence gives back its cells at the next step. Unknown ids are ignored."""

    id: int


ToEngine = Submit | Cancel


class Loading(msgspec.Struct, frozen=True, tag="loading", array_like=True):
    """Progress of the model's load."""

    progress: float
    """0 to 1."""


class Ready(msgspec.Struct, frozen=True, tag="ready", array_like=True):
    """The model is loaded and has decoded a token. Counts are tokens, cells and sequences."""

    n_ctx: int
    n_parallel: int
    n_vocab: int
    n_ctx_train: int
    device: str
    description: str
    load_seconds: float


class LoadFailed(msgspec.Struct, frozen=True, tag="load_failed", array_like=True):
    """The model cannot be served."""

    reason: str
    """For the operator's log, never for a client."""


class Started(msgspec.Struct, frozen=True, array_like=True):
    """A sequence left the queue for the first time."""

    id: int
    queue_seconds: float
    """How long it waited."""
    cached_tokens: int
    """Prompt tokens that the prefix cache served."""


class Token(msgspec.Struct, frozen=True, array_like=True):
    """One generated token."""

    id: int
    piece: bytes
    """Its bytes; may be empty, and may be a part of a character."""


FinishReason = Literal["stop", "length", "cancelled", "capacity", "failed"]
"""`stop`: an end-of-generation token. `length`: max_tokens or the end of the context. `cancelled`: as
asked. `capacity`: the queue was full or the wait too long (nothing was generated). `failed`: the engine
could not decode this sequence, or not keep it to its grammar."""


class Finished(msgspec.Struct, frozen=True, array_like=True):
    """The last message about a sequence; counts are tokens."""

    id: int
    reason: FinishReason
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    """Generated tokens, an end-of-generation token among them."""


class Step(msgspec.Struct, frozen=True, tag="step", array_like=True):
    """The events of one step, in this order: sequences started, tokens generated, sequences finished."""

    started: tuple[Started, ...]
    tokens: tuple[Token, ...]
    finished: tuple[Finished, ...]
    running: int
    """Sequences that run after the step."""
    waiting: int
    """Sequences that wait after it, paused ones among them."""
    seconds: float
    """How long the model computed; 0 where a step failed."""
    cells_used: int = 0
    """Cells of running and kept sequences after the step."""
    prompt_tokens: int = 0
    """Prompt tokens that the step computed."""


FromEngine = Loading | Ready | LoadFailed | Step
