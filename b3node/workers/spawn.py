"""Starts child processes that die with their parent, and runs their first step.

A child gets one end of a socket pair and nothing else of the parent's: no other descriptor, no terminal
signals (a Ctrl-C reaches the front alone, which drains). It ends when the socket does, and the kernel kills
it when the parent is killed (`PR_SET_PDEATHSIG`, Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2), Linux."""
STACK_BYTES: Final = 256 * 1024 * 1024
"""Stack of `large_stack_thread`; address space only, until it is used."""

Child = tuple[subprocess.Popen[bytes], socket.socket]
"""A process and the parent's end of its socket."""

_ahead: Final[dict[tuple[str, frozenset[tuple[str, str]]], Child]] = {}
"""Children that were started ahead and not taken yet, by module and variables."""


def spawn(module: str, *, environment: Mapping[str, str] = MappingProxyType({})) -> Child:
    """Runs `python -m module` as a child, or takes the one that was started ahead.

    Modules are found where they are installed, not in the directory that the node was started in.

    Args:
        module: the module's full name.
        environment: variables of the child besides the parent's.

    Raises:
        OSError: the machine has no room for another process.
    """
    return _ahead.pop(_key(module, environment), None) or _started(module, environment)


def spawn_ahead(module: str, *, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Starts a child for the next `spawn` with the same arguments: it imports before its order is known.

    Does nothing if the machine has no room for one: that `spawn` will raise.
    """
    with suppress(OSError):
        _ahead[_key(module, environment)] = _started(module, environment)


def abandon() -> None:
    """Ends the children that were started ahead and not taken."""
    while _ahead:
        _, (process, sock) = _ahead.popitem()
        sock.close()
        process.kill()
        process.wait()


def _key(module: str, environment: Mapping[str, str]) -> tuple[str, frozenset[tuple[str, str]]]:
    return module, frozenset(environment.items())


def _started(module: str, environment: Mapping[str, str]) -> Child:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return process, ours


def inherit(argv: list[str]) -> socket.socket:
    """Returns the child's end of the socket and ties the child's life to the parent's.

    `argv` are the arguments that `spawn` gave: the descriptor and the parent's process id.
    """
    descriptor, parent = int(argv[1]), int(argv[2])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
    return socket.socket(fileno=descriptor)


def large_stack_thread(work: Callable[..., None], *args: object) -> threading.Thread:
    """Starts `work(*args)` on a thread with a large stack: some tokenizers recurse once a character."""
    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=work, args=args, name="work")
        thread.start()
    finally:
        threading.stack_size(before)
    return thread
