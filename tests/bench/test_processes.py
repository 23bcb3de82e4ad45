from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from bench.processes import busy_neighbour, cpu_seconds, memory_mb, tree

MAPPING = """
import mmap, sys
file = open(sys.argv[1], "rb")
data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(data[::4096])
print(flush=True)
input()
"""


@contextmanager
def mapped(path):
    """A process that has mapped the whole file; gives its id."""
    command = [sys.executable, "-c", MAPPING, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate(b"\n")


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


def test_a_file_that_others_map_too_counts_in_full(tmp_path) -> None:
    """Two servers that map the same model are each as large as each by itself."""
    size = 8 << 20
    (tmp_path / "model").write_bytes(b"x" * size)
    with mapped(tmp_path / "model") as one:
        alone = memory_mb([one])
        with mapped(tmp_path / "model") as other:
            assert memory_mb([one]) == pytest.approx(alone, abs=1)
            assert memory_mb([one, other]) < 2 * alone - size / 1024 / 1000 + 1


def test_the_busy_neighbour_ends_with_its_context() -> None:
    """It is there while the load runs, and gone afterwards."""
    before = set(tree(os.getpid()))
    with busy_neighbour():
        during = set(tree(os.getpid())) - before

    assert len(during) == 1
    assert not during & set(tree(os.getpid()))
