"""The child of `one_shot.ask`: reads one order, sends one answer, ends."""

from __future__ import annotations

import socket
import sys
from importlib import import_module
from typing import Any, Final

from b3node.workers.child_channel import ChildChannel
from b3node.workers.render_prompt import RenderOrder
from b3node.workers.spawn import inherit, large_stack_thread

HANDLERS: Final[dict[type, str]] = {RenderOrder: "b3node.workers.render_prompt_handler"}
"""Modules by the order that their `answer` takes; imported for that order only."""
Order = RenderOrder
"""Any order; a union of them once there are several."""


def main() -> None:
    """Runs the process's whole life."""
    large_stack_thread(_serve, inherit(sys.argv)).join()


def _serve(sock: socket.socket) -> None:
    channel: ChildChannel[Order] = ChildChannel(sock, Order)
    order = channel.next()
    if order is not None:
        handler: Any = import_module(HANDLERS[type(order)])
        channel.send(handler.answer(order))
        channel.next()  # the front closes the socket once it has read the answer


if __name__ == "__main__":
    main()
