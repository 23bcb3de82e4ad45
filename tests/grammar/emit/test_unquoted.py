"""Unquoted texts: a marker ends each of them, and none of them contains it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from b3node.grammar.emit.unquoted import MAX_COUNTED_CHARS, MAX_TEXT_STATES, UnquotedTexts, texts_before
from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Rules, printed
from b3node.grammar.languages.algebra import Algebra
from b3node.grammar.languages.charset import ANY
from tests.grammar.drawing import Grammar

MARKERS = ["</p>", "\n</p>\n", "abab", "aa", "<"]


@pytest.mark.parametrize("until", MARKERS)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_text_is_followed_by_its_marker_and_has_it_nowhere_else(until, data):
    """A text contains no marker, not even together with the marker's own first letters."""
    text = data.draw(st.text([*until, "x"], max_size=12))
    algebra = Algebra()
    ended = (text + until).find(until) == len(text)
    assert algebra.matches(algebra.from_dfa(texts_before(until)), text) == ended


@pytest.mark.parametrize("until", MARKERS)
@pytest.mark.parametrize(
    "lang",
    [
        lambda algebra: algebra.repeat(algebra.chars(ANY), 3, 5),
        lambda algebra: algebra.repeat(algebra.chars(ANY), MAX_COUNTED_CHARS),
        lambda algebra: algebra.from_dfa(library.format_dfa("date")),
        lambda algebra: algebra.both([algebra.from_dfa(library.format_dfa("uri")), algebra.negate(algebra.text("a:"))]),
    ],
    ids=["length", "least length", "format", "format and more"],
)  # fmt: skip
def test_what_is_written_is_in_the_language(lang, until):
    """The marker stands after the text and nowhere in it."""
    algebra, rules = Algebra(), Rules(4 * MAX_TEXT_STATES)
    row, exact = UnquotedTexts(algebra, rules).text(lang(algebra), until, ('"|"',))
    assert exact
    assert row is not None
    grammar = Grammar(printed(rules.simplified(rules.of(row)) or [], {}))
    for seed in range(20):
        text, mark, rest = grammar.draw(seed, 200).rpartition("|")
        assert (mark, rest) == ("|", "")
        assert algebra.matches(lang(algebra), text)
        assert (text + until).find(until) == len(text)
