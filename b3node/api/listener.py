"""The socket that a node listens on, apart from the server: it can be had before a server is imported."""

from __future__ import annotations

import socket


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address or name and a port, 0 for any free one. Raises `OSError` if it cannot be."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    # A name with addresses of both kinds, as localhost often is, is most often called by the older one.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
