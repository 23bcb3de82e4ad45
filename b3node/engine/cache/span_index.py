"""Gives every cell of a prompt an id, so that prefixes with images compare as fast as those of text alone.

A token's cell has its token id. All cells of an image have one negative id, which stands for that image
alone. Two prefixes are then equal as far as their arrays of ids are, which is one comparison in numpy; they
never part inside an image, because equal ids mean equal images, and so equally many cells.

Ids are never given twice, so an image may be forgotten at any time: when it comes again it gets another id,
and its cells are not found, and leave the cache as the least recently used.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from b3node.spans import ImageSpan, PromptSpan, TextSpan

MAX_IMAGES: Final = 4096
"""Images whose ids are remembered: more than any cache holds, at some 200 bytes each."""


class SpanIndex:
    """The ids of images; `ids` mutates it."""

    def __init__(self) -> None:
        self._images: OrderedDict[ImageSpan, int] = OrderedDict()
        self._next = -1

    def ids(self, prompt: Iterable[PromptSpan]) -> array[int]:
        """Returns the ids of a prompt's cells, int32: token ids, or negative ones for images."""
        ids = array("i")
        for span in prompt:
            if isinstance(span, TextSpan):
                ids.frombytes(span.tokens)
            else:
                ids.extend(array("i", (self._id(span),)) * span.cells)
        return ids

    def _id(self, image: ImageSpan) -> int:
        if (known := self._images.get(image)) is None:
            known = self._images[image] = self._next
            self._next -= 1
            if len(self._images) > MAX_IMAGES:
                self._images.popitem(last=False)
        self._images.move_to_end(image)
        return known
