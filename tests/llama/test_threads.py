from __future__ import annotations

import os
import sys

import pytest

from b3node.llama import threads as module
from b3node.llama.threads import CpuMonitor, ThreadCount


def after(threads, *looks):
    """The number of threads after so many looks at what others take."""
    return [threads.observe(others=others) for others in looks]


def test_a_busy_neighbour_gets_a_core_once_two_looks_agree() -> None:
    """On two cores a process that keeps one busy leaves one thread; a moment's work changes nothing."""
    threads = ThreadCount(cores=2, logical=2)

    assert after(threads, 0.05, 1.0, 0.05, 1.0, 0.9) == [2, 2, 2, 2, 1]


def test_the_threads_come_back_when_the_neighbour_goes() -> None:
    """And not before it takes clearly less than it gave."""
    threads = ThreadCount(cores=2, logical=2)
    after(threads, 1.0, 1.0)

    assert after(threads, 0.5, 0.5, 0.1, 0.1) == [1, 1, 1, 2]


def test_one_thread_always_computes() -> None:
    """However busy the machine."""
    assert after(ThreadCount(cores=4, logical=4), 9.0, 9.0)[-1] == 1


def test_siblings_of_a_core_are_had_before_a_thread_goes() -> None:
    """With two CPUs a core, what others take of the second ones costs nothing."""
    threads = ThreadCount(cores=4, logical=8)

    assert after(threads, 3.9, 3.9)[-1] == 4
    assert after(threads, 5.7, 5.7)[-1] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/stat")
def test_the_machine_is_looked_at_now_and_then(monkeypatch) -> None:
    """Between two looks there is nothing to see; a look tells how many CPUs others kept busy."""
    monitor = CpuMonitor()

    assert monitor.look() is None
    monkeypatch.setattr("b3node.llama.threads.LOOK_EVERY_SECONDS", 0.0)
    others = monitor.look()

    assert others is not None
    assert others >= 0.0
    assert monitor.logical == len(os.sched_getaffinity(0))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what processes do")
def test_what_others_do_while_nothing_is_computed_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour that works in rests alone is none; one that works while we do is, however short each time
    is.
    """
    readings: list[tuple[float, float, float]] = [
        (0.0, 0.0, 0.0),
        (0.2, 0.2, 0.2),  # a rest begins: alone so far,
        (9.2, 18.2, 0.2),  # and ends: others kept both CPUs busy for all of it
        (9.3, 18.3, 0.3),
    ]
    monkeypatch.setattr(CpuMonitor, "_reading", lambda _: module._CpuTimes(*readings.pop(0)))
    monitor = CpuMonitor()
    monitor.rest()
    monitor.rest()
    assert monitor.look() is None
    monkeypatch.setattr("b3node.llama.threads.time.monotonic", lambda: 9.2 + 0.01)
    assert monitor.look() is None
    monkeypatch.setattr("b3node.llama.threads.time.monotonic", lambda: 9.2 + 0.1)
    assert monitor.look() == pytest.approx(0.0)

    readings += [(9.4, 18.5, 0.4), (20.0, 18.5, 0.4), (20.2, 18.9, 0.6)]
    monitor.rest()
    assert monitor.look() is None
    monkeypatch.setattr("b3node.llama.threads.time.monotonic", lambda: 20.2)
    assert monitor.look() == pytest.approx(1.0)
