from __future__ import annotations

import pytest

from b3node.workers.tunables import tunables


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        (None, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("glibc.a.b=2", {"GLIBC_TUNABLES": "glibc.a.b=2:glibc.malloc.hugetlb=1"}),
        ("glibc.malloc.hugetlb=0", {}),
    ],
)
def test_engines_ask_for_huge_pages_unless_the_operator_has_spoken(monkeypatch, given, asked) -> None:
    """Other settings of glibc are kept."""
    if given is None:
        monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    else:
        monkeypatch.setenv("GLIBC_TUNABLES", given)
    assert tunables() == asked
