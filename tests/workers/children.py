"""Stand-ins for child processes: a shell script at the other end of a socket pair, instead of one of our
modules.
"""

from __future__ import annotations

import errno
import socket
import subprocess
from collections.abc import Mapping

import pytest

from b3node.workers import supervisor

ENDS = "exit 3"
"""A child that ends at once."""
STAYS = "exec cat >/dev/null"
"""A child that ends when its socket does."""
CLINGS = "exec sleep 600"
"""A child that sends nothing and ignores the end of its socket."""
BABBLES = r"printf '\000\000\000\001x'; exec sleep 600"
"""A child that sends a frame which is no message."""


def instead(monkeypatch: pytest.MonkeyPatch, script: str, *, failures: int = 0) -> list[int]:
    """Makes supervisors start `script` on the socket; returns the list that its pids are added to.

    The first `failures` starts find no room for a process.
    """
    pids: list[int] = []
    left = [failures]

    def spawn(
        module: str, *, environment: Mapping[str, str]
    ) -> tuple[subprocess.Popen[bytes], socket.socket]:
        if left[0]:
            left[0] -= 1
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(["sh", "-c", script], stdin=theirs.fileno(), stdout=theirs.fileno())
        pids.append(process.pid)
        return process, ours

    monkeypatch.setattr(supervisor, "spawn", spawn)
    return pids
