"""What an engine needs before its first instruction: memory in huge pages.

A step reads all weights, so with pages of 4 KiB it waits for their addresses as well: 5 % of a step on a virtual
machine. Most systems give huge pages to programs that ask, and glibc asks when it is told to.
"""

from __future__ import annotations

import os


def tunables() -> dict[str, str]:
    """The variables that make glibc ask for huge pages; none where the operator has spoken of that."""
    given = os.environ.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb" in given:
        return {}
    return {"GLIBC_TUNABLES": f"{given}:glibc.malloc.hugetlb=1".lstrip(":")}
