"""Opens the socket that a node listens on, without importing a server, so that this can come first.

It listens from the beginning. Two sockets may be bound to one address as long as neither of them listens
(Linux, with `SO_REUSEADDR`), so of two nodes that start at once only `listen` fails for the second one.
Connections that come before the server wait for it.
"""

from __future__ import annotations

import socket
from typing import Final

BACKLOG: Final = 2048
"""Connections that may wait to be accepted; the system may allow fewer."""


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens alone at an address or name; port 0 is any free one. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # Clients of a name with addresses of both kinds, as localhost often is, mostly use the older kind.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
