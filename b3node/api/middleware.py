"""Wraps every request of any path: a record, the host check, the principal, the sinks at its end.

This wraps the whole of Litestar, because middleware does not run for paths and methods that do not exist.
"""

from __future__ import annotations

from litestar import Request
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from b3node.api.exception_handlers import AnyRequest, refused
from b3node.api.headers import record_of
from b3node.api.host_check import HostCheck
from b3node.errors import Refusal
from b3node.ids import new_request_id
from b3node.principal import Authenticate, local
from b3node.service import log
from b3node.service.node import Node
from b3node.service.record import Record
from b3node.service.timing import Stopwatch


class RequestMiddleware:
    """An ASGI application around another one.

    Args:
        app: the wrapped application.
        node: whose clock and sinks the records use.
        host_check: refuses requests by their `Host` and `Origin`.
        authenticate: finds the principal of each request that passes the host check.
    """

    def __init__(
        self, app: ASGIApp, node: Node, host_check: HostCheck, authenticate: Authenticate = local
    ) -> None:
        self._app = app
        self._node = node
        self._host_check = host_check
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request; a client's own `x-request-id` is ignored."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        record = Record(
            request_id=new_request_id(),
            timing=Stopwatch(self._node.clock.monotonic),
            method=scope["method"],
        )
        scope["state"]["record"] = record
        try:
            await self._serve(scope, receive, send)
        except Exception as error:
            log.bug(record, error)  # too late for an answer: its head is out
            raise
        finally:
            record.route = scope.get("path_template")
            self._node.finish(record)

    async def _serve(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        try:
            self._host_check.check(scope["headers"])
            record_of(scope).principal = self._authenticate(scope["headers"])
        except Refusal as refusal:
            request: AnyRequest = Request(scope)
            await refused(request, refusal).to_asgi_response(app=None, request=request)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
