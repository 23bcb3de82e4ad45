"""Objects as rules: a slot automaton.

Members are written in order: the named ones as declared, then names that are only required, then any others.
(Where subschemas declare the same names in different orders, the order in which the document first declares
them is taken as well.) Each named member is a slot that is filled or skipped; after the slots, members of the remaining
classes of names repeat. A state is (slot, clauses still without a witness, members so far as far as the count
matters); a clause that several members could satisfy is followed by one bit, so `not`, `dependentRequired`
and alternatives of required names need no copies of the object.

A name class is the complement of all named members within a set of patterns, so a member is never written
twice under its declared name, escaped or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from b3node.grammar import automaton
from b3node.grammar.keywords import negated
from b3node.grammar.obligations import Obligations
from b3node.grammar.refusal import Inexact
from b3node.grammar.regular import ALL, VOID, Lang, TooLarge
from b3node.grammar.rules import Row, Rules, Times
from b3node.grammar.shapes import FALSE, TRUE, Clause, Keys, Lits, Object, all_of
from b3node.grammar.strings import Strings, escaped, literal

MAX_CLASSES: Final = 64
"""Classes of names that the patterns of one object may cut the other names into."""
MAX_CHOICES: Final = 3
"""Clauses that one member may or may not witness without looking at which of them exclude each other."""
MAX_CELLS: Final = 96
"""Ways in which one member may settle clauses."""
MAX_COUNTED: Final = 300
"""`minProperties` and `maxProperties` beside named members or clauses."""

Pending = frozenset[int]
State = tuple[int, Pending, int]


class Objects:
    """The writer of object shapes.

    Args:
        value: gives the rule of an obligation.
    """

    def __init__(
        self, obligations: Obligations, rules: Rules, strings: Strings, value: Callable[[Lits], Row]
    ) -> None:
        self._obligations = obligations
        self._rules = rules
        self._strings = strings
        self._value = value
        self._keys: dict[Lang, Row] = {}

    def body(self, shape: Object) -> Row:
        """What follows the opening brace.

        Raises:
            Inexact: too many classes of names, choices or counts; or members would have to be told apart.
        """
        declared = names_of(shape)
        rank = self._obligations.document.rank
        ranked = sorted(declared, key=lambda name: rank.get(name, len(rank)))
        rows = [_Body(self._obligations, self._rules, self, shape, declared).row()]
        if ranked != declared:
            rows.append(_Body(self._obligations, self._rules, self, shape, ranked).row())
        return rows[0] if len(rows) == 1 else (self._rules.of(*rows),)

    def member(self, name: str, lits: Lits) -> Row:
        """One member under its name."""
        return (literal('"' + escaped(name) + '":'), "ws", *self._value(lits))

    def other(self, lang: Lang, lits: Lits) -> Row:
        """One member under any name of a language."""
        if lang not in self._keys:
            self._keys[lang] = self._strings.value(lang)
        return (*self._keys[lang], '":"', "ws", *self._value(lits))


class _Body:
    """The automaton of one shape."""

    def __init__(
        self, obligations: Obligations, rules: Rules, writer: Objects, shape: Object, names: list[str]
    ) -> None:
        self._obligations = obligations
        self._algebra = obligations.algebra
        self._rules = rules
        self._writer = writer
        self._shape = shape
        self._clauses: list[Clause] = sorted(shape.clauses, key=_order)
        self._names = names
        self._base = [obligations.at(shape, name) for name in self._names]
        self._classes = list(self._name_classes())
        self._cap = self._counted()
        self._first: dict[State, int] = {}
        self._next: dict[State, int] = {}
        self._required = {
            w.key for c in self._clauses if len(c) == 1 for w in c if w.lits == TRUE and isinstance(w.key, str)
        }

    # -------------------------------------------------------------------------------- name classes
    def _name_classes(self) -> Iterator[tuple[Lang, Lits, list[Keys]]]:
        """The classes of other names: language, obligation of their values, the classes of the shape they are in."""
        witnesses = {w.key for clause in self._clauses for w in clause if isinstance(w.key, Keys)}
        kinds = [keys for keys, _ in self._shape.wide] + sorted(witnesses, key=repr)
        langs = list(dict.fromkeys(lang for keys in kinds for lang in sorted(keys.langs)))
        named = self._algebra.negate(self._algebra.table(automaton.words(self._names))) if self._names else ALL
        for within, lang in self._cells(langs, named):
            inside = [keys for keys in kinds if any(each in within for each in keys.langs) != keys.others]
            lits = all_of(*(lits for keys, lits in self._shape.wide if keys in inside))
            if lits != FALSE:
                yield lang, lits, inside

    def _cells(self, langs: list[Lang], named: Lang) -> list[tuple[frozenset[Lang], Lang]]:
        """Every combination of languages that some other name is in, with the names of exactly that combination."""
        cells: list[tuple[frozenset[Lang], Lang]] = [(frozenset(), named)]
        for lang in langs:
            fresh = []
            for within, cell in cells:
                inside = self._algebra.both([cell, lang])
                outside = self._algebra.both([cell, self._algebra.negate(lang)])
                fresh += [(within | {lang}, inside)] if self._is_some(inside) else []
                fresh += [(within, outside)] if self._is_some(outside) else []
            cells = fresh
            if len(cells) > MAX_CLASSES:
                raise Inexact("", "the patterns of member names overlap in too many ways")
        return cells

    def _is_some(self, lang: Lang) -> bool:
        try:
            return lang != VOID and not automaton.is_void(self._algebra, lang)
        except TooLarge:
            raise Inexact("", "the patterns of member names need too many states") from None

    # -------------------------------------------------------------------------------------- counts
    def _counted(self) -> int:
        """Up to where members are counted: 0 when no count matters."""
        low, high = self._shape.low, self._shape.high
        if not self._classes and high >= len(self._names):
            high = -1
        if low <= 1 and high < 0:
            return low
        cap = max(low, high + 1 if high >= 0 else 0)
        if cap > MAX_COUNTED:
            raise Inexact("", f"more than {MAX_COUNTED} members cannot be counted here")
        return cap

    # -------------------------------------------------------------------------------------- states
    def row(self) -> Row:
        if (row := self._repeated()) is not None:
            return row
        start: State = (0, frozenset(range(len(self._clauses))), 0)
        return (self._state(start, first=True),)

    def _repeated(self) -> Row | None:
        """Members of one class alone, counted: a repetition, however large the count."""
        if self._names or self._clauses or len(self._classes) != 1 or self._shape.high < MAX_COUNTED:
            return None
        lang, lits, _ = self._classes[0]
        member = self._writer.other(lang, lits)
        more = self._rules.of(('","', "ws", *member))
        low, high = self._shape.low, self._shape.high
        some = self._rules.of((*member, Times(more, max(low - 1, 0), high - 1), '"}"'))
        return (some,) if low else (self._rules.of(('"}"',), (some,)),)

    def _state(self, state: State, *, first: bool) -> int:
        known = self._first if first else self._next
        if state not in known:
            todo = [(state, first)]
            known[state] = self._rules.new()
            while todo:
                self._fill(*todo.pop(), todo)
        return known[state]

    def _rule(self, state: State, todo: list[tuple[State, bool]], *, first: bool) -> int:
        known = self._first if first else self._next
        if state not in known:
            known[state] = self._rules.new()
            todo.append((state, first))
        return known[state]

    def _fill(self, state: State, first: bool, todo: list[tuple[State, bool]]) -> None:
        rule = (self._first if first else self._next)[state]
        slot, pending, count = state
        comma: Row = () if first else ('","', "ws")
        for member, left in self._members(slot, pending):
            after = (min(slot + 1, len(self._names)), left, min(count + 1, self._cap))
            if self._shape.high < 0 or self._cap <= self._shape.high or after[2] <= self._shape.high:
                self._rules.add(rule, (*comma, *member, self._rule(after, todo, first=False)))
        if slot < len(self._names):
            skipped = self._skipped(slot, pending)
            if skipped is not None:
                self._rules.add(rule, (self._rule((slot + 1, skipped, count), todo, first=first),))
        elif not pending and count >= min(self._shape.low, self._cap):
            self._rules.add(rule, ('"}"',))

    def _members(self, slot: int, pending: Pending) -> Iterator[tuple[Row, Pending]]:
        """The members that may be written in a state, each with the clauses still open after it."""
        if slot < len(self._names):
            name = self._names[slot]
            for lits, met in self._claims(self._base[slot], pending, lambda key: self._is_of(name, key)):
                yield self._writer.member(name, lits), pending - met
            return
        for lang, base, inside in self._classes:
            for lits, met in self._claims(base, pending, lambda key, inside=inside: key in inside):
                yield self._writer.other(lang, lits), pending - met

    def _is_of(self, name: str, key: str | Keys) -> bool:
        return key == name if isinstance(key, str) else key.covers(self._algebra, name)

    def _claims(
        self, base: Lits, pending: Pending, here: Callable[[str | Keys], bool]
    ) -> Iterator[tuple[Lits, Pending]]:
        """The ways in which a member may witness open clauses: its obligation, and the clauses it meets."""
        if base == FALSE:
            return
        free, chosen = set(), []
        for i in sorted(pending):
            offers = [w.lits for w in self._clauses[i] if w.lits is not None and here(w.key)]
            if any(lits <= base for lits in offers):
                free.add(i)
            else:
                chosen += [(i, lits) for lits in offers]
        for lits, met in self._cells_of(base, chosen):
            yield lits, frozenset(free | met)

    def _cells_of(self, base: Lits, chosen: list[tuple[int, Lits]]) -> list[tuple[Lits, Pending]]:
        """Obligations of one member that together cover all of `base`, each with the clauses it settles.

        A few clauses: every choice of them, and the choice of none asks nothing more. Many: the choices must
        exclude each other, or there were too many; those that no value meets are dropped as they arise.
        """
        cells: list[tuple[Lits, Pending]] = [(base, frozenset())]
        few = len(chosen) <= MAX_CHOICES
        for clause, lits in chosen:
            fresh = []
            for cell, met in cells:
                claimed = all_of(cell, lits)
                if claimed != FALSE and (few or not self._obligations.void(claimed, 2)):
                    fresh.append((claimed, met | {clause}))
                left = cell if few or len(lits) > 1 else all_of(cell, negated(lits))
                if left != FALSE and (few or not self._obligations.void(left, 2)):
                    fresh.append((left, met))
            cells = list(dict.fromkeys(fresh))
            if len(cells) > MAX_CELLS:
                raise Inexact("", "one member could settle too many alternatives")
        return cells

    def _skipped(self, slot: int, pending: Pending) -> Pending | None:
        """The open clauses when a slot is left empty; None when it must be filled."""
        name = self._names[slot]
        if name in self._required:
            return None
        met = {i for i in pending if any(w.lits is None and w.key == name for w in self._clauses[i])}
        left = pending - met
        return left if all(self._can_meet(i, slot + 1) for i in left) else None

    def _can_meet(self, clause: int, slot: int) -> bool:
        """Whether a witness of a clause may still come at `slot` or later."""
        later = self._names[slot:]
        return any(
            w.key in later if isinstance(w.key, str) else True for w in self._clauses[clause]
        )


def names_of(shape: Object) -> list[str]:
    """The names with slots: those declared, in order, then those only required, then others that matter."""
    mentioned = {w.key for clause in shape.clauses for w in clause if isinstance(w.key, str)}
    out = dict.fromkeys(name for name, _ in shape.named)
    out |= dict.fromkeys(name for name in shape.order if name in mentioned)
    out |= dict.fromkeys(sorted(mentioned))
    out |= dict.fromkeys(sorted(name for keys, _ in shape.wide for name in keys.names))
    return list(out)


def _order(clause: Clause) -> list[tuple[str, str]]:
    return sorted((repr(w.key), repr(sorted(w.lits or ()))) for w in clause)

