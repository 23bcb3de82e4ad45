"""The prepare child: turns requests into prompts of tokens, one at a time, until the front is gone.

It reads what tenants wrote, through a template and a tokenizer, so it lives on a short leash: the front
kills it when an answer takes too long, its memory is limited, and the next request gets a new one. The work
runs on a thread with a large stack, because some tokenizers recurse once a character. Schemas become grammars
here, and are tried here, so that a grammar that is more than llama.cpp can bear never reaches the engine.

It loads while the engine does, and so before anybody knows how long the context will be: each request says.
"""

from __future__ import annotations

import resource
import socket
import sys
import threading
import traceback
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Final

from b3node.errors import Refusal
from b3node.grammar.schema.metaschema import LIBRARY
from b3node.llama.grammar import Grammars
from b3node.llama.vocab import Vocabulary, VocabularyError
from b3node.prompt.prepare import Preparer
from b3node.prompt.template.chat_template import BrokenTemplateError
from b3node.workers.child_channel import Line
from b3node.workers.messages import (
    Answer,
    Ask,
    Broke,
    PrepareFailed,
    PrepareOrder,
    PrepareReady,
    Refused,
    ToPrepare,
)
from b3node.workers.spawn import inherit

STACK: Final = 256 * 1024 * 1024
"""Bytes of stack; address space only, until it is used."""
ROOM: Final = 768 * 1024 * 1024
"""Bytes of address space that the work may take beyond what loading took, the stack included."""


def main() -> None:
    """The process's whole life."""
    threading.stack_size(STACK)
    loaded = threading.Event()
    worker = threading.Thread(target=_work, args=(inherit(sys.argv), loaded), name="prepare")
    worker.start()
    loaded.wait()
    import_module(LIBRARY)  # few requests need it, but none is to wait for it
    worker.join()


def _work(sock: socket.socket, loaded: threading.Event) -> None:
    """Serves; tells that all is loaded, or that it never will be."""
    try:
        _serve(sock, loaded)
    finally:
        loaded.set()


def _serve(sock: socket.socket, loaded: threading.Event) -> None:
    line: Line[PrepareOrder | Ask] = Line(sock, ToPrepare)  # type: ignore[arg-type]  # a union is a type to msgspec
    order = line.next()
    if not isinstance(order, PrepareOrder):
        return
    try:
        vocabulary = Vocabulary.load(order.path)
        runs = Grammars(vocabulary).runs
        preparer = Preparer(vocabulary, n_ctx=vocabulary.n_ctx_train, runs=runs, budgets=order.thinking)
    except (VocabularyError, BrokenTemplateError) as error:
        line.send(PrepareFailed(str(error)))
        return
    _limit_memory()
    line.send(PrepareReady(preparer.traits))
    loaded.set()
    while isinstance(ask := line.next(), Ask):
        preparer = preparer.within(ask.n_ctx)
        line.send(_answer(preparer, ask))


def _answer(preparer: Preparer, ask: Ask) -> Answer | Refused | Broke:
    try:
        return Answer(preparer.prepare(ask.request, datetime.fromtimestamp(ask.now, UTC)))
    except Refusal as refusal:
        return Refused(refusal.code, refusal.message, refusal.param)
    except MemoryError:
        return Refused(
            "invalid_request",
            "The input takes too much memory to prepare; send less text in one request.",
            "input",
        )
    except Exception:  # noqa: BLE001 - a bug costs one request, not the worker
        return Broke(traceback.format_exc())


def _limit_memory() -> None:
    """Bounds the address space from here on (Linux; elsewhere the time limit alone protects the node)."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text("ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, hard))


if __name__ == "__main__":
    main()
