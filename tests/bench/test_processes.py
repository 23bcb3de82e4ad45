from __future__ import annotations

import os
import subprocess
import sys
import time

from bench.processes import busy_neighbour, cpu_seconds, memory_mb, tree


def test_a_tree_holds_children_and_grandchildren() -> None:
    """All processes below a server count as its own."""
    nested = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE) as child:
        deadline = time.monotonic() + 10
        while len(found := tree(child.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)

        assert found[0] == child.pid
        assert len(found) == 2
        assert set(found) < set(tree(os.getpid()))


def test_cpu_time_is_what_a_process_computed() -> None:
    """Sleeping costs nothing, computing does."""
    before = cpu_seconds(os.getpid())
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass

    assert cpu_seconds(os.getpid()) - before > 0.015


def test_memory_is_counted_for_living_processes_only() -> None:
    """A process that has gone holds nothing, and is no error."""
    assert memory_mb([os.getpid()]) > 1
    assert memory_mb([2**22 + 1]) == 0


def test_the_busy_neighbour_ends_with_its_context() -> None:
    """It is there while the load runs, and gone afterwards."""
    before = set(tree(os.getpid()))
    with busy_neighbour():
        during = set(tree(os.getpid())) - before

    assert len(during) == 1
    assert not during & set(tree(os.getpid()))
