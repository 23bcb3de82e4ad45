"""The first message to a child: what it is to load and how; and what a prepare worker is asked and answers."""

from __future__ import annotations

import msgspec

from b3node.config import Budgets, ModelConfig
from b3node.contract.request import Request
from b3node.engine.messages import ToEngine
from b3node.errors import Code
from b3node.prompt.prepared import Prepared
from b3node.prompt.traits import Traits


class EngineOrder(msgspec.Struct, frozen=True, tag="engine_order", array_like=True):
    """The model that an engine is to serve."""

    model: ModelConfig


class PrepareOrder(msgspec.Struct, frozen=True, tag="prepare_order"):
    """Which vocabulary and template a prepare worker is to load."""

    path: str
    thinking: Budgets = Budgets()


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """Prepare a request for a context of `n_ctx` tokens; `now` is the moment that templates see, in seconds since 1970."""

    request: Request
    now: float
    n_ctx: int


class PrepareReady(msgspec.Struct, frozen=True, tag="prepare_ready"):
    """The worker has loaded; `traits` are what its template shows of the model."""

    traits: Traits


class PrepareFailed(msgspec.Struct, frozen=True, tag="prepare_failed"):
    """The worker cannot serve; `reason` is for the operator's log."""

    reason: str


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """A prepared prompt."""

    prepared: Prepared


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """A `Refusal`, as it crosses the line."""

    code: Code
    message: str
    param: str | None


class Broke(msgspec.Struct, frozen=True, tag="broke"):
    """A bug showed while a request was prepared; `trace` is for the operator's log, never for a client."""

    trace: str


FromPrepare = PrepareReady | PrepareFailed | Answer | Refused | Broke
ToPrepare = PrepareOrder | Ask
ToEngineProcess = EngineOrder | ToEngine

__all__ = [
    "Answer",
    "Ask",
    "Broke",
    "EngineOrder",
    "FromPrepare",
    "PrepareFailed",
    "PrepareOrder",
    "PrepareReady",
    "Refused",
    "ToEngineProcess",
    "ToPrepare",
]
