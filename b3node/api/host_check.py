"""Who may talk to the node at all, judged by two headers that a web page cannot forge.

A page in the operator's browser can send requests to loopback. Its `Origin` says where it comes from, and when
its own name was rebound to 127.0.0.1 its `Host` still says that name. Neither header steers anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

import msgspec

from b3node.errors import Refusal

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

Headers = Iterable[tuple[bytes, bytes]]


class Access(msgspec.Struct, frozen=True):
    """The names and origins that are let in.

    `hosts` are lower-case names without a port, IPv6 addresses in brackets; None lets every name in, for nodes
    that are reached by whatever name their network has for them. `origins` are `Origin` values, exactly as
    browsers send them.
    """

    hosts: frozenset[str] | None = LOOPBACK_NAMES
    origins: frozenset[str] = frozenset()

    @classmethod
    def on_loopback(cls, names: Iterable[str] = (), origins: Iterable[str] = ()) -> Self:
        """Loopback's own names, the further `names` (any case, no port), and the pages of `origins`."""
        return cls(LOOPBACK_NAMES | {name.lower() for name in names}, frozenset(origins))

    def check(self, headers: Headers) -> None:
        """Raises `Refusal` `forbidden` for a `Host` or an `Origin` that is not let in."""
        host: bytes = b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"origin" and value.decode("latin-1") not in self.origins:
                raise Refusal("forbidden", "Requests from web pages of this origin are not let in.")
        if self.hosts is not None and _name(host) not in self.hosts:
            raise Refusal(
                "forbidden", "This node is not called by that name; use localhost, or configure the name."
            )


def _name(host: bytes) -> str:
    """A `Host` value without its port, lower-case (RFC 9110, section 7.2)."""
    text = host.decode("latin-1").lower()
    name, colon, port = text.rpartition(":")
    return name if colon and port.isdigit() else text
