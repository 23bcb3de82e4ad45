"""The prepare child: turns requests into prompts of tokens, one at a time, until the front is gone.

It runs tenants' text through a template and a tokenizer, so it is bounded: the front kills it when an answer
takes too long, its memory is limited, and the next request gets a new one. The work runs on a thread with a
large stack, because some tokenizers recurse once a character. Schemas become grammars here, and are tried
here, so a grammar that is too much for llama.cpp never reaches the engine.

It loads while the engine does, so before the length of the context is known: each request carries that.
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
from b3node.workers.child_channel import ChildChannel
from b3node.workers.messages import (
    PrepareCrashed,
    PreparedAnswer,
    PrepareFailed,
    PrepareOrder,
    PrepareReady,
    PrepareRequest,
    RequestRefused,
    ToPrepare,
)
from b3node.workers.spawn import inherit, large_stack_thread

WORK_BYTES: Final = 768 * 1024 * 1024
"""Bytes of address space that requests may take on top of those taken by the load."""


def main() -> None:
    """Runs the process's whole life."""
    loaded = threading.Event()
    worker = large_stack_thread(_work, inherit(sys.argv), loaded)
    loaded.wait()
    import_module(LIBRARY)  # few requests need it, and they should not wait for it
    worker.join()


def _work(sock: socket.socket, loaded: threading.Event) -> None:
    """Serves; sets `loaded` once all is loaded, or once the load has failed."""
    try:
        _serve(sock, loaded)
    finally:
        loaded.set()


def _serve(sock: socket.socket, loaded: threading.Event) -> None:
    channel: ChildChannel[PrepareOrder | PrepareRequest] = ChildChannel(sock, ToPrepare)  # type: ignore[arg-type]  # a union
    order = channel.next()
    if not isinstance(order, PrepareOrder):
        return
    try:
        vocabulary = Vocabulary.load(order.path)
        runs = Grammars(vocabulary).runs
        preparer = Preparer(vocabulary, n_ctx=vocabulary.n_ctx_train, accepts=runs, budgets=order.thinking)
    except (VocabularyError, BrokenTemplateError) as error:
        channel.send(PrepareFailed(str(error)))
        return
    _limit_memory()
    channel.send(PrepareReady(preparer.traits))
    loaded.set()
    while isinstance(asked := channel.next(), PrepareRequest):
        preparer = preparer.with_context(asked.n_ctx)
        channel.send(_answer(preparer, asked))


def _answer(preparer: Preparer, order: PrepareRequest) -> PreparedAnswer | RequestRefused | PrepareCrashed:
    try:
        return PreparedAnswer(preparer.prepare(order.request, datetime.fromtimestamp(order.now, UTC)))
    except Refusal as refusal:
        return RequestRefused(refusal.code, refusal.message, refusal.param)
    except MemoryError:
        return RequestRefused(
            "invalid_request",
            "The input takes too much memory to prepare; send less text in one request.",
            "input",
        )
    except Exception:  # noqa: BLE001 - a bug costs one request, not the worker
        return PrepareCrashed(traceback.format_exc())


def _limit_memory() -> None:
    """Bounds the address space from here on (Linux; elsewhere only the time limit protects the node)."""
    status = Path("/proc/self/statm")
    if status.exists():
        used = int(status.read_text("ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + WORK_BYTES, hard))


if __name__ == "__main__":
    main()
