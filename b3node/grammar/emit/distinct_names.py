"""Undeclared members of which no two have the same name.

JSON allows a repeated name, and a reader keeps the last one. So the names must differ where several members
are required (`minProperties`), or where several members must each be a witness that a later one of the same
name would override. No context-free grammar can express that three texts of any length differ pairwise, in
whichever order they are written (pump the shortest of three that are a factorial apart, and it becomes one of
the others). Names are therefore distinguished as far as a grammar can do it:

* Names of different classes differ anyway.
* Two of all names: at any index, by a grammar that counts up to it (`ObjectWriter.pair`).
* Two or three: by a *test* of a character among the first ones. Each name but the last passes a test that all
  later ones fail. A character is three digits (the halves of its lower four bits, and the bits above them),
  and a test names one digit, so that some order passes for any three names that differ there, and nearly
  every order for most.
* More: the names begin with ever later characters.

Tried: sets of names already used as states (the text grows with the square of the alphabet), tests of single
letters (four times as long), names in ascending order throughout (a model that writes "name" first could not
write "age").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, Protocol

from b3node.grammar.constraints.literals import Lits
from b3node.grammar.constraints.name_classes import NameClass
from b3node.grammar.gbnf.rules import Rules, Symbols
from b3node.grammar.gbnf.strings import QUOTE, Strings
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import ALL, Algebra, Lang
from b3node.grammar.languages.charset import ANY, Charset, complement, intersection, union

MAX_DISTINCT_MEMBERS: Final = 8
"""Members that can be made to differ."""
MAX_TEST_COST: Final = 13_000
"""Cost of tests, in symbols, above which they cover fewer characters: some 130 KiB of text."""
TESTED_PLACES: Final = {2: (8, 4, 2, 1), 3: (2, 1)}
"""By number of members, how many first characters of a name tests may cover, the most first."""

OpenClauses = frozenset[int]
"""Clauses without a witness, by their index."""
Allowed = tuple[Charset, bool]
"""Allowed characters at a place of a name, and whether the name may have ended before it."""
Test = tuple[int, int]
"""A place, and the index in `CHAR_KINDS` of its character."""
Used = frozenset[tuple[int, Test | None]]
"""Class and test of each name so far; without a test, no later name is of the class."""


class WitnessOptions(Protocol):
    """Ways in which members of a class may be written."""

    def __call__(self, number: int, pending: OpenClauses, *, witness: bool) -> list[tuple[Lits, OpenClauses]]:
        """Returns the constraints that a member may be written with, each with the clauses that it meets.

        Args:
            number: of the class.
            pending: the clauses without a witness.
            witness: whether the member may meet a clause that others of its class do not.
        """
        ...


_ANYTHING: Final[Allowed] = (ANY, True)
_PLAIN: Final[Charset] = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E))
_LETTERS: Final[Charset] = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))


def _digits() -> Iterator[Allowed]:
    """Yields the characters of each digit, then all other characters, then the end of the name."""
    points = [point for low, high in _PLAIN for point in range(low, high + 1)]
    for shift, mask in ((0, 3), (2, 3), (4, 7)):
        for digit in sorted({point >> shift & mask for point in points}):
            yield union((point, point) for point in points if point >> shift & mask == digit), False
    yield complement(_PLAIN), False
    yield (), True


CHAR_KINDS: Final[tuple[Allowed, ...]] = tuple(_digits())
"""Outcomes of tests: plain characters by their digits, all others, and that the name has ended."""
INITIALS: Final[tuple[Allowed, ...]] = (
    ((), True),
    *((((point, point),), False) for low, high in _LETTERS for point in range(low, high + 1)),
    (complement(_LETTERS), False),
)
"""Beginnings of names of four and more members, in order; the empty name is the first."""


@lru_cache(maxsize=1)
def disjoint_pairs() -> tuple[tuple[Charset, Charset], ...]:
    """Returns pairs of disjoint sets; any two ASCII characters, and most others, are in some pair."""
    ascii_only: Charset = ((0, 0x7F),)
    out = [(ascii_only, complement(ascii_only))]
    for bits, within in ((range(7), ascii_only), (range(5, 12), ((0x80, 0xFFF),)), (range(12, 21), ANY)):
        for bit in bits:
            step, stop = 1 << bit, within[-1][1] + 1
            ones = union((lo, lo + step - 1) for lo in range(step, stop, 2 * step))
            out.append((intersection(ones, within), intersection(complement(ones), within)))
    return tuple(pair for one, other in out for pair in ((one, other), (other, one)))


class NamePrefixes:
    """Rules of names by the characters at their first places."""

    def __init__(self, algebra: Algebra, rules: Rules, strings: Strings) -> None:
        self._algebra = algebra
        self._rules = rules
        self._strings = strings
        self._rows: dict[tuple[Lang, tuple[Allowed, ...]], Symbols] = {}
        self._known: dict[tuple[Lang, Charset], list[tuple[int, Lang]]] = {}

    def row(self, lang: Lang, allowed: tuple[Allowed, ...]) -> Symbols:
        """Returns the row after the opening quote of the names of a language.

        The names have an allowed character at each place.
        """
        while allowed and allowed[-1] == _ANYTHING:
            allowed = allowed[:-1]
        if not allowed:
            return self._strings.tail(lang)
        key = (lang, allowed)
        if key not in self._rows:
            self._rows[key] = (self._rules.of(*self._first_rows(lang, allowed)),)
        return self._rows[key]

    def _first_rows(self, lang: Lang, allowed: tuple[Allowed, ...]) -> Iterator[Symbols]:
        """Yields the rows by the first character."""
        for char, to in self._steps(lang, allowed[0][0]):
            yield (char, *self.row(to, allowed[1:]))
        if self._algebra.nullable(lang) and all(ended for _, ended in allowed):
            yield (QUOTE,)

    def _steps(self, lang: Lang, allowed: Charset) -> list[tuple[int, Lang]]:
        """Returns the rules of allowed first characters, each with the rest of the names."""
        key = (lang, allowed)
        if key not in self._known:
            targets: dict[Lang, list[tuple[int, int]]] = {}
            for low, high, to in self._algebra.edges(lang):
                targets.setdefault(to, []).append((low, high))
            met = ((intersection(tuple(pairs), allowed), to) for to, pairs in targets.items())
            self._known[key] = [(self._strings.char(chars), to) for chars, to in met if chars]
        return self._known[key]

    def count_prefixes(self, lang: Lang, places: int) -> int:
        """Returns the number of languages with which the names go on after up to `places` characters."""
        seen, level = {lang}, [lang]
        for _ in range(places):
            level = list({to for at in level for _, _, to in self._algebra.edges(at)}.difference(seen))
            seen.update(level)
        return len(seen)


class DistinctMembers:
    """Writer of the members of one object that must differ.

    Args:
        rules: the rules that are added to.
        names: the rules of names.
        classes: of the undeclared names.
        options: of these classes, by their place in `classes`.
        value: the row of a member after its name's quote.
        pair: the row of two members of any names.
    """

    def __init__(
        self,
        rules: Rules,
        names: NamePrefixes,
        classes: list[NameClass],
        options: WitnessOptions,
        value: Callable[[Lits], Symbols],
        pair: Callable[[Lits, Lits], Symbols],
    ) -> None:
        self._rules = rules
        self._names = names
        self._classes = classes
        self._options = options
        self._value = value
        self._pair = pair
        self._known: dict[tuple[object, ...], int] = {}

    def rule(self, count: int, pending: OpenClauses, end: Symbols) -> int:
        """Returns the rule of `count` members that differ and meet the clauses, then `end`.

        Raises:
            Inexact: they are too many.
        """
        if count > MAX_DISTINCT_MEMBERS:
            raise Inexact("", "undeclared members cannot be told apart, so minProperties cannot count them")
        if count == 2 and len(self._classes) == 1 and self._classes[0][0] == ALL:
            return self._rules.of(*self._pairs(pending, end))
        places = self._places(count, pending)
        if count == 1 or places:
            tests = [(place, kind) for place in range(places) for kind in range(len(CHAR_KINDS))]
            return self._with_tests(count, pending, frozenset(), tests, end)
        return self._ascending(count, pending, 0, end)

    def _pairs(self, pending: OpenClauses, end: Symbols) -> Iterator[Symbols]:
        """Yields the rows of two members of any names."""
        for one, met in self._options(0, pending, witness=len(pending) > 1):
            for other, also in self._options(0, pending - met, witness=True):
                if not pending - met - also:
                    yield (*self._pair(one, other), *end)

    def _places(self, count: int, pending: OpenClauses) -> int:
        """Returns the number of first characters that tests can cover; 0 if no test is affordable."""
        numbers = range(len(self._classes))
        ways = max(len(self._options(number, pending, witness=len(pending) > 1)) for number in numbers)
        for places in TESTED_PLACES.get(count, ()):
            row_cost = sum(4 + self._names.count_prefixes(lang, places) for lang, _, _ in self._classes)
            if (len(CHAR_KINDS) * places) ** (count - 1) * ways * row_cost <= MAX_TEST_COST:
                return places
        return 0

    # --------------------------------------------------------------------------------------- tests
    def _with_tests(
        self, left: int, pending: OpenClauses, used: Used, tests: list[Test], end: Symbols
    ) -> int:
        """Returns the rule of `left` more members after those that passed the tests `used`.

        The last members are the witnesses.
        """
        key = (left, pending, used, end)
        if key in self._known:
            return self._known[key]
        rule = self._known[key] = self._rules.new()
        for number, (lang, _, _) in enumerate(self._classes):
            if (number, None) in used:
                continue
            failed = frozenset(test for which, test in used if which == number and test is not None)
            for lits, met in self._options(number, pending, witness=left <= len(pending)):
                if left > 1:
                    between = self._between(lits)
                    for test, after in self._choices(number, left, used, tests):
                        name = self._names.row(lang, _allowed(test, failed))
                        rest = self._with_tests(left - 1, pending - met, after, tests, end)
                        self._rules.add(rule, (QUOTE, *name, between, rest))
                elif not pending - met:
                    name = self._names.row(lang, _allowed(None, failed))
                    self._rules.add(rule, (QUOTE, *name, *self._value(lits), *end))
        return rule

    def _choices(
        self, number: int, left: int, used: Used, tests: list[Test]
    ) -> Iterator[tuple[Test | None, Used]]:
        """Yields the tests that a name of a class may pass, each with the tests used after it.

        None stands for no test, where no later name is of the class. Before the last name one class alone has
        later names.
        """
        others = frozenset(each for each in used if each[0] != number)
        if len(self._classes) > 1:
            yield None, others | {(number, None)}
        if left > 2 or all(test is None for _, test in others):
            yield from ((test, used | {(number, test)}) for test in tests if (number, test) not in used)

    def _between(self, lits: Lits) -> int:
        """Returns the rule of a value and the comma after it."""
        return self._rules.of((*self._value(lits), '","', "ws"))

    # ----------------------------------------------------------------------------------- ascending
    def _ascending(self, left: int, pending: OpenClauses, at: int, end: Symbols) -> int:
        """Returns the rule of `left` more members whose names begin with `INITIALS` from `at` on.

        Each name begins with a later one than the name before it.
        """
        key = ("ascending", left, pending, at, end)
        if key in self._known:
            return self._known[key]
        rule = self._known[key] = self._rules.new()
        if at == len(INITIALS):
            return rule
        for number, (lang, _, _) in enumerate(self._classes):
            name = self._names.row(lang, (INITIALS[at],))
            for lits, met in self._options(number, pending, witness=True):
                member: Symbols = (QUOTE, *name)
                if left > 1:
                    after = self._ascending(left - 1, pending - met, at + 1, end)
                    self._rules.add(rule, (*member, self._between(lits), after))
                elif not pending - met:
                    self._rules.add(rule, (*member, *self._value(lits), *end))
        self._rules.add(rule, (self._ascending(left, pending, at + 1, end),))
        return rule


@lru_cache(maxsize=4096)
def _allowed(passed: Test | None, failed: frozenset[Test]) -> tuple[Allowed, ...]:
    """Returns the allowed characters at the places of a name that passes one test and fails others."""
    tests = failed if passed is None else failed | {passed}
    out = [_ANYTHING] * (1 + max((place for place, _ in tests), default=-1))
    for place, kind in failed:
        chars, ended = CHAR_KINDS[kind]
        out[place] = (intersection(out[place][0], complement(chars)), out[place][1] and not ended)
    if passed is not None:
        chars, ended = CHAR_KINDS[passed[1]]
        out[passed[0]] = (intersection(out[passed[0]][0], chars), out[passed[0]][1] and ended)
    return tuple(out)
