"""The socket that a node listens on, apart from the server: it can be had before a server is imported.

It listens from the beginning. Two sockets may be bound to one address as long as neither of them listens (Linux, with
`SO_REUSEADDR`), so of two nodes that start at once only that tells the second one. Who calls before the server is
there waits for it.
"""

from __future__ import annotations

import socket
from typing import Final

BACKLOG: Final = 2048
"""Connections that may wait to be taken; the system may allow fewer."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address or name and a port, 0 for any free one, alone. Raises `OSError` if it cannot."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name with addresses of both kinds, as localhost often is, is most often called by the older one.
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
