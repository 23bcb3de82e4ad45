"""One order, one answer, in a child of its own: for commands that must not load llama.cpp themselves.

To add an order: a Struct with a tag and a function that calls `ask` (as `render_prompt` does), a function in
a module of its own that computes the answer (as `render_prompt_handler` does), and a row in
`one_shot_process.HANDLERS`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from b3node.workers.child_channel import ChildChannel
from b3node.workers.spawn import spawn

A = TypeVar("A")


def ask(order: msgspec.Struct, answers: type[A]) -> A:
    """Starts a child, sends it the order and returns its answer, of the type `answers` (a union of Structs).

    Raises `EOFError` if the child dies before it answers.
    """
    process, sock = spawn("b3node.workers.one_shot_process")
    with process, sock:
        channel: ChildChannel[A] = ChildChannel(sock, answers)
        channel.send(order)
        answer = channel.next()
    if answer is None:
        raise EOFError
    return answer
