"""Spans: the pieces of a prompt that an engine computes, each text or an image.

A span lies in the KV cache as a row of cells: a text token takes one cell, an image `cells` of them. Every
length inside the engine counts cells. Positions are a model's own matter: a token advances them by one, an
image by its `positions`, which are fewer than its cells where a model numbers rows and columns (M-RoPE). A
backend that computes such images derives positions from cells: it subtracts `cells - positions` of every
image before.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class TextSpan(msgspec.Struct, frozen=True, tag="text", array_like=True):
    """Text tokens."""

    tokens: bytes
    """Little-endian int32 ids; never empty."""

    @property
    def cells(self) -> int:
        """Cells that it takes: one a token."""
        return len(self.tokens) // 4


class ImageSpan(msgspec.Struct, frozen=True, tag="image", array_like=True):
    """An image as a model sees it. Equal spans are the same image, prepared alike."""

    digest: bytes
    """A collision-resistant hash of its pixels."""
    positions: int
    """Positions by which it advances the text after it."""
    cells: int
    """Cells that it takes: the embeddings that the model's encoder makes of it."""


PromptSpan = TextSpan | ImageSpan


def images_by_cell(prompt: Iterable[PromptSpan]) -> dict[int, ImageSpan]:
    """Returns the images of a prompt by the cell at which each starts.

    >>> images_by_cell((TextSpan(bytes(8)), ImageSpan(b"cat", 4, 16), TextSpan(bytes(4))))
    {2: ImageSpan(digest=b'cat', positions=4, cells=16)}
    """
    images = {}
    cell = 0
    for span in prompt:
        if isinstance(span, ImageSpan):
            images[cell] = span
        cell += span.cells
    return images
