from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from b3node.workers.cputime import cpu_seconds


def test_work_is_counted_and_waiting_is_not() -> None:
    """A process that computes has used more of its CPU's time; one that waits has not."""
    before = cpu_seconds(os.getpid())
    assert before is not None
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    worked = cpu_seconds(os.getpid())

    assert worked is not None
    assert worked > before


@pytest.mark.parametrize("name", ["python", "a b", "a) R 1 2 3", "((("])
def test_a_processes_name_may_be_anything(tmp_path: Path, name: str) -> None:
    """No client's text is in a name, but a process may have any name."""
    (tmp_path / "7").mkdir()
    fields = "R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20"
    (tmp_path / "7" / "stat").write_text(f"7 ({name}) {fields}\n")

    assert cpu_seconds(7, tmp_path) == 300 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("stat", [None, "", "7 (python) R 1"])
def test_what_is_not_told_is_not_known(tmp_path: Path, stat: str | None) -> None:
    """A process that has gone, or a system without such files."""
    if stat is not None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "stat").write_text(stat)

    assert cpu_seconds(7, tmp_path) is None
