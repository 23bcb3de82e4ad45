"""Languages as plain text, without quotes or escapes, between two markers."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Rules, Symbols, Times
from b3node.grammar.gbnf.strings import char_class, literal
from b3node.grammar.languages import automaton, bounded
from b3node.grammar.languages.algebra import ALL, VOID, Algebra, Dfa, Lang, TooLarge, Transitions
from b3node.grammar.languages.charset import ANY, Charset, union

MAX_TEXT_STATES: Final = 1_000
"""States that the automaton of an unquoted text may have.

The engine runs them without effort; the bound is for the text of the grammar, which must be read.
"""
MAX_COUNTED_CHARS: Final = 64
"""Characters up to which the lengths of unquoted texts are counted.

Next to a marker that must not occur in the text, each costs a state for every letter of the marker.
"""
_MAX_LITERAL_CHARS: Final = 120
"""Characters of one literal."""
TEXT_CHARS: Final[Charset] = ((0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0x10FFFF))
"""Characters of unquoted text: no control characters, because in the engine they stand for special tokens."""
NAME_CHARS: Final[Charset] = union(((0x2D, 0x2E), (0x5F, 0x5F)), ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)))
"""Characters of an undeclared member's name: every argument style can hold them."""
MAX_NAME_CHARS: Final = 64
"""Characters of an undeclared member's name."""


class UnquotedTexts:
    """Writer of unquoted texts, each language once.

    Args:
        algebra: the languages.
        rules: the rules that are added to.
    """

    def __init__(self, algebra: Algebra, rules: Rules) -> None:
        self._algebra = algebra
        self._rules = rules
        self._texts: dict[tuple[Lang, str, Symbols], tuple[Symbols | None, bool]] = {}

    def text(self, lang: Lang, until: str, tail: Symbols) -> tuple[Symbols | None, bool]:
        """Returns the texts of a language without `until` in them, followed by `tail`.

        Returns:
            The row and whether it is exact. The row is None if the language has no texts. If it has texts,
                but none that can be
            written, or needs too many states, any text stands for it, which is not exact.
        """
        key = (lang, until, tail)
        if key not in self._texts:
            self._texts[key] = self._write(lang, until, tail)
        return self._texts[key]

    def name(self, lang: Lang, tail: Symbols) -> Symbols:
        """Returns the names of a language that every argument style can hold, followed by `tail`.

        The row may have no text.
        """
        if lang != ALL:
            names = self._algebra.repeat(self._algebra.chars(NAME_CHARS), 1)
            try:
                table = automaton.build(self._algebra, self._algebra.both([lang, names]), MAX_TEXT_STATES)
            except TooLarge:
                return self.name(ALL, tail)
            return text_rules(self._rules, table, tail)
        return (Times(self._rules.of((char_class(NAME_CHARS),)), 1, MAX_NAME_CHARS), *tail)

    def _write(self, lang: Lang, until: str, tail: Symbols) -> tuple[Symbols | None, bool]:
        """Computes the result of `text`."""
        if lang == VOID:
            return None, True
        counted = self._without_long_counts(lang)
        table = self._table(counted, until)
        if table is not None and table[0]:
            return text_rules(self._rules, table, tail), counted == lang
        return text_rules(self._rules, texts_before(until), tail), False

    def _table(self, lang: Lang, until: str) -> Dfa | None:
        """Returns the automaton of the texts of a language before `until`, or None if too large."""
        whole = self._algebra.dfa_of(lang)
        if whole is not None and library.is_format(whole):
            return _format_before(whole, until)
        chars, low, high = self._algebra.plain_repeat(lang) or ((), 0, 0)
        try:
            if chars == ANY and lang != ALL:
                found = bounded.with_length(texts_before(until), low, high, MAX_TEXT_STATES)
                self._algebra.spend(len(found[0]))
                return found
            ended = self._algebra.from_dfa(texts_before(until))
            return automaton.build(self._algebra, self._algebra.both([lang, ended]), MAX_TEXT_STATES)
        except TooLarge:
            return None

    def _without_long_counts(self, lang: Lang) -> Lang:
        """Returns the language without a length that is too large to count."""
        found = self._algebra.plain_repeat(lang)
        if found is None or max(found[1], found[2] or 0) <= MAX_COUNTED_CHARS:
            return lang
        chars, low, high = found
        return self._algebra.repeat(
            self._algebra.chars(chars),
            min(low, MAX_COUNTED_CHARS),
            high if high is not None and high <= MAX_COUNTED_CHARS else None,
        )


@lru_cache(maxsize=128)
def _format_before(table: Dfa, until: str) -> Dfa | None:
    """Returns the automaton of the strings of a format before `until`; None if it needs too many states."""
    algebra = Algebra()
    try:
        return automaton.build(
            algebra,
            algebra.both([algebra.from_dfa(table), algebra.from_dfa(texts_before(until))]),
            MAX_TEXT_STATES,
        )
    except TooLarge:
        return None


@lru_cache(maxsize=256)
def texts_before(until: str) -> Dfa:
    """Returns the texts that `until` may follow and that do not contain it.

    Their last letters do not complete an earlier `until` together with its first ones either.
    """
    algebra = Algebra()
    parts = [algebra.repeat(algebra.chars(TEXT_CHARS), 0)]
    if until:
        parts.append(algebra.negate(algebra.cat(ALL, algebra.text(until), ALL)))
    overlaps = [size for size in range(1, len(until)) if until.startswith(until[size:])]
    parts += [algebra.negate(algebra.cat(ALL, algebra.text(until[:size]))) for size in overlaps]
    return automaton.build(algebra, algebra.both(parts))


def text_rules(rules: Rules, table: Dfa, tail: Symbols) -> Symbols:
    """Returns the row of the texts of an automaton, each followed by `tail`.

    Single letters in a row are one literal.
    """
    accepting, edges = table
    states = [rules.new() for _ in accepting] or [rules.new()]
    for state, ends in enumerate(accepting):
        for to, chars in _by_target(edges[state]).items():
            rules.add(states[state], _step(table, states, to, chars))
        if ends:
            rules.add(states[state], tail)
    return (states[0],)


def _step(table: Dfa, states: list[int], to: int, chars: Charset) -> Symbols:
    """Returns the row of one edge, and of the single letters after it."""
    if len(chars) > 1 or chars[0][0] != chars[0][1]:
        return (char_class(chars), states[to])
    text = chr(chars[0][0])
    accepting, edges = table
    while not accepting[to] and len(edges[to]) == 1 and len(text) < _MAX_LITERAL_CHARS:
        low, high, after = edges[to][0]
        if low != high or after == to:
            break
        text, to = text + chr(low), after
    return (literal(text), states[to])


def _by_target(edges: Transitions) -> dict[int, Charset]:
    """Returns the characters that lead to each state."""
    out: dict[int, list[tuple[int, int]]] = {}
    for low, high, to in edges:
        out.setdefault(to, []).append((low, high))
    return {to: tuple(pairs) for to, pairs in out.items()}
