"""Algebra of regular languages over code points, by Brzozowski derivatives.

A language is a small number, the index of an interned expression. Equal expressions have the same number, so
every step is memoized by it. `edges` returns the derivatives of an expression by all code points at once, as
disjoint intervals, each with the expression that is left. Intersection and complement are as easy as
concatenation; patterns with lookaheads, patterns with lengths, `not` and complements of keys need them. This
room must not know JSON or GBNF.

Invariants: edges are sorted and disjoint, and a code point without an edge leads to the empty language.
The number of expressions is bounded by `limit`; passing it raises `TooLarge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from b3node.grammar.counts import exceeds, lowered, tighter_bound
from b3node.grammar.languages.charset import ANY, LAST, Charset, intersection, union

Lang = int
"""Number of an interned expression of one `Algebra`."""
Transitions = tuple[tuple[int, int, Lang], ...]
"""Edges of one state as (first code point, last code point, target), sorted and disjoint."""
Dfa = tuple[tuple[bool, ...], tuple[Transitions, ...]]
"""A deterministic finite automaton as (accepting, edges) by state; state 0 is the start."""

Expression = tuple[Any, ...]
"""An operator and its operands (`Algebra._derive` has one case for each operator)."""

VOID: Final[Lang] = 0
"""The language without a string."""
EMPTY: Final[Lang] = 1
"""The language of the empty string."""
ALL: Final[Lang] = 2
"""Every string."""

_SET, _CAT, _OR, _AND, _NOT, _REP, _DFA = "set", "cat", "or", "and", "not", "rep", "dfa"


class TooLarge(Exception):  # noqa: N818 - it is a verdict, not a failure
    """A language that needs more expressions or states than the bounds allow."""


class Algebra:
    """A set of interned regular expressions; numbers of one algebra mean nothing in another.

    Args:
        limit: expressions that may exist before `TooLarge` is raised.
        spend: called with each amount of work, in steps; may raise to enforce a bound.
    """

    def __init__(self, limit: int = 60_000, spend: Callable[[int], None] | None = None) -> None:
        self._limit = limit
        self._spend = spend
        self._ids: dict[Expression, Lang] = {}
        self._keys: list[Expression] = []
        self._edges: dict[Lang, Transitions] = {}
        self._nullable: dict[Lang, bool] = {}
        self._dfas: list[Dfa] = []
        self._dfa_ids: dict[Dfa, int] = {}
        for key in (("void",), ("empty",), ("all",)):
            self._intern(key)

    def _intern(self, key: Expression) -> Lang:
        found = self._ids.get(key)
        if found is not None:
            return found
        if len(self._keys) >= self._limit:
            raise TooLarge
        self._keys.append(key)
        self._ids[key] = number = len(self._keys) - 1
        return number

    def expression(self, lang: Lang) -> Expression:
        """Returns the expression with a number: (operator, operands...)."""
        return self._keys[lang]

    def spend(self, steps: int) -> None:
        """Counts work done with languages of this algebra; may raise to enforce a bound."""
        if self._spend is not None:
            self._spend(steps)

    # --------------------------------------------------------------------------------- building
    def chars(self, chars: Charset) -> Lang:
        """Returns the language of the one-character strings of `chars`."""
        return self._intern((_SET, chars)) if chars else VOID

    def text(self, text: str) -> Lang:
        """Returns the language of exactly `text`."""
        out = EMPTY
        for char in reversed(text):
            out = self.cat(self.chars(((ord(char), ord(char)),)), out)
        return out

    def cat(self, *parts: Lang) -> Lang:
        """Returns the concatenation, grouped to the right."""
        out = parts[-1]
        for part in reversed(parts[:-1]):
            out = self._cat2(part, out)
        return out

    def _cat2(self, a: Lang, b: Lang) -> Lang:
        if VOID in {a, b}:
            return VOID
        if a == EMPTY:
            return b
        if b == EMPTY:
            return a
        if a == ALL and b == ALL:
            return ALL
        key = self._keys[a]
        if key[0] == _CAT:
            return self._cat2(key[1], self._cat2(key[2], b))
        return self._intern((_CAT, a, b))

    def either(self, parts: Iterable[Lang]) -> Lang:
        """Returns the union."""
        flat: set[Lang] = set()
        for part in parts:
            key = self._keys[part]
            flat.update(key[1] if key[0] == _OR else (part,))
        flat.discard(VOID)
        if ALL in flat:
            return ALL
        sets = [part for part in flat if self._keys[part][0] == _SET]
        if len(sets) > 1:
            flat.difference_update(sets)
            flat.add(self.chars(union(*(self.charset(part) for part in sets))))
        if EMPTY in flat and len(flat) > 1 and any(self.nullable(p) for p in flat if p != EMPTY):
            flat.discard(EMPTY)
        return self._group(_OR, flat, VOID)

    def both(self, parts: Iterable[Lang]) -> Lang:
        """Returns the intersection."""
        flat: set[Lang] = set()
        for part in parts:
            key = self._keys[part]
            flat.update(key[1] if key[0] == _AND else (part,))
        flat.discard(ALL)
        if VOID in flat or (EMPTY in flat and not all(self.nullable(part) for part in flat)):
            return VOID
        if EMPTY in flat:
            return EMPTY
        return self._group(_AND, self._merge_plain_repeats(flat), ALL)

    def _merge_plain_repeats(self, flat: set[Lang]) -> set[Lang]:
        """Replaces plain character repetitions by one with the intersections of bounds and characters."""
        plain = [part for part in flat if self.plain_repeat(part) is not None]
        if len(plain) < 2:
            return flat
        chars, low, high = ANY, 0, None
        for part in plain:
            one = self.plain_repeat(part)
            if one is not None:
                chars = intersection(chars, one[0])
                low, high = max(low, one[1]), tighter_bound(high, one[2])
        met = VOID if exceeds(low, high) else self.repeat(self.chars(chars), low, high)
        return {*flat.difference(plain), met} - {ALL}

    def _group(self, name: str, parts: set[Lang], neutral: Lang) -> Lang:
        if not parts:
            return neutral
        if name == _AND and VOID in parts:
            return VOID
        if len(parts) == 1:
            return next(iter(parts))
        if any(self._keys[p][0] == _NOT and self._keys[p][1] in parts for p in parts):
            return VOID if name == _AND else ALL
        return self._intern((name, tuple(sorted(parts))))

    def negate(self, part: Lang) -> Lang:
        """Returns the complement within all strings."""
        if part == VOID:
            return ALL
        if part == ALL:
            return VOID
        key = self._keys[part]
        return key[1] if key[0] == _NOT else self._intern((_NOT, part))

    def repeat(self, part: Lang, low: int, high: int | None = None) -> Lang:
        """Returns `part` from `low` to `high` times; a `high` of None is no bound."""
        if high == 0 or part == EMPTY:
            return EMPTY
        if part == VOID:
            return EMPTY if low == 0 else VOID
        if (low, high) == (1, 1):
            return part
        if high is None and (self._keys[part] == (_SET, ANY) or part == ALL) and low == 0:
            return ALL
        key = self._keys[part]
        if key[0] == _REP and high is None and low <= 1 and key[2] in {0, 1} and key[3] is None:
            return self.repeat(key[1], key[2] * low)
        return self._intern((_REP, part, 0 if self.nullable(part) else low, high))

    def from_dfa(self, dfa: Dfa, state: int = 0) -> Lang:
        """Returns the language of a minimal automaton from `state` on."""
        index = self._dfa_ids.setdefault(dfa, len(self._dfas))
        if index == len(self._dfas):
            self._dfas.append(dfa)
        return self._intern((_DFA, index, state)) if dfa[0] else VOID

    # ---------------------------------------------------------------------------------- reading
    def charset(self, lang: Lang) -> Charset:
        """Returns the characters of a character-set expression; empty for any other expression."""
        key = self._keys[lang]
        found: Charset = key[1] if key[0] == _SET else ()
        return found

    def dfa_of(self, lang: Lang) -> Dfa | None:
        """Returns the automaton that `lang` was made from, if it is at its start; else None."""
        key = self._keys[lang]
        return self._dfas[key[1]] if key[0] == _DFA and key[2] == 0 else None

    def operands(self, lang: Lang) -> tuple[Lang, ...]:
        """Returns the operands of an intersection or union; `lang` alone for any other expression."""
        key = self._keys[lang]
        return key[1] if key[0] in {_AND, _OR} else (lang,)

    def plain_repeat(self, lang: Lang) -> tuple[Charset, int, int | None] | None:
        """Returns (characters, low, high) if the expression is a counted repetition of one set, else None."""
        if lang == ALL:
            return ANY, 0, None
        key = self._keys[lang]
        if key[0] == _SET:
            return self.charset(lang), 1, 1
        if key[0] == _REP and self._keys[key[1]][0] == _SET:
            return self.charset(key[1]), key[2], key[3]
        return None

    def nullable(self, lang: Lang) -> bool:
        """Returns whether the empty string belongs to the language."""
        found = self._nullable.get(lang)
        if found is None:
            found = self._nullable[lang] = self._is_nullable(lang)
        return found

    def _is_nullable(self, lang: Lang) -> bool:
        key = self._keys[lang]
        match key[0]:
            case "empty" | "all":
                return True
            case "cat":
                return self.nullable(key[1]) and self.nullable(key[2])
            case "or":
                return any(self.nullable(part) for part in key[1])
            case "and":
                return all(self.nullable(part) for part in key[1])
            case "not":
                return not self.nullable(key[1])
            case "rep":
                return key[2] == 0 or self.nullable(key[1])
            case "dfa":
                return self._dfas[key[1]][0][key[2]]
            case _:
                return False

    def edges(self, lang: Lang) -> Transitions:
        """Returns the derivatives of the language by every code point."""
        found = self._edges.get(lang)
        if found is None:
            found = self._edges[lang] = self._derive(lang)
        return found

    def _derive(self, lang: Lang) -> Transitions:
        key = self._keys[lang]
        match key[0]:
            case "all":
                return all_to(ALL)
            case "set":
                return tuple((lo, hi, EMPTY) for lo, hi in self.charset(lang))
            case "cat":
                return self._derive_cat(key[1], key[2])
            case "or":
                return self._fold([self.edges(part) for part in key[1]], self.either)
            case "and":
                return self._fold([self.edges(part) for part in key[1]], self.both)
            case "not":
                return merge_adjacent(
                    (lo, hi, self.negate(to)) for lo, hi, to in complete_edges(self.edges(key[1]))
                )
            case "rep":
                return self._derive_repeat(key[1], key[2], key[3])
            case "dfa":
                index = key[1]
                rows = self._dfas[index][1][key[2]]
                return tuple((lo, hi, self._intern((_DFA, index, to))) for lo, hi, to in rows)
            case _:
                return ()

    def _derive_cat(self, a: Lang, b: Lang) -> Transitions:
        first = merge_adjacent((lo, hi, self._cat2(to, b)) for lo, hi, to in self.edges(a))
        return self._fold([first, self.edges(b)], self.either) if self.nullable(a) else first

    def _derive_repeat(self, part: Lang, low: int, high: int | None) -> Transitions:
        rest = self.repeat(part, max(low - 1, 0), lowered(high))
        return merge_adjacent((lo, hi, self._cat2(to, rest)) for lo, hi, to in self.edges(part))

    def _fold(self, rows: Sequence[Transitions], join: Callable[[Iterable[Lang]], Lang]) -> Transitions:
        """Merges edge lists: `join` combines their targets on each interval where any list has an edge."""
        conjunction = join == self.both
        if len(rows) == 1:
            return rows[0]
        cuts = sorted({lo for row in rows for lo, _, _ in row} | {hi + 1 for row in rows for _, hi, _ in row})
        if self._spend is not None:
            self._spend(len(cuts) * len(rows) // 2 + 1)
        out, at, memo = [], [0] * len(rows), dict[tuple[Lang, ...], Lang]()
        for start, stop in pairwise(cuts):
            targets = []
            for i, row in enumerate(rows):
                while at[i] < len(row) and row[at[i]][1] < start:
                    at[i] += 1
                hit = at[i] < len(row) and row[at[i]][0] <= start
                targets.append(row[at[i]][2] if hit else VOID)
            if conjunction and VOID in targets:
                continue
            key = tuple(targets)
            if key not in memo:
                memo[key] = join(key)
            out.append((start, stop - 1, memo[key]))
        return merge_adjacent(out)

    def step(self, lang: Lang, point: int) -> Lang:
        """Returns the derivative of the language by one code point."""
        for lo, hi, to in self.edges(lang):
            if lo <= point <= hi:
                return to
        return VOID

    def matches(self, lang: Lang, text: str) -> bool:
        """Returns whether `text` belongs to the language."""
        for char in text:
            lang = self.step(lang, ord(char))
            if lang == VOID:
                return False
        return self.nullable(lang)


def merge_adjacent(rows: Iterable[tuple[int, int, int]], void: int = VOID) -> Transitions:
    """Returns the edges without those to `void`; adjacent intervals with the same target are one."""
    out: list[tuple[int, int, int]] = []
    for lo, hi, to in rows:
        if to == void:
            continue
        if out and out[-1][2] == to and out[-1][1] + 1 == lo:
            out[-1] = (out[-1][0], hi, to)
        else:
            out.append((lo, hi, to))
    return tuple(out)


def complete_edges(rows: Transitions, void: Lang = VOID) -> list[tuple[int, int, Lang]]:
    """Returns the same edges with explicit ones to `void` for the code points that have none."""
    out: list[tuple[int, int, Lang]] = []
    start = 0
    for lo, hi, to in rows:
        if start < lo:
            out += _gap(start, lo - 1, void)
        out.append((lo, hi, to))
        start = hi + 1
    return out + _gap(start, LAST, void)


def _gap(start: int, stop: int, void: Lang) -> list[tuple[int, int, Lang]]:
    """Returns edges to `void` for the code points of the universe from `start` to `stop`."""
    if stop <= ANY[0][1] and start <= stop:
        return [(start, stop, void)]
    pieces = [(max(start, low), min(stop, high)) for low, high in ANY]
    return [(lo, hi, void) for lo, hi in pieces if lo <= hi]


def leads_all_to(row: Transitions, to: Lang) -> bool:
    """Returns whether every code point leads to `to`."""
    return len(row) == len(ANY) and row == all_to(to)


def all_to(to: Lang) -> Transitions:
    """Returns edges by which every code point leads to `to`."""
    return tuple([(lo, hi, to) for lo, hi in ANY])
