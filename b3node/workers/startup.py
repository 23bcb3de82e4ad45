"""Order of a node's start, so that its first model answers as early as it can.

A start is work for three kinds of process at once: engines load weights, prepare workers load vocabularies
and try templates, the front imports a server. Imports are most of the front's part, and on two cores all of
it competes. So:

1. `prestart` starts an engine and a prepare worker before the command line is read. They import while the
   front learns their order. A command must import nothing heavy before it: no msgspec, asyncio, rich or
   structlog.
2. `importing` loads the front's modules on a thread, while the embedded model is found and checked, then
   while models load. Its listening socket is bound first, so that a port in use is reported at once.
3. `settled` comes after the last large import and before the first request.
4. `warm_up` imports the modules that only some requests need, after all else, while models still load.

The garbage collector is off from 1 to 3: nothing that is imported is garbage. Then everything is frozen, or
its first run would look through all of it. Children freeze their own heap once they have loaded (`freeze`).

Processes that were started ahead and not taken end with the context of `prestart`, also after a wrong command
line.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

from b3node.workers.spawn import abandon, spawn_ahead
from b3node.workers.tunables import tunables

ENGINE: Final = "b3node.workers.engine_process"
PREPARE: Final = "b3node.workers.prepare_process"
"""Modules that children run."""


@contextmanager
def prestart() -> Iterator[None]:
    """Starts one process of each kind for the first `spawn` of its kind, and turns the collector off.

    At the end of the context, ends the processes that were not taken and turns the collector on.
    """
    gc.disable()
    try:
        spawn_ahead(ENGINE, environment=tunables())
        spawn_ahead(PREPARE)
        yield
    finally:
        abandon()
        gc.enable()


def importing(module: str) -> Future[ModuleType]:
    """Imports a module on a thread of its own."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="import")
    try:
        return thread.submit(import_module, module)
    finally:
        thread.shutdown(wait=False)


def settled() -> None:
    """Ends the time without a collector: everything imported so far is kept from it."""
    freeze()
    gc.enable()


def warm_up(imports: Callable[[], None]) -> None:
    """Calls `imports`, which loads the modules of rare requests, and keeps them from the collector."""
    imports()
    freeze()


def freeze() -> None:
    """Keeps all objects of this process from the collector: they stay until its end."""
    gc.freeze()
