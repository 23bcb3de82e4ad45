from __future__ import annotations

import mmap
import re
import sys
from pathlib import Path

import pytest

from b3node.llama import huge_pages
from b3node.llama.huge_pages import small_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there pages have a choice of sizes")
SIZE = 64 << 20


def huge() -> int:
    """Kilobytes of this process's memory in huge pages."""
    found = re.search(r"AnonHugePages:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text("ascii"))
    assert found
    return int(found[1])


def touched() -> mmap.mmap:
    """Memory that asks for huge pages, all of it written to."""
    memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(b"x" * SIZE)
    return memory


def test_memory_that_asks_for_huge_pages_gets_small_ones_for_a_while() -> None:
    """Inside the context none are added; behind it the system may give them again."""
    with small_pages():
        before = huge()
        with touched():
            assert huge() <= before
        assert huge_pages._prctl(huge_pages._GET_THP_DISABLE, 0) == 1
    assert huge_pages._prctl(huge_pages._GET_THP_DISABLE, 0) == 0


def test_what_the_operator_has_switched_off_stays_off() -> None:
    """A process that is not to have huge pages at all has none behind the context either."""
    huge_pages._prctl(huge_pages._SET_THP_DISABLE, 1)
    try:
        with small_pages():
            pass
        assert huge_pages._prctl(huge_pages._GET_THP_DISABLE, 0) == 1
    finally:
        huge_pages._prctl(huge_pages._SET_THP_DISABLE, 0)
    assert huge_pages._prctl(huge_pages._GET_THP_DISABLE, 0) == 0
