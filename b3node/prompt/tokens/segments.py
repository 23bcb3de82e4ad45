"""Segments of a rendered prompt: control tokens that the template wrote, and text.

Rendering leaves clients' characters in an alphabet of their own (see `provenance`), so a marker found in the
rendered string is the template's, always. It becomes a `ControlSegment`; everything between two of them, the
template's words and the client's alike, becomes one `TextSegment` in plain characters, in which nothing is
ever parsed as a control token. Invariant: the number and order of `ControlSegment`s do not depend on clients'
words, only on the shape of their conversation.

Segments are where images will enter: `provenance.IMAGE` stands in the rendered string for each of them, and
splits a text like a marker does.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.provenance import plain

_SPACE = " \t\n\v\f\r"
"""The characters of C's `isspace`, which `lstrip` and `rstrip` tokens swallow."""


class ControlSegment(msgspec.Struct, frozen=True, tag=True):
    """A special token, to be put into the prompt as its id."""

    id: int
    """The token's id."""
    text: str
    """The token's text."""


class TextSegment(msgspec.Struct, frozen=True, tag=True):
    """Plain text, to be tokenized without parsing control tokens; never empty."""

    text: str


Segment = ControlSegment | TextSegment


def split(rendered: str, markers: MarkerIndex) -> Iterator[Segment]:
    """Yields the segments of a rendered prompt, in order."""
    end = 0
    strips = False
    for position, special in markers.find(rendered):
        text = rendered[end:position]
        yield from _text(text.rstrip(_SPACE) if special.lstrip else text, strips=strips)
        yield ControlSegment(special.id, special.text)
        end = position + len(special.text)
        strips = special.rstrip
    yield from _text(rendered[end:], strips=strips)


def _text(text: str, *, strips: bool) -> Iterator[TextSegment]:
    text = text.lstrip(_SPACE) if strips else text
    if text:
        yield TextSegment(plain(text))
