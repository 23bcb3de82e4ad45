"""A cache that evicts the least recently used entry, bounded by entries and by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MAX_ENTRIES: Final = 64
"""Entries of a cache whose maker names no other number."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Bytes of a cache whose maker names no other number."""


class LruCache(MutableMapping[Key, Value]):
    """Mapping that evicts the least recently used entries once they are too many or too large.

    Reading an entry counts as use. The entry that was put in last is never evicted, however large it is.

    Args:
        size_of: the bytes of a key and its value; the same for as long as the entry stays.
        max_entries: entries at most.
        max_bytes: bytes of all entries at most.
    """

    def __init__(
        self,
        size_of: Callable[[Key, Value], int],
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._size_of = size_of
        self._max_entries, self._max_bytes = max_entries, max_bytes
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._bytes = 0

    def __getitem__(self, key: Key) -> Value:
        value = self._values[key]
        self._values.move_to_end(key)
        return value

    def __setitem__(self, key: Key, value: Value) -> None:
        self.pop(key, None)
        self._values[key] = value
        self._bytes += self._size_of(key, value)
        while len(self._values) > 1 and (
            len(self._values) > self._max_entries or self._bytes > self._max_bytes
        ):
            del self[next(iter(self._values))]

    def __delitem__(self, key: Key) -> None:
        self._bytes -= self._size_of(key, self._values.pop(key))

    def __iter__(self) -> Iterator[Key]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
