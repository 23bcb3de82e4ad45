"""Memory pages of an engine's cache.

llama.cpp clears the whole cache when it makes a context. In huge pages, which engines ask for
(`workers.tunables`), all of it is memory that no process had before, and on a virtual machine the host has to
find each part of it: 0.4 to 1.2 s of CPU for the 377 MB of SmolLM2-135M's cache, instead of 0.2 s in small
pages. In exchange a step after 2,048 tokens takes 2 % longer; the weights, which each step reads as a whole,
stay in huge pages.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42
"""prctl(2), Linux: whether new memory of this process may come in huge pages."""
_NONE: Final = ctypes.c_ulong(0)


@contextmanager
def small_pages() -> Iterator[None]:
    """Makes newly touched memory come in small pages while the context is open, on Linux.

    Elsewhere it changes nothing.
    """
    changes = sys.platform == "linux" and not _prctl(_GET_THP_DISABLE, 0)
    if changes:
        _prctl(_SET_THP_DISABLE, 1)
    try:
        yield
    finally:
        if changes:
            _prctl(_SET_THP_DISABLE, 0)


def _prctl(option: int, value: int) -> int:
    """Returns the system's answer; -1 if it does not know the option."""
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), _NONE, _NONE, _NONE))
