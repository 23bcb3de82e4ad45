"""Messages between the front and its children, besides the engine's own (`engine.messages`)."""

from __future__ import annotations

import msgspec

from b3node.config import Budgets, ModelConfig
from b3node.contract.request import Request
from b3node.engine.messages import ToEngine
from b3node.errors import Code
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits


class EngineOrder(msgspec.Struct, frozen=True, tag="engine_order", array_like=True):
    """The first message to an engine: the model that it is to serve."""

    model: ModelConfig
    """The model's file and all its options."""


class PrepareOrder(msgspec.Struct, frozen=True, tag="prepare_order"):
    """The first message to a prepare worker: the model whose vocabulary and template it is to load."""

    path: str
    """The model's file."""
    thinking: Budgets = Budgets()
    """Most tokens of thinking for each effort."""


class PrepareRequest(msgspec.Struct, frozen=True, tag="prepare"):
    """A request to prepare."""

    request: Request
    """The client's request."""
    now: float
    """The time that templates see, in seconds since 1970."""
    n_ctx: int
    """Tokens of the context."""


class PrepareReady(msgspec.Struct, frozen=True, tag="prepare_ready"):
    """The worker has loaded."""

    traits: Traits
    """The model's traits, found by probing its template."""


class PrepareFailed(msgspec.Struct, frozen=True, tag="prepare_failed"):
    """The worker cannot serve this model."""

    reason: str
    """For the operator's log."""


class PreparedAnswer(msgspec.Struct, frozen=True, tag="prepared"):
    """A prepared prompt."""

    prepared: Prepared
    """The prompt as tokens, with all that the engine needs."""


class RequestRefused(msgspec.Struct, frozen=True, tag="refused"):
    """A `Refusal` as a message."""

    code: Code
    """The error's code."""
    message: str
    """The error's text, for the client."""
    param: str | None
    """The parameter at fault."""


class PrepareCrashed(msgspec.Struct, frozen=True, tag="crashed"):
    """A bug in the worker; it lives on."""

    trace: str
    """The traceback, for the operator's log, never for a client."""


FromPrepare = PrepareReady | PrepareFailed | PreparedAnswer | RequestRefused | PrepareCrashed
ToPrepare = PrepareOrder | PrepareRequest
ToEngineProcess = EngineOrder | ToEngine

__all__ = [
    "EngineOrder",
    "FromPrepare",
    "PrepareCrashed",
    "PrepareFailed",
    "PrepareOrder",
    "PrepareReady",
    "PrepareRequest",
    "PreparedAnswer",
    "RequestRefused",
    "ToEngineProcess",
    "ToPrepare",
]
