"""Variables that an engine needs from its first instruction: glibc is to take its memory in huge pages.

A step reads all weights, so with pages of 4 KiB it waits for their addresses as well: 5 % of a step on a
virtual machine. Most systems give huge pages to programs that ask, and glibc asks if `GLIBC_TUNABLES` says
so.
"""

from __future__ import annotations

import os


def tunables() -> dict[str, str]:
    """Returns the variables; none if the operator has set glibc's use of huge pages."""
    given = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb" in given:
        return {}
    return {"GLIBC_TUNABLES": f"{given}:glibc.malloc.hugetlb=1".lstrip(":")}
