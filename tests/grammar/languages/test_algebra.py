"""The algebra of regular languages: its operations agree with those of sets of strings."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

from b3node.grammar.languages import automaton, bounded
from b3node.grammar.languages.algebra import ALL, EMPTY, VOID, Algebra, TooLarge
from b3node.grammar.languages.charset import ANY, complement, intersection, union

WORDS = ["".join(letters) for size in range(5) for letters in product("ab", repeat=size)]


def languages(algebra):
    """Random expressions, each with the set of `WORDS` that it should have."""
    base = [
        (EMPTY, {""}),
        (VOID, set()),
        (ALL, set(WORDS)),
        (algebra.text("a"), {"a"}),
        (algebra.text("ba"), {"ba"}),
    ]

    def cat(x, y):
        return algebra.cat(x[0], y[0]), {u + v for u in x[1] for v in y[1] if len(u + v) < 5}

    def star(x):
        found, fresh = {""}, {""}
        while fresh:
            fresh = {u + v for u in fresh for v in x[1] if len(u + v) < 5} - found
            found |= fresh
        return algebra.repeat(x[0], 0), found

    inner = st.sampled_from(base)
    return st.recursive(
        inner,
        lambda each: st.one_of(
            st.builds(cat, each, each),
            st.builds(star, each),
            st.builds(lambda x, y: (algebra.either([x[0], y[0]]), x[1] | y[1]), each, each),
            st.builds(lambda x, y: (algebra.both([x[0], y[0]]), x[1] & y[1]), each, each),
            st.builds(lambda x: (algebra.negate(x[0]), set(WORDS) - x[1]), each),
        ),
        max_leaves=8,
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_operations_are_those_of_sets(data):
    """Every expression has the strings that its set has, and so has its minimal automaton."""
    algebra = Algebra()
    lang, words = data.draw(languages(algebra))
    assert {word for word in WORDS if algebra.matches(lang, word)} == words
    table = automaton.build(algebra, lang)
    again = algebra.from_dfa(table)
    assert {word for word in WORDS if algebra.matches(again, word)} == words
    assert automaton.is_void(algebra, lang) == (not table[0])
    assert automaton.build(algebra, again) == table


def test_equal_languages_have_equal_automata():
    """Minimal automata are canonical."""
    algebra = Algebra()
    a, b = algebra.text("a"), algebra.text("b")
    one = algebra.repeat(algebra.either([a, b]), 0)
    other = algebra.repeat(algebra.cat(algebra.repeat(a, 0), algebra.repeat(b, 0)), 0)
    assert automaton.build(algebra, one) == automaton.build(algebra, other)


def test_counted_repetitions_are_exact():
    """Bounds, their intersection and their complement."""
    algebra = Algebra()
    a = algebra.text("a")
    lang = algebra.both([algebra.repeat(a, 2, 9), algebra.negate(algebra.repeat(a, 4, 6))])
    assert [n for n in range(12) if algebra.matches(lang, "a" * n)] == [2, 3, 7, 8, 9]


@pytest.mark.parametrize(("expressions", "states"), [(60_000, 500), (300, 4_000)])
def test_too_many_states_are_an_error_soon(expressions, states):
    """An exponential automaton ends at the limit of states, or of expressions."""
    algebra = Algebra(expressions)
    ab = algebra.chars(((0x61, 0x62),))
    lang = algebra.cat(algebra.repeat(ab, 0), algebra.text("a"), algebra.repeat(ab, 20, 20))
    with pytest.raises(TooLarge):
        automaton.build(algebra, lang, states)


def test_word_lists_are_minimal():
    """Common beginnings and ends are shared."""
    table = automaton.from_strings(["taps", "tops", "tap", "top"])
    assert len(table[0]) == 5
    assert automaton.accepted_strings(table, 10) == ["tap", "taps", "top", "tops"]


@settings(deadline=None)
@given(st.lists(st.text(max_size=6), max_size=12))
def test_word_lists_have_exactly_their_words(words):
    """Any list of any letters, except surrogates."""
    algebra = Algebra()
    lang = algebra.from_dfa(automaton.from_strings(words))
    assert all(algebra.matches(lang, word) for word in words)
    assert not algebra.matches(lang, "".join(words) + "!")


def test_lengths_of_an_automaton():
    """Shortest and longest, where there is a longest."""
    algebra = Algebra()
    a = algebra.text("a")
    assert automaton.length_range(automaton.build(algebra, algebra.repeat(a, 2, 7))) == (2, 7)
    assert automaton.length_range(automaton.build(algebra, algebra.repeat(a, 3))) == (3, None)


def test_narrowed_automata_keep_the_longest_length():
    """The narrowed language is part of the language, and its strings are within the length."""
    algebra = Algebra()
    letters, digits = algebra.chars(((0x61, 0x7A),)), algebra.chars(((0x30, 0x39),))
    lang = algebra.cat(algebra.repeat(letters, 1), algebra.text("@"), algebra.repeat(digits, 1))
    table = bounded.narrowed_to_length(automaton.build(algebra, lang), 101, 300)
    _, longest = automaton.length_range(table)
    assert longest is not None
    assert longest <= 101
    inside = algebra.both([algebra.from_dfa(table), algebra.negate(lang)])
    assert automaton.is_void(algebra, inside)
    assert algebra.matches(algebra.from_dfa(table), "a" * 40 + "@" + "1" * 40)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=6))
def test_character_sets_are_sets(pairs):
    """Union, intersection and complement, without surrogates."""
    one = intersection(union((low, low + more) for low, more in pairs), ANY)
    other = complement(one)
    assert intersection(one, other) == ()
    assert union(one, other) == ANY
    for point in range(345):
        assert any(low <= point <= high for low, high in one) == any(a <= point <= a + b for a, b in pairs)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_finished_automaton_and_its_complement_are_not_built_again(data):
    """They are the same values as when they are derived letter by letter."""
    algebra = Algebra()
    lang, _ = data.draw(languages(algebra))
    table = automaton.build(algebra, lang)
    finished = algebra.from_dfa(table)
    assert automaton.build(algebra, finished) == table
    assert automaton.build(algebra, algebra.negate(finished)) == automaton.build(
        algebra, algebra.negate(lang)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abc\x00\ud7ff\ue000\U0010ffff\ud800", max_size=4), max_size=12))
def test_a_list_of_words_is_the_union_of_its_words(words):
    """As a minimal automaton, without the words that are no text."""
    algebra = Algebra()
    texts = [word for word in words if "\ud800" not in word]
    derived = automaton.build(algebra, algebra.either([algebra.text(text) for text in texts]))
    assert automaton.from_strings(words) == derived


def test_a_finished_automaton_is_within_the_bound_of_states():
    """Whether it was built or is built again."""
    algebra = Algebra()
    finished = algebra.from_dfa(automaton.from_strings(["abcdef"]))
    assert len(automaton.build(algebra, finished, 7)[0]) == 7
    for lang in (finished, algebra.negate(finished)):
        with pytest.raises(TooLarge):
            automaton.build(algebra, lang, 6)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 6), st.none() | st.integers(0, 6))
def test_strings_of_bounded_length_are_counted_without_deriving_them(data, low, high):
    """The same automaton as of the intersection with so many characters."""
    algebra = Algebra()
    lang, _ = data.draw(languages(algebra))
    table = automaton.build(algebra, lang)
    counted = algebra.repeat(algebra.chars(ANY), low, high) if high is None or low <= high else VOID
    derived = automaton.build(algebra, algebra.both([lang, counted]))
    if table[0]:
        assert bounded.with_length(table, low, high, 1_000) == derived


def test_a_length_that_takes_too_many_states_is_an_error():
    """Every state counts once for every length, before any are found to be alike."""
    table = automaton.from_strings(["a" * 10])
    assert bounded.with_length(table, 0, 5, 6) == automaton.VOID_DFA
    with pytest.raises(TooLarge):
        bounded.with_length(table, 0, 5, 5)
