from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from litestar.types import HTTPScope, Message

from b3node.api.client import Client, ClientLeft
from b3node.errors import Refusal

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
MORE: Message = {"type": "http.response.body", "body": b"abc", "more_body": True}


class Channel:
    """Both ASGI channels by hand: what is received comes from a list, then from nowhere."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.messages = list(messages)
        self.left = asyncio.Event()
        self.stuck = False
        self.sent: list[Any] = []
        self.aborted = False

    async def receive(self) -> Any:
        if self.messages:
            return self.messages.pop(0)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if self.stuck:
            await asyncio.Event().wait()

    def abort(self) -> None:
        self.aborted = True

    def client(self, *headers: tuple[bytes, bytes], body_writer: object = None) -> Client:
        state = {"abort": self.abort, "body_writer": body_writer}
        scope: Any = {"type": "http", "headers": list(headers), "state": state}
        checked: HTTPScope = scope
        return Client(checked, self.receive, self.send, stall_seconds=0.01)


def chunk(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def run(story: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(story(), 5))


async def read(client: Client, limit: int = 100) -> tuple[bytes, list[int]]:
    held: list[int] = []
    return await client.body(limit, held.append), held


def test_a_body_is_its_chunks_and_each_is_reported() -> None:
    """The chunks are joined, and whoever counts memory hears of each as it comes."""

    async def story() -> None:
        async with Channel(chunk(b"ab", more=True), chunk(b"c")).client() as client:
            assert await read(client) == (b"abc", [2, 1])

    run(story)


def test_a_declared_size_is_judged_before_anything_is_read() -> None:
    """Nothing is asked of the client when its own words rule it out."""

    async def story() -> None:
        channel = Channel(chunk(b"x" * 200))
        async with channel.client((b"content-length", b"101")) as client:
            with pytest.raises(Refusal) as caught:
                await read(client)

        assert caught.value.code == "payload_too_large"
        assert len(channel.messages) == 1

    run(story)


def test_a_client_that_leaves_in_its_body() -> None:
    """The end of the connection in the middle of a body is a client that left there."""

    async def story() -> None:
        channel = Channel(chunk(b"ab", more=True))
        channel.left.set()
        with pytest.raises(ClientLeft) as caught:
            async with channel.client() as client:
                await read(client)

        assert caught.value.phase == "body"

    run(story)


@pytest.mark.parametrize("head", [False, True])
def test_leaving_cancels_the_work(*, head: bool) -> None:
    """Whatever the task is waiting for, a client that leaves ends it, before its head or after."""

    async def story() -> None:
        channel = Channel(chunk(b""), chunk(b"stray"))

        async def serve() -> None:
            async with channel.client() as client:
                await read(client)
                if head:
                    await client.send(START)
                asyncio.get_running_loop().call_later(0.01, channel.left.set)
                await asyncio.Event().wait()

        with pytest.raises(ClientLeft) as caught:
            await serve()

        assert caught.value.phase == ("mid_stream" if head else "before_head")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(story)


def test_a_cancellation_by_others_stays_one() -> None:
    """The end of the process, for one, is not mistaken for a client that left, even when both come at
    once.
    """

    async def serve(channel: Channel) -> None:
        async with channel.client() as client:
            await read(client)
            channel.left.set()
            await asyncio.Event().wait()

    async def story() -> None:
        channel = Channel(chunk(b""))
        task = asyncio.create_task(serve(channel))
        await channel.left.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(story)


def test_an_answer_that_is_complete_cannot_be_left() -> None:
    """After the last byte, the server's word that the client is gone means nothing any more."""

    async def story() -> None:
        channel = Channel(chunk(b""))
        async with channel.client() as client:
            await read(client)
            await client.send(START)
            await client.send(MORE)
            await client.send({"type": "http.response.body", "body": b"d", "more_body": False})
            channel.left.set()
            await asyncio.sleep(0.01)

            assert client.bytes_sent == 4

    run(story)


def test_a_write_that_waits_too_long_drops_the_connection() -> None:
    """A client that does not read for so long is given up, and its connection cut."""

    async def story() -> None:
        channel = Channel(chunk(b""))

        async def serve() -> None:
            async with channel.client() as client:
                await read(client)
                await client.send(START)
                channel.stuck = True
                await client.send(MORE)

        with pytest.raises(ClientLeft) as caught:
            await serve()

        assert caught.value.phase == "stalled"
        assert channel.aborted

    run(story)


class Pipe:
    """A body_writer that keeps what it is given, and may be full."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.pieces: list[bytes] = []
        self.open = is_open
        self.full = False
        self.emptied = asyncio.Event()

    def write(self, piece: bytes) -> bool:
        self.pieces.append(piece)
        return not self.full

    async def drain(self) -> None:
        await self.emptied.wait()


@pytest.mark.parametrize("body_writer", [False, True])
def test_pieces_that_no_spout_takes_are_sent_one_by_one(*, body_writer: bool) -> None:
    """Without a way past ASGI, or where a body cannot come in pieces, each piece is a message of its own."""

    async def story() -> None:
        channel = Channel(chunk(b""))
        async with channel.client(body_writer=Pipe(is_open=False) if body_writer else None) as client:
            await read(client)
            await client.send(START)
            assert not client.write(b"abc")
            assert not client.write(b"de")
            await client.drain()

            assert [message["body"] for message in channel.sent[1:]] == [b"abc", b"de"]
            assert all(message["more_body"] for message in channel.sent[1:])
            assert client.bytes_sent == 5

    run(story)


def test_a_spout_takes_pieces_behind_the_head() -> None:
    """They go out at once, and only a client that is behind is waited for."""

    async def story() -> None:
        pipe = Pipe()
        channel = Channel(chunk(b""))
        async with channel.client(body_writer=pipe) as client:
            await read(client)
            await client.send(START)
            assert client.write(b"abc")
            await client.drain()
            pipe.full = True
            assert not client.write(b"de")
            asyncio.get_running_loop().call_soon(pipe.emptied.set)
            await client.drain()

            assert pipe.pieces == [b"abc", b"de"]
            assert channel.sent == [START]
            assert client.bytes_sent == 5

    run(story)


def test_a_spout_that_stays_full_drops_the_connection() -> None:
    """The way past ASGI is as impatient as the one through it."""

    async def story() -> None:
        pipe = Pipe()
        channel = Channel(chunk(b""))

        async def serve() -> None:
            async with channel.client(body_writer=pipe) as client:
                await read(client)
                await client.send(START)
                pipe.full = True
                client.write(b"abc")
                await client.drain()

        with pytest.raises(ClientLeft) as caught:
            await serve()

        assert caught.value.phase == "stalled"
        assert channel.aborted

    run(story)
