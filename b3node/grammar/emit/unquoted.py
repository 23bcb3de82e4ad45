"""Languages as plain text, without quotes or escapes: what stands bare between two markers."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Row, Rules, Times
from b3node.grammar.gbnf.strings import char_class, literal
from b3node.grammar.languages import automaton, bounded
from b3node.grammar.languages.algebra import ALL, VOID, Algebra, Edges, Lang, Table, TooLarge
from b3node.grammar.languages.charset import ANY, Charset, union

STATES: Final = 1_000
"""States that a bare text's automaton may have: the engine walks them without effort, they are text to read."""
COUNTED: Final = 64
"""Characters up to which the lengths of bare texts are counted: beside a marker that must not occur in them, each costs
a state for every letter of it."""
_MAX_CHAIN: Final = 120
WRITTEN: Final[Charset] = ((0x9, 0xA), (0xD, 0xD), (0x20, 0xD7FF), (0xE000, 0x10FFFF))
"""What bare text is made of: no control characters, because in the engine they stand for special tokens."""
NAME: Final[Charset] = union(((0x2D, 0x2E), (0x5F, 0x5F)), ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)))
"""What an undeclared member's name is made of: every spelling can hold it."""
MAX_NAME: Final = 64


class Bare:
    """The writer of bare texts, each language once.

    Args:
        algebra: where the languages live.
        rules: where their rules are made.
    """

    def __init__(self, algebra: Algebra, rules: Rules) -> None:
        self._algebra = algebra
        self._rules = rules
        self._texts: dict[tuple[Lang, str, Row], tuple[Row | None, bool]] = {}

    def text(self, lang: Lang, until: str, tail: Row) -> tuple[Row | None, bool]:
        """The texts of a language that do not have `until` in them, with `tail` behind, and whether that is exact.

        None where the language has no texts. Where it has, but none that can be written, or needs too many states,
        any text stands for it, which is not exact.
        """
        key = (lang, until, tail)
        if key not in self._texts:
            self._texts[key] = self._written(lang, until, tail)
        return self._texts[key]

    def name(self, lang: Lang, tail: Row) -> Row:
        """The names of a language that every spelling can hold, with `tail` behind; none may be left."""
        if lang != ALL:
            names = self._algebra.repeat(self._algebra.chars(NAME), 1)
            try:
                table = automaton.build(self._algebra, self._algebra.both([lang, names]), STATES)
            except TooLarge:
                return self.name(ALL, tail)
            return plain(self._rules, table, tail)
        return (Times(self._rules.of((char_class(NAME),)), 1, MAX_NAME), *tail)

    def _written(self, lang: Lang, until: str, tail: Row) -> tuple[Row | None, bool]:
        if lang == VOID:
            return None, True
        counted = self._uncounted(lang)
        table = self._table(counted, until)
        if table is not None and table[0]:
            return plain(self._rules, table, tail), counted == lang
        return plain(self._rules, texts_before(until), tail), False

    def _table(self, lang: Lang, until: str) -> Table | None:
        """The automaton of the texts of a language before `until`; None when it needs too many states."""
        whole = self._algebra.whole_table(lang)
        if whole is not None and library.is_format(whole):
            return _format_before(whole, until)
        chars, low, high = self._algebra.plain_repeat(lang) or ((), 0, 0)
        try:
            if chars == ANY and lang != ALL:
                found = bounded.within(texts_before(until), low, high, STATES)
                self._algebra.spend(len(found[0]))
                return found
            ended = self._algebra.table(texts_before(until))
            return automaton.build(self._algebra, self._algebra.both([lang, ended]), STATES)
        except TooLarge:
            return None

    def _uncounted(self, lang: Lang) -> Lang:
        """The language without a length that is too much to count."""
        found = self._algebra.plain_repeat(lang)
        if found is None or max(found[1:]) <= COUNTED:
            return lang
        chars, low, high = found
        return self._algebra.repeat(
            self._algebra.chars(chars), min(low, COUNTED), high if high <= COUNTED else -1
        )


@lru_cache(maxsize=128)
def _format_before(table: Table, until: str) -> Table | None:
    """The automaton of the strings of a format before `until`; None when it needs too many states."""
    algebra = Algebra()
    try:
        return automaton.build(
            algebra, algebra.both([algebra.table(table), algebra.table(texts_before(until))]), STATES
        )
    except TooLarge:
        return None


@lru_cache(maxsize=256)
def texts_before(until: str) -> Table:
    """The texts that `until` ends and has not ended before, be it together with their own last letters."""
    algebra = Algebra()
    parts = [algebra.repeat(algebra.chars(WRITTEN), 0)]
    if until:
        parts.append(algebra.negate(algebra.cat(ALL, algebra.text(until), ALL)))
    overlaps = [size for size in range(1, len(until)) if until.startswith(until[size:])]
    parts += [algebra.negate(algebra.cat(ALL, algebra.text(until[:size]))) for size in overlaps]
    return automaton.build(algebra, algebra.both(parts))


def plain(rules: Rules, table: Table, tail: Row) -> Row:
    """The texts of an automaton, each followed by `tail`; a run of single letters is one literal."""
    accepting, edges = table
    states = [rules.new() for _ in accepting] or [rules.new()]
    for state, ends in enumerate(accepting):
        for to, chars in _by_target(edges[state]).items():
            rules.add(states[state], _step(table, states, to, chars))
        if ends:
            rules.add(states[state], tail)
    return (states[0],)


def _step(table: Table, states: list[int], to: int, chars: Charset) -> Row:
    if len(chars) > 1 or chars[0][0] != chars[0][1]:
        return (char_class(chars), states[to])
    text = chr(chars[0][0])
    accepting, edges = table
    while not accepting[to] and len(edges[to]) == 1 and len(text) < _MAX_CHAIN:
        low, high, after = edges[to][0]
        if low != high or after == to:
            break
        text, to = text + chr(low), after
    return (literal(text), states[to])


def _by_target(edges: Edges) -> dict[int, Charset]:
    out: dict[int, list[tuple[int, int]]] = {}
    for low, high, to in edges:
        out.setdefault(to, []).append((low, high))
    return {to: tuple(pairs) for to, pairs in out.items()}
