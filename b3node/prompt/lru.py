"""What was made once and is kept as long as there is room for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from typing import Final, TypeVar

Value = TypeVar("Value")

MOST: Final = 64
MOST_BYTES: Final = 16 * 1024 * 1024
"""Values that are kept, and bytes of them and their keys."""


class Kept(MutableMapping[bytes, Value]):
    """A mapping that forgets what was used least recently, once it has too many values or too large ones.

    The last value that was put in is never forgotten.

    Args:
        weigh: the bytes of a value.
        most: how many values are kept at most.
        most_bytes: how many bytes of values and keys together.
    """

    def __init__(
        self, weigh: Callable[[Value], int], *, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        self._weigh = weigh
        self._most, self._most_bytes = most, most_bytes
        self._values: OrderedDict[bytes, Value] = OrderedDict()
        self._bytes = 0

    def __getitem__(self, key: bytes) -> Value:
        value = self._values[key]
        self._values.move_to_end(key)
        return value

    def __setitem__(self, key: bytes, value: Value) -> None:
        self.pop(key, None)
        self._values[key] = value
        self._bytes += len(key) + self._weigh(value)
        while len(self._values) > 1 and (len(self._values) > self._most or self._bytes > self._most_bytes):
            del self[next(iter(self._values))]

    def __delitem__(self, key: bytes) -> None:
        self._bytes -= len(key) + self._weigh(self._values.pop(key))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
