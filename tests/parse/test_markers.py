"""The search for markers: what it costs to look for one that a model writes in its own way."""

from __future__ import annotations

import gc
import re
from random import Random

import pytest

from b3node.parse.markers import SPACES, MarkerState
from b3node.parse.reader import parser_of
from tests.parse.families import FAMILIES, TOOLS, Family, names, reading, written


def states() -> int:
    """The states of all searches that are in memory."""
    return sum(isinstance(each, MarkerState) for each in gc.get_objects())


def spaced(data: bytes, spaces: bytes, random: Random) -> bytes:
    """Text with white space of these kinds wherever a family's markers may have some."""
    runs = (bytes(random.choices(spaces, k=20)) for _ in data)
    return re.sub(rb"\s+|(?<=[>\]{}:,])|(?=\xff)", lambda _: next(runs), data)


@pytest.mark.parametrize("family", FAMILIES, ids=names)
def test_white_space_in_markers_leaves_nothing_behind(family: Family) -> None:
    """Searches grow with the markers of a family, not with what its models write in them."""
    random, counts = Random(family.name), []
    kinds = [bytes([space]) for space in SPACES] * 2
    for spaces in (*kinds, *[SPACES] * 10):
        for turn in family.turns:
            parser = parser_of(reading(family, turn), TOOLS, lambda _name, _arguments: True)
            parser.feed(spaced(written(turn.written, family.specials), spaces, random))
            parser.finish()
        counts.append(states())

    assert counts[len(kinds) - 1] == counts[-1]
