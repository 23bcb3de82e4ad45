"""A small Responses endpoint on loopback, for tests of the client that asks it."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

from tests.bench.wire import answer, completed, delta


@asynccontextmanager
async def endpoint(reply):
    """A server that hands each request's body to `reply(body, writer)`; gives its URL."""

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reply(json.loads(await reader.readexactly(size)), writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def three_tokens(body, writer):
    writer.write(answer(delta("a") + delta("b") + delta("c") + completed(), chunk=11))
