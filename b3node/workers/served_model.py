"""The front's view of a model that child processes serve: the seam between service and workers.

The service knows these Protocols only, so its tests need no child process; `fleet` implements them.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from b3node.contract.request import Request
from b3node.engine.messages import Finished, Sampling, Started, Token
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits

ModelState = Literal["loading", "ready", "restarting", "failed", "stopped"]
"""`failed`: the model cannot be loaded or crashed too often, and stays down until the node is restarted."""


class ModelFacts(msgspec.Struct, frozen=True):
    """Facts of a served model, known once its engine is ready."""

    n_ctx: int
    """Tokens of one sequence."""
    n_ctx_train: int
    """Tokens of the context that the model was trained with."""
    n_parallel: int
    """Sequences that run at once."""
    n_vocab: int
    """Tokens of the vocabulary."""
    device: str
    """Where it computes, for people."""
    description: str
    """llama.cpp's description of the model."""
    load_seconds: float
    """Seconds that its load took."""


class EngineLoad(msgspec.Struct, frozen=True):
    """The sequences and cells of an engine at the end of its last step, and its tokens so far."""

    running: int
    """Sequences with a slot."""
    waiting: int
    """Sequences in the queue."""
    cells_used: int = 0
    """Cells of running sequences and kept prefixes."""
    prompt_tokens: int = 0
    """Prompt tokens computed by this and earlier engines of the model."""
    cached_tokens: int = 0
    """Prompt tokens that their prefix caches served."""


Output = Started | Token | Finished


class Generation(Protocol):
    """One submitted sequence, as a source of its outputs."""

    async def take(self) -> tuple[Output, ...]:
        """Returns the outputs that arrived since the last call, at least one, in order.

        None comes after `Finished`. Raises `Refusal` `infer_backend_unavailable` if the engine died under it.
        """
        ...

    async def listen(self, feed: Callable[[abc.Sequence[Output]], bool]) -> None:
        """Calls `feed` with outputs as they arrive, until it returns False.

        It is called while a message is being received, so it must not block; its errors are raised here and
        reach nothing else. Outputs that it was not called with are kept. Raises `Refusal` as `take` does; may
        return early.
        """
        ...

    def cancel(self) -> None:
        """Cancels the sequence: its cells are free at the engine's next step. Idempotent."""
        ...


class ServedModel(Protocol):
    """A configured model with its processes."""

    @property
    def id(self) -> str:
        """Name that requests use."""
        ...

    @property
    def state(self) -> ModelState:
        """State of its engine."""
        ...

    @property
    def facts(self) -> ModelFacts | None:
        """Facts of the last time that the engine became ready; None before the first."""
        ...

    @property
    def load(self) -> EngineLoad | None:
        """The engine's load at its last step; None before the first one since its start."""
        ...

    @property
    def traits(self) -> Traits | None:
        """Traits that its template shows; None before a prepare worker has been ready."""
        ...

    @property
    def max_request_bytes(self) -> int:
        """Bytes of the largest request body that this model takes."""
        ...

    @property
    def created(self) -> int:
        """Time of the model file, in seconds since 1970."""
        ...

    def require_ready(self) -> None:
        """Raises `Refusal` `infer_backend_unavailable` with `Retry-After` unless the engine is up."""
        ...

    async def prepare(self, request: Request) -> Prepared:
        """Returns the request's prompt as tokens, made by a prepare worker. Raises `Refusal`."""
        ...

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> Generation:
        """Submits a prompt to the engine; `max_tokens` None is until the end of the context.

        Raises `Refusal` (backend unavailable, or capacity).
        """
        ...

    async def prepares(self, within: float) -> bool:
        """Returns whether a prompt was prepared in the last seconds, else whether one is `within` seconds."""
        ...

    async def probe(self, within: float) -> bool:
        """Returns whether a real token was decoded in the last 60 s, else whether one is `within` seconds."""
        ...
