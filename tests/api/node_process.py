"""A node as a process of its own, for tests that send it signals: prints its port, then serves one script.

Usage: python -m tests.api.node_process [drain seconds]; `{"input": "slow"}` never ends, the rest says Hello.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

from b3node.api.app import create_app
from b3node.api.server import Server, Shutdown, serve
from b3node.contract.request import Message, Request, TextPart
from b3node.prompt.prepared import Prepared
from b3node.service import log
from b3node.service.node import Node
from tests.service.fakes import FakeModel, Gate, said, started, token


class Slowly(FakeModel):
    """Says one token and then nothing to those who ask for it."""

    async def prepare(self, request: Request) -> Prepared:
        slow = request.input == (Message("user", (TextPart("slow"),)),)
        self.scripts = [[started(), token("a"), Gate()] if slow else said("Hello")]
        return await super().prepare(request)


async def main(drain_seconds: float) -> None:
    """Serves until the process is told to end."""
    log.configure("info")
    node = Node("n1", [Slowly()])
    shutdown = Shutdown(drain_seconds=drain_seconds, halt_seconds=1.0)
    server = Server(create_app(node), node, shutdown=shutdown)
    await serve(server, lambda port: print(port, flush=True))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(float(sys.argv[1])))
