from __future__ import annotations

import errno
import socket

import pytest

from b3node.api.listener import listen


def test_an_address_has_one_listener() -> None:
    """Whoever comes second is told, even before the first one serves."""
    with listen("127.0.0.1", 0) as first:
        with pytest.raises(OSError, match="in use") as caught:
            listen("127.0.0.1", first.getsockname()[1])

        assert caught.value.errno == errno.EADDRINUSE


def test_whoever_calls_before_the_server_is_there_waits() -> None:
    """A connection is made at once, and is there to be taken later."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as caller:
        listener.setblocking(True)
        taken, _ = listener.accept()
        with taken:
            taken.sendall(b"hello")

        assert caller.recv(5) == b"hello"


def test_an_address_is_free_again_when_its_listener_is_gone() -> None:
    """Also while the system still waits for the last packets of old connections."""
    with listen("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        listener.setblocking(True)
        with socket.create_connection(address):
            listener.accept()[0].close()  # this end closes first, so it is this address that waits
    listen("127.0.0.1", address[1]).close()
