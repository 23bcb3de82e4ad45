"""One order, one answer, in a child of its own: for commands that must not load llama.cpp themselves.

To add an order: a Struct with a tag and a function that calls `ask` (as `render_prompt` does), a function in
a module of its own that computes the answer (as `render_prompt_handler` does), and a row in
`one_shot_process.HANDLERS`.
"""

from __future__ import annotations

import threading
from typing import Final, TypeVar

import msgspec

from b3node.workers.child_channel import ChildChannel
from b3node.workers.spawn import spawn

ANSWER_SECONDS: Final = 300.0
"""Seconds that a child may take from its start to its answer: far above any that computes."""
A = TypeVar("A")


def ask(order: msgspec.Struct, answers: type[A], *, within: float = ANSWER_SECONDS) -> A:
    """Starts a child, sends it the order and returns its answer, of the type `answers` (a union of Structs).

    Raises:
        EOFError: the child died before it answered.
        TimeoutError: it did not answer `within` seconds, and was killed.
    """
    process, sock = spawn("b3node.workers.one_shot_process")
    late = threading.Event()

    def kill() -> None:
        late.set()
        process.kill()

    deadline = threading.Timer(within, kill)
    deadline.start()
    try:
        with process, sock:
            channel: ChildChannel[A] = ChildChannel(sock, answers)
            channel.send(order)
            answer = channel.next()
    finally:
        deadline.cancel()
    if answer is None:
        raise TimeoutError if late.is_set() else EOFError
    return answer
