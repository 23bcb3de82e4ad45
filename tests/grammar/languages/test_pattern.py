"""ECMA-262 patterns: their matches anywhere in a string, and refusals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from b3node.grammar.languages import pattern, pattern_language
from b3node.grammar.languages.algebra import Algebra
from b3node.grammar.languages.pattern import PatternError

STRINGS = ["", "a", "b", "ab", "ba", "aab", "abab", "a\nb", "xax", "1", "a1", "_-", "é", " ", "aaaa"]


def matches(source, text):
    """Returns whether the pattern matches somewhere in the text."""
    algebra = Algebra()
    return algebra.matches(pattern_language.language(algebra, source), text)


atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "\\S", "(?:ab)", "(a|b)", "(?=a)", "(?!b)", "^", "$"]
)
pieces = st.builds(
    lambda atom, mark: atom if atom in {"^", "$", "(?=a)", "(?!b)"} else atom + mark,
    atoms,
    st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{2,}", "*?"]),
)
sources = st.lists(pieces, max_size=4).map("".join) | st.builds(
    lambda x, y: f"{x}|{y}",
    st.lists(pieces, max_size=3).map("".join),
    st.lists(pieces, max_size=3).map("".join),
)


@settings(deadline=None)
@given(sources, st.sampled_from(STRINGS))
def test_patterns_search_as_other_engines_do(source, text):
    """Python's engine with ASCII classes agrees on every string (its $ also matches before a last
    newline).
    """
    try:
        found = matches(source, text)
    except PatternError:
        return
    other = re.compile(source.replace("$", r"\Z").replace(".", r"[^\n\r\u2028\u2029]"), re.ASCII)
    assert found == (other.search(text) is not None)


@pytest.mark.parametrize(
    ("source", "good", "bad"),
    [
        (r"^\u00e9\x41\n$", "éA\n", "eA\n"),
        (r"^\uD83D\uDE00$", "😀", "x"),
        (r"^\u{1F600}$", "😀", "x"),
        (r"^\p{L}+$", "aéЖ", "a1"),
        (r"^\P{Lu}$", "a", "A"),
        (r"^[\w-]+$", "a-b", "a b"),
        (r"^[^]$", "\n", ""),
        (r"^a\/b\-$", "a/b-", "ab"),
        (r"^\cA$", "\x01", "A"),
        (r"^{x}$", "{x}", "x"),
        (r"^(?<year>\d{4})$", "2026", "26"),
        (r"(^|,)x(,|$)", "a,x", "xx"),
        (r"^\s$", "\ufeff", "a"),
        (r"^[\s\S]$", "😀", "ab"),
        (r"^[+--]$", ",", "."),
    ],
)
def test_ecma_262_semantics(source, good, bad):
    """Escapes, classes, Unicode, groups."""
    assert matches(source, good)
    assert not matches(source, bad)


@pytest.mark.parametrize(
    "source",
    ["(", ")", "[", "a**", "*", "+a", "(?<=a)b", r"(a)\1", r"\k<n>(?<n>a)", r"\b", "(?i)a", r"\a", "a{3,1}", "[b-a]",
     r"\u{110000}", "(?P<n>a)", r"\p{Nope}", "\\", "a{100001}", "(^a)*", "(" * 200 + ")" * 200],
)  # fmt: skip
def test_malformed_and_irregular_patterns_are_errors(source):
    """Malformed patterns, and those without a regular language."""
    with pytest.raises(PatternError):
        matches(source, "a")


@settings(deadline=None)
@given(st.text(alphabet="()[]{}|*+?^$\\.-,:=!<>adwpuxk012", max_size=25))
def test_no_pattern_breaks_the_reader(source):
    """Any text of a client gives a tree or a `PatternError`."""
    try:
        tree = pattern.parse(source)
    except PatternError:
        tree = None
    assert tree is None or isinstance(tree, pattern.Tree)
