from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine

import msgspec
import pytest
import uvloop

from b3node.workers.frames import MAX_PAYLOAD_BYTES, FrameError, frame
from b3node.workers.parent_channel import ParentChannel

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


class Word(msgspec.Struct, frozen=True):
    text: str


def run(loop: Callable[[], asyncio.AbstractEventLoop], main: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main)


@pytest.mark.parametrize("loop", LOOPS)
def test_messages_go_both_ways_in_order(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """On every event loop that the front may run on."""
    heard: list[str] = []

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await ParentChannel.over(ours, Word, lambda word: heard.append(word.text))
            size = channel.send(Word("one"))
            assert theirs.recv(1000) == frame(msgspec.msgpack.encode(Word("one")))
            assert size == len(frame(msgspec.msgpack.encode(Word("one"))))
            for text in "abc":
                theirs.sendall(frame(msgspec.msgpack.encode(Word(text))))
        async with asyncio.timeout(60):
            await channel.closed.wait()

    run(loop, main())
    assert heard == ["a", "b", "c"]


@pytest.mark.parametrize("data", [frame(b"\xc1"), frame(b"\x01"), (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big")])
@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_no_message_closes_the_link(
    loop: Callable[[], asyncio.AbstractEventLoop], data: bytes
) -> None:
    """Bytes that do not decode, or announce too much, close the channel; nothing is raised in the front."""
    raised: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: raised.append(context))
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await ParentChannel.over(ours, Word, lambda _word: None)
            theirs.sendall(data)
            async with asyncio.timeout(60):
                await channel.closed.wait()
            assert theirs.recv(1) == b""

    run(loop, main())
    assert raised == []


def test_nothing_is_sent_to_a_child_that_is_gone() -> None:
    """Its end is reported by `closed`, not by an error in `send`."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        channel = await ParentChannel.over(ours, Word, lambda _word: None)
        theirs.close()
        await channel.closed.wait()
        channel.send(Word("too late"))

    asyncio.run(main())


def test_a_message_over_the_bound_is_refused_here() -> None:
    """A frame that the child would not take is not sent."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            channel = await ParentChannel.over(ours, Word, lambda _word: None)
            with pytest.raises(FrameError):
                channel.send(Word("x" * MAX_PAYLOAD_BYTES))
            channel.close()
            await channel.closed.wait()

    asyncio.run(main())
