"""Turns exceptions into answers: the contract's error body, which for a bug has only the request's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litestar import MediaType, Request, Response
from litestar.exceptions import HTTPException
from litestar.types import ExceptionHandlersMap

from b3node.api.headers import record_of
from b3node.contract.encode import error_body
from b3node.errors import Refusal
from b3node.service import log
from b3node.service.respond import internal

AnyRequest = Request[Any, Any, Any]


def refused(
    request: AnyRequest, refusal: Refusal, headers: Mapping[str, str] | None = None
) -> Response[bytes]:
    """Returns the answer to a refused request, with `Retry-After` where it has one; records the reason."""
    record_of(request.scope).refuse(refusal)
    given = dict(headers or {})
    if refusal.retry_after is not None:
        given["retry-after"] = str(max(1, refusal.retry_after))
    return Response(error_body(refusal), status_code=refusal.status, headers=given, media_type=MediaType.JSON)


def on_refusal(request: AnyRequest, refusal: Refusal) -> Response[bytes]:
    """Answers a refusal."""
    return refused(request, refusal)


def on_http_exception(request: AnyRequest, error: HTTPException) -> Response[bytes]:
    """Answers an error of the router: no such path, no such method, a malformed head."""
    match error.status_code:
        case 404:
            return refused(request, Refusal("not_found", "No such path; see GET /schema/openapi.json."))
        case 405:
            allow = (error.headers or {}).get("allow", "")
            refusal = Refusal("method_not_allowed", f"This path takes {allow}.")
            return refused(request, refusal, {"allow": allow})
        case status if status < 500:
            return refused(request, Refusal("invalid_request", "The head of the request cannot be read."))
        case _:
            return on_bug(request, error)


def on_bug(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Answers any other exception with the request's id; the log has its traceback."""
    record = record_of(request.scope)
    log.bug(record, error)
    return refused(request, internal(record.request_id))


HANDLERS: Final[ExceptionHandlersMap] = {
    Refusal: on_refusal,
    HTTPException: on_http_exception,
    Exception: on_bug,
}
"""Litestar's map; the most specific class wins."""
