"""What is kept has bounds."""

from __future__ import annotations

from b3node.prompt.lru import Kept


def test_the_least_recently_used_is_forgotten_first() -> None:
    """Reading is using."""
    kept: Kept[str] = Kept(len, most=2)
    kept[b"a"], kept[b"b"] = "1", "2"
    assert kept[b"a"] == "1"
    kept[b"c"] = "3"

    assert set(kept) == {b"a", b"c"}


def test_bytes_are_bounded_but_the_last_value_stays() -> None:
    """Keys count too; what is put in anew is counted once."""
    kept: Kept[str] = Kept(len, most_bytes=10)
    for _ in range(3):
        kept[b"a"] = "1234"
    kept[b"b"] = "1234"
    assert set(kept) == {b"a", b"b"}
    kept[b"c"] = "1" * 100

    assert dict(kept) == {b"c": "1" * 100}
