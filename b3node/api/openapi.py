"""`GET /schema/openapi.json`: OpenAPI 3.1 of everything the node answers.

Response bodies come from the very types that are encoded, the request body from `request_schema`; what is
written by hand here are the routes, their answers and their headers.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import msgspec
from litestar import MediaType, Response as LitestarResponse
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler

from b3node import __version__
from b3node.api import models, responses
from b3node.api.models import ModelList
from b3node.api.probes import HEALTHZ, READYZ, Alive
from b3node.api.request_schema import REQUEST_SCHEMAS
from b3node.contract.events import Event
from b3node.contract.json_schema import PublishedSchema, reference
from b3node.contract.response import ErrorBody, Response
from b3node.errors import HTTP
from b3node.service.health import Readiness

PATH: Final = "/schema/openapi.json"

_REF_TEMPLATE: Final = "#/components/schemas/{name}"

_REFUSALS: Final = {
    400: "The request is invalid, asks for something this node does not do, or is longer than the context.",
    403: "The Host or the Origin of the request is not let in.",
    404: "The model is not served on this node, or the path does not exist.",
    405: "The path takes other methods.",
    413: "The body is larger than the model's `max_request_bytes`.",
    415: "The body is not declared as plain JSON.",
    500: "Something failed inside; the message carries the request id and nothing else.",
    503: "The model is not ready, the node is busy, or it is shutting down.",
}

_EXTRA_HEADERS: Final = {405: ("Allow",), 503: ("Retry-After",)}


def document() -> PublishedSchema:
    """Returns the whole document, as JSON values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "b3node",
            "version": __version__,
            "description": "A stateless subset of the OpenAI Responses API on this node's own models.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": _paths(),
        "components": {"schemas": _schemas(), "headers": _headers(), "responses": _failures()},
    }


def openapi_route() -> HTTPRouteHandler:
    """Returns Litestar's handler; the document is made once, at the first request: that takes some 15 ms."""
    body = cache(lambda: msgspec.json.encode(document()))

    @HTTPRouteHandler(PATH, http_method=[HttpMethod.GET, HttpMethod.HEAD], name="openapi")
    async def openapi() -> LitestarResponse[bytes]:
        return LitestarResponse(body(), media_type=MediaType.JSON)

    return openapi


def _schemas() -> PublishedSchema:
    types = [Response, ErrorBody, ModelList, Alive, Readiness]
    _, answers = msgspec.json.schema_components(types, ref_template=_REF_TEMPLATE)
    (event,), events = msgspec.json.schema_components([Event], ref_template=_REF_TEMPLATE)
    return {**REQUEST_SCHEMAS, **answers, **events, "StreamEvent": event}


def _headers() -> PublishedSchema:
    return {
        "x-request-id": {
            "description": "The id of this answer, new for each; a client's own is ignored.",
            "required": True,
            "schema": {"type": "string", "pattern": "^req_[0-9a-hjkmnp-tv-z]{26}$"},
        },
        "Server-Timing": {
            "description": "Phases in milliseconds (W3C Server Timing). A stream's head has no `total`.",
            "schema": {"type": "string"},
        },
        "Retry-After": {
            "description": "Seconds to wait before trying again.",
            "required": True,
            "schema": {"type": "integer", "minimum": 1},
        },
        "Allow": {
            "description": "The methods that the path takes.",
            "required": True,
            "schema": {"type": "string"},
        },
    }


def _common(*more: str) -> PublishedSchema:
    return {name: reference(name, "headers") for name in ("x-request-id", "Server-Timing", *more)}


def _json(schema: PublishedSchema) -> PublishedSchema:
    return {"application/json": {"schema": schema}}


def _failures() -> PublishedSchema:
    """Returns one answer a status: the error body, and the codes that come with it."""
    return {f"Error{status}": _failure(status, text) for status, text in _REFUSALS.items()}


def _failure(status: int, text: str) -> PublishedSchema:
    codes = ", ".join(f"`{code}`" for code, (of, _) in HTTP.items() if of == status)
    return {
        "description": f"{text} Codes: {codes}.",
        "headers": _common(*_EXTRA_HEADERS.get(status, ())),
        "content": _json(reference("ErrorBody")),
    }


def _paths() -> PublishedSchema:
    return {
        **{path: _endpoint(path) for path in responses.PATHS},
        **{path: _list(path) for path in models.PATHS},
        HEALTHZ: _get("healthz", "Whether the process answers.", reference("Alive")),
        READYZ: _readyz(),
        PATH: _get("openapi", "This document.", {"type": "object"}),
    }


def _endpoint(path: str) -> PublishedSchema:
    answer = {
        "description": "The response, or with `stream: true` its events: each is one `StreamEvent` behind "
        "`data: `, the last one `response.completed`, `response.incomplete`, "
        "or `response.failed` and `error`. "
        "The head comes with the first generated token.",
        "headers": _common(),
        "content": {
            **_json(reference("Response")),
            "text/event-stream": {"schema": {"type": "string"}, "x-event-schema": reference("StreamEvent")},
        },
    }
    operation: PublishedSchema = {
        "operationId": "createResponse" if path == responses.PATHS[0] else "createResponseAlias",
        "summary": "Create a response.",
        "requestBody": {"required": True, "content": _json(reference("CreateResponse"))},
        "responses": {"200": answer} | {str(status): _error(status) for status in _REFUSALS},
    }
    return {"post": operation}


def _error(status: int) -> PublishedSchema:
    return reference(f"Error{status}", "responses")


def _list(path: str) -> PublishedSchema:
    name = "listModels" if path == models.PATHS[0] else "listModelsAlias"
    return _get(name, "The served models, whatever their state.", reference("ModelList"))


def _get(
    name: str, summary: str, schema: PublishedSchema, more: PublishedSchema | None = None
) -> PublishedSchema:
    answer = {"description": summary, "headers": _common(), "content": _json(schema)}
    answers = {"200": answer, **{str(status): _error(status) for status in (403, 405, 500)}, **(more or {})}
    return {"get": {"operationId": name, "summary": summary, "responses": answers}}


def _readyz() -> PublishedSchema:
    unready = {
        "description": "A model does not decode, or the node is shutting down.",
        "headers": _common("Retry-After"),
        "content": _json(reference("Readiness")),
    }
    summary = "Whether every model decodes and requests are taken."
    return _get("readyz", summary, reference("Readiness"), {"503": unready})
