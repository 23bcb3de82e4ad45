"""Caches have bounds."""

from __future__ import annotations

from b3node.lru import LruCache


def test_the_least_recently_used_is_evicted_first() -> None:
    """Reading is using."""
    cache: LruCache[bytes, str] = LruCache(lambda key, value: len(key) + len(value), max_entries=2)
    cache[b"a"], cache[b"b"] = "1", "2"
    assert cache[b"a"] == "1"
    cache[b"c"] = "3"

    assert set(cache) == {b"a", b"c"}


def test_bytes_are_bounded_but_the_last_value_stays() -> None:
    """Keys count too; an entry that is put in anew is counted once."""
    cache: LruCache[bytes, str] = LruCache(lambda key, value: len(key) + len(value), max_bytes=10)
    for _ in range(3):
        cache[b"a"] = "1234"
    cache[b"b"] = "1234"
    assert set(cache) == {b"a", b"b"}
    cache[b"c"] = "1" * 100

    assert dict(cache) == {b"c": "1" * 100}
