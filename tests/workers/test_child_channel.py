from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest

from b3node.workers.child_channel import ChildChannel
from b3node.workers.frames import frame


class Word(msgspec.Struct, frozen=True):
    text: str


@pytest.fixture
def pair() -> Iterator[tuple[ChildChannel[Word], socket.socket]]:
    """A child's channel, and the front's end of it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ChildChannel(theirs, Word), ours


def say(front: socket.socket, *texts: str) -> None:
    front.sendall(b"".join(frame(msgspec.msgpack.encode(Word(text))) for text in texts))


def test_what_has_come_is_received_at_once(pair) -> None:
    """Without waiting there may be nothing; with waiting there is something."""
    channel, front = pair

    assert channel.receive(wait=False) == ()
    say(front, "a", "b")
    assert channel.receive(wait=True) == (Word("a"), Word("b"))
    assert channel.receive(wait=False) == ()


def test_messages_are_taken_one_by_one(pair) -> None:
    """`next` keeps those that came along with the first."""
    channel, front = pair
    say(front, "a", "b")

    assert [channel.next(), channel.next()] == [Word("a"), Word("b")]
    assert channel.receive(wait=False) == ()


def test_a_front_that_closes_is_gone(pair) -> None:
    """The end of the connection is None, with waiting and without."""
    channel, front = pair
    front.close()

    assert channel.receive(wait=False) is None
    assert channel.receive(wait=True) is None
    assert channel.next() is None


def test_a_child_may_go_on_talking_to_a_front_that_is_gone(pair) -> None:
    """Sending does not raise; the next `receive` returns None."""
    channel, front = pair
    front.close()

    channel.send(Word("x" * 1_000_000))
    channel.send(Word("y"))
    assert channel.receive(wait=False) is None


def test_a_front_that_is_reset_is_gone() -> None:
    """A connection that breaks is the same as one that ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        front = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with theirs:
            front.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            front.close()

            assert ChildChannel(theirs, Word).next() is None
