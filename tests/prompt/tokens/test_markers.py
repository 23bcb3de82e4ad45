"""Markers are found in text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from b3node.prompt.tokens.markers import MarkerIndex, is_marker
from b3node.prompt.tokens.vocabulary import Special
from tests.prompt.fakes import special_tokens


def markers(*texts: str) -> MarkerIndex:
    return MarkerIndex(special_tokens(texts, ()))


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("<|im_end|>", "control", True),
        ("<tool_call>", "user_defined", True),
        ("<unk>", "unknown", True),
        ("¤", "control", True),
        ("¤", "user_defined", False),
        ("\n\n", "user_defined", False),
        ("    ", "user_defined", False),
        ('"', "user_defined", False),
        ("👋👋", "user_defined", False),
        ('<|"|>', "user_defined", True),
    ],
)
def test_plain_text_is_no_marker(text, kind, expected) -> None:
    """White space and single characters that a vocabulary declares USER_DEFINED are left to the tokenizer."""
    assert is_marker(Special(1, text, kind)) is expected


def test_the_longest_marker_wins() -> None:
    """At one place the longest is taken, and none is found inside another."""
    found = [(at, special.text) for at, special in markers("<a>", "<a><b>", "<b>").find("x<a><b><a>y<b>")]

    assert found == [(1, "<a><b>"), (7, "<a>"), (11, "<b>")]


def test_every_beginning_is_reported() -> None:
    """Beginnings inside other markers count, because cutting one must not leave the other whole."""
    assert list(markers("<<a>", "<a>").beginnings("<<a>")) == [0, 1]


def test_without_markers_nothing_is_found() -> None:
    """A vocabulary may have none."""
    assert list(markers().find("<a>")) == []
    assert list(markers().beginnings("<a>")) == []


@given(
    st.lists(st.text("<>|^]-\\ab", min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
    st.text("<>|^]-\\ab", max_size=40),
)
def test_finding_agrees_with_a_regular_expression(texts, text) -> None:
    """The left-most, longest matches of an alternation are the same."""
    known = [special.text for special in special_tokens(texts, ()) if is_marker(special)]
    pattern = "|".join(re.escape(one) for one in sorted(known, key=len, reverse=True)) or "(?!)"
    places = {place for one in known for place in range(len(text)) if text.startswith(one, place)}

    found = [(at, special.text) for at, special in markers(*texts).find(text)]
    assert found == [(match.start(), match[0]) for match in re.finditer(pattern, text)]
    assert list(markers(*texts).beginnings(text)) == sorted(places)
