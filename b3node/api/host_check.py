"""Checks `Host` and `Origin`, the two headers that a web page cannot forge.

A page in the operator's browser can send requests to loopback. Its `Origin` says where it comes from, and
when its own name was rebound to 127.0.0.1 its `Host` still says that name. Neither header steers anything
else.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, Self

import msgspec

from b3node.errors import Refusal

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
"""By scheme of a page that the node serves, itself or through a proxy. Browsers leave a default port out."""

Headers = Iterable[tuple[bytes, bytes]]


class HostCheck(msgspec.Struct, frozen=True):
    """The names and origins that are let in.

    The node's own origin, that of a page which it served itself, is let in without being listed, if the name
    in `Host` is one that cannot be rebound: a name of `hosts`, or, where every name is let in, an IP address
    or localhost.
    """

    hosts: frozenset[str] | None = LOOPBACK_NAMES
    """Lower-case names without a port, IPv6 addresses in brackets; None lets every name in, for nodes that
    are reached by any name that their network has for them."""

    origins: frozenset[str] = frozenset()
    """`Origin` values, exactly as browsers send them."""

    @classmethod
    def on_loopback(cls, names: Iterable[str] = (), origins: Iterable[str] = ()) -> Self:
        """Returns a check that lets in loopback names, `names` (any case, no port), pages of `origins`."""
        return cls(LOOPBACK_NAMES | {name.lower() for name in names}, frozenset(origins))

    def check(self, headers: Headers) -> None:
        """Raises `Refusal` `forbidden` for a `Host` or an `Origin` that is not let in."""
        host = ""
        origins: list[str] = []
        for name, value in headers:
            if name == b"host":
                host = value.decode("latin-1").lower()
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if not all(origin in self.origins or self._is_own(origin, host) for origin in origins):
            raise Refusal("forbidden", "Requests from web pages of this origin are not let in.")
        if self.hosts is not None and _split(host)[0] not in self.hosts:
            raise Refusal(
                "forbidden", "This node is not called by that name; use localhost, or configure the name."
            )

    def _is_own(self, origin: str, host: str) -> bool:
        """Returns whether a page of `origin` came from the name and port of `host`, which cannot be rebound.

        The scheme of the request does not count: a proxy may speak TLS for the node.
        """
        scheme, _, authority = origin.lower().partition("://")
        default = _DEFAULT_PORTS.get(scheme)
        if default is None:
            return False
        name, port = _split(host)
        page_name, page_port = _split(authority)
        same = (page_name, page_port or default) == (name, port or default)
        return same and self._cannot_be_rebound(name)

    def _cannot_be_rebound(self, name: str) -> bool:
        if self.hosts is not None:
            return name in self.hosts
        return name in LOOPBACK_NAMES or _is_address(name)


def _split(host: str) -> tuple[str, str]:
    """Splits a `Host` value into name and port, empty where there is none (RFC 9110, section 7.2)."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and port.isdigit() else (host, "")


def _is_address(name: str) -> bool:
    try:
        if name.startswith("[") and name.endswith("]"):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True
