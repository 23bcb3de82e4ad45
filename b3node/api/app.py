"""Makes the ASGI application: its routes, and the middleware around them."""

from __future__ import annotations

from litestar import Litestar
from litestar.plugins import PluginProtocol

from b3node.api.client import STALL_SECONDS
from b3node.api.exception_handlers import HANDLERS
from b3node.api.headers import stamp_headers
from b3node.api.host_check import HostCheck
from b3node.api.middleware import RequestMiddleware
from b3node.api.models import models_route
from b3node.api.openapi import openapi_route
from b3node.api.probes import healthz_route, readyz_route
from b3node.api.responses import responses_route
from b3node.principal import Authenticate, local
from b3node.service.node import Node


def create_app(
    node: Node,
    host_check: HostCheck = HostCheck(),  # noqa: B008 - frozen
    *,
    authenticate: Authenticate = local,
    stall_seconds: float = STALL_SECONDS,
) -> Litestar:
    """Returns the ASGI application that serves a node over HTTP.

    Args:
        node: the node that answers.
        host_check: the names and origins that are let in; by default loopback's names and no web page.
        authenticate: finds the principal of each request; by default everything is `LOCAL`'s.
        stall_seconds: the longest time that one write waits for a client that does not read.
    """
    app = _Application(
        route_handlers=[
            responses_route(node, stall_seconds=stall_seconds),
            models_route(node),
            healthz_route(node),
            readyz_route(node),
            openapi_route(),
        ],
        before_send=[stamp_headers],
        exception_handlers=HANDLERS,
        debug=False,
        pdb_on_exception=False,
        logging_config=None,
        openapi_config=None,
        request_max_body_size=None,  # the endpoint counts by itself, and no other route reads a body
    )
    app.asgi_handler = RequestMiddleware(app.asgi_handler, node, host_check, authenticate)
    return app


class _Application(Litestar):
    """Litestar without the plugins that it adds for installed libraries: no route here needs one.

    Pydantic alone, which other packages bring along, takes longer to import than the rest of the application.
    """

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return plugins
