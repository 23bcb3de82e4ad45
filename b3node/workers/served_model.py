"""What the front sees of a model that child processes serve: the seam between service and workers.

The service knows these Protocols only, so its tests need no child process; `fleet` has the real thing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from b3node.contract.request import Request
from b3node.engine.messages import Finished, Sampling, Started, Token
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits

State = Literal["loading", "ready", "restarting", "failed", "stopped"]
"""`failed`: the model cannot be loaded or crashed too often, and stays down until the node is restarted."""


class ModelFacts(msgspec.Struct, frozen=True):
    """What is known of a served model once its engine is ready. Counts are tokens and sequences."""

    n_ctx: int
    n_ctx_train: int
    n_parallel: int
    n_vocab: int
    device: str
    description: str
    load_seconds: float


class EngineLoad(msgspec.Struct, frozen=True):
    """The sequences in an engine at the end of its last step."""

    running: int
    waiting: int


Output = Started | Token | Finished


class Generation(Protocol):
    """One submitted sequence, as a source of what the engine says of it."""

    async def take(self) -> tuple[Output, ...]:
        """Everything that has arrived since the last call, at least one, in the order of arrival.

        After `Finished` nothing more comes. Raises `Refusal` `infer_backend_unavailable` when the engine
        died under it.
        """
        ...

    async def listen(self, hear: Callable[[Sequence[Output]], bool]) -> None:
        """Calls `hear` with everything as it arrives, until it has heard enough and returns False.

        It is called from within what brings the news, so it must not block; what it raises is raised here, and
        is for it alone. What it has not heard is kept. Raises `Refusal` as `take` does; may return early.
        """
        ...

    def cancel(self) -> None:
        """Gives the sequence up: its cells are free at the engine's next step. Idempotent."""
        ...


class ServedModel(Protocol):
    """A configured model and the processes behind it."""

    @property
    def id(self) -> str:
        """The name that requests use."""
        ...

    @property
    def state(self) -> State:
        """Where its engine stands now."""
        ...

    @property
    def facts(self) -> ModelFacts | None:
        """What the engine said when it became ready last; None before the first time."""
        ...

    @property
    def load(self) -> EngineLoad | None:
        """The engine's load at its last step; None before the first one since its start."""
        ...

    @property
    def traits(self) -> Traits | None:
        """What its template shows of it; None before a prepare worker has been ready."""
        ...

    @property
    def max_request_bytes(self) -> int:
        """The largest request body that this model takes, in bytes."""
        ...

    @property
    def created(self) -> int:
        """When the model file was made, in seconds since 1970."""
        ...

    def require_ready(self) -> None:
        """Raises `Refusal` `infer_backend_unavailable` with `Retry-After` unless the engine is up."""
        ...

    async def prepare(self, request: Request) -> Prepared:
        """The request's prompt as tokens, made by a prepare worker. Raises `Refusal`."""
        ...

    def submit(
        self, prepared: Prepared, *, sampling: Sampling, max_tokens: int | None, namespace: str
    ) -> Generation:
        """Hands a prompt to the engine; `max_tokens` None is until the end of the context.

        Raises `Refusal` (backend unavailable, or capacity).
        """
        ...

    async def prepares(self, within: float) -> bool:
        """Whether a prompt was prepared in the last seconds, else whether one is `within` seconds."""
        ...

    async def probe(self, within: float) -> bool:
        """Whether a real token was decoded in the last 60 s, else whether one is `within` seconds."""
        ...
