"""`GET /healthz`, the process answers; `GET /readyz`, every model prepares and decodes."""

from __future__ import annotations

from typing import Final

import msgspec
from litestar import MediaType, Response
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler

from b3node.service.health import Health
from b3node.service.node import DRAIN_RETRY_SECONDS, Node

HEALTHZ: Final = "/healthz"
READYZ: Final = "/readyz"


class Alive(msgspec.Struct, frozen=True):
    """The body of `/healthz`."""

    node: str
    status: str = "ok"


def healthz_route(node: Node) -> HTTPRouteHandler:
    """Returns Litestar's handler, which answers 200 until the process ends."""

    @HTTPRouteHandler(HEALTHZ, http_method=[HttpMethod.GET, HttpMethod.HEAD], name="healthz")
    async def healthz() -> Response[bytes]:
        return Response(msgspec.json.encode(Alive(node.id)), media_type=MediaType.JSON)

    return healthz


def readyz_route(node: Node) -> HTTPRouteHandler:
    """Returns Litestar's handler; 503 with `Retry-After` while the node drains or a model does not work."""
    health = Health(node)

    @HTTPRouteHandler(READYZ, http_method=[HttpMethod.GET, HttpMethod.HEAD], name="readyz")
    async def readyz() -> Response[bytes]:
        readiness = await health.readiness()
        ready = readiness.status == "ready"
        return Response(
            msgspec.json.encode(readiness),
            status_code=200 if ready else 503,
            headers={} if ready else {"retry-after": str(DRAIN_RETRY_SECONDS)},
            media_type=MediaType.JSON,
        )

    return readyz
