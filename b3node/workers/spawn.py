"""Starts child processes that die with their parent, and is their first step.

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
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""prctl(2), Linux."""

Child = tuple[subprocess.Popen[bytes], socket.socket]
"""A process and the parent's end of its socket."""

_ahead: Final[dict[tuple[str, frozenset[tuple[str, str]]], Child]] = {}
"""Children that nobody has asked for yet, by what they run and with which variables."""


def spawn(module: str, *, environment: Mapping[str, str] = MappingProxyType({})) -> Child:
    """Runs `python -m module` as a child, unless one was started ahead. Returns the process and our end of its socket.

    Modules are looked for where they are installed, not in the directory that the node was started in.
    `environment` is what the child gets beside the parent's variables.
    """
    return _ahead.pop(_key(module, environment), None) or _started(module, environment)


def spawn_ahead(module: str, *, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Starts a child for the next `spawn` with the same arguments, so that it imports while its order is made out.

    Does nothing where the machine has no room for one: whoever asks for it is told.
    """
    with suppress(OSError):
        _ahead[_key(module, environment)] = _started(module, environment)


def abandon() -> None:
    """Ends the children that were started ahead and asked for by nobody."""
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
    """In the child: ties its life to the parent's and gives its end of the socket.

    `argv` are the arguments that `spawn` gave: the descriptor and the parent's process id.
    """
    descriptor, parent = int(argv[1]), int(argv[2])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
    return socket.socket(fileno=descriptor)
