"""`GET /v1/models` and its alias: the served models as an OpenAI list, each with an extension object."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from litestar import MediaType, Response
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler

from b3node.prompt.traits import Traits
from b3node.service.node import Node
from b3node.workers.served_model import ModelState, ServedModel

PATHS: Final = ["/v1/infer/models", "/v1/models"]


class ToolSupport(msgspec.Struct, frozen=True):
    """The way in which functions reach the model."""

    told_by: Literal["template", "text"]
    """By its template, or in the text of the prompt."""

    parallel: bool
    """Whether one turn may have several calls."""


class ReasoningSupport(msgspec.Struct, frozen=True):
    """Whether the model can reason, and how `effort` controls it.

    "switch": by a variable of its template. "always": the template always opens the reasoning, which is
    closed at once where none is wanted. "none": the model decides.
    """

    supported: bool
    control: Literal["none", "switch", "always"]


class FoundSupport(msgspec.Struct, frozen=True):
    """The abilities that were found by rendering the model's chat template."""

    template: bool
    """Whether the model's file has a template."""

    system: Literal["turn", "user"]
    """The place of instructions: a "turn" of their own, or the beginning of the first "user" turn."""

    tools: ToolSupport
    reasoning: ReasoningSupport


class ModelExtension(msgspec.Struct, frozen=True):
    """Facts that clients need before they send a request; null is not known before the model is loaded."""

    state: ModelState
    context_length: int | None
    max_request_bytes: int
    supports_reasoning: bool | None
    found: FoundSupport | None
    supports_images: bool = False
    supports_tools: bool = True
    supports_formats: bool = True


class ModelObject(msgspec.Struct, frozen=True):
    """A model as OpenAI lists it; `created` is when its file was made, in seconds since 1970."""

    id: str
    created: int
    b3os: ModelExtension
    object: Literal["model"] = "model"
    owned_by: Literal["b3os"] = "b3os"


class ModelList(msgspec.Struct, frozen=True):
    """The served models, in the order of the configuration."""

    data: tuple[ModelObject, ...]
    object: Literal["list"] = "list"


def model_list(node: Node) -> ModelList:
    """Returns the list of all models, those that are not ready among them."""
    return ModelList(tuple(map(_model, node.models.values())))


def models_route(node: Node) -> HTTPRouteHandler:
    """Returns Litestar's handler for both paths."""

    @HTTPRouteHandler(PATHS, http_method=[HttpMethod.GET, HttpMethod.HEAD], name="list_models")
    async def list_models() -> Response[bytes]:
        return Response(msgspec.json.encode(model_list(node)), media_type=MediaType.JSON)

    return list_models


def _model(model: ServedModel) -> ModelObject:
    context = None if model.facts is None else model.facts.n_ctx
    found = None if model.traits is None else _found_support(model.traits)
    reasons = None if found is None else found.reasoning.supported
    extension = ModelExtension(model.state, context, model.max_request_bytes, reasons, found)
    return ModelObject(model.id, model.created, extension)


def _found_support(traits: Traits) -> FoundSupport:
    return FoundSupport(
        traits.template,
        traits.system,
        ToolSupport(traits.tools, traits.parallel_calls),
        ReasoningSupport(traits.reasoning, traits.control),
    )
