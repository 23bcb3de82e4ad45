"""Objects as rules: an automaton over slots.

Members are written in order: the declared ones, then names that are only required, then any others. (Where
subschemas declare the same names in different orders, the order in which the document first declares them is
accepted as well.) Each named member is a slot that is filled or skipped; after the slots, members of the
remaining classes of names repeat. A state is (slot, clauses still without a witness, members so far as far as
the count matters). A clause that several members could meet takes one bit of the state, so `not`,
`dependentRequired` and alternatives of required names need no copies of the object.

A name class is the complement of all named members within a set of patterns, so a member is never written
twice under its declared name, escaped or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from b3node.grammar.constraints.keywords import negated
from b3node.grammar.constraints.literals import FALSE, Lits, all_of
from b3node.grammar.constraints.name_classes import NameClass, name_classes, slot_names, sort_key
from b3node.grammar.constraints.object_shape import (
    Clause,
    MemberWitness,
    NameSet,
    ObjectShape,
    names_required,
)
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.counts import exceeds, lowered
from b3node.grammar.emit import members
from b3node.grammar.emit.distinct_names import (
    MAX_DISTINCT_MEMBERS,
    DistinctMembers,
    NamePrefixes,
    OpenClauses,
    disjoint_pairs,
)
from b3node.grammar.gbnf.rules import Rules, Symbols, Times
from b3node.grammar.gbnf.strings import QUOTE, Strings, escaped, literal
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import Lang

MAX_FREE_CHOICES: Final = 3
"""Clauses that one member may or may not witness without a check which of them exclude each other."""
MAX_WITNESS_CELLS: Final = 96
"""Ways in which one member may meet clauses."""
MAX_COUNTED_MEMBERS: Final = 300
"""The largest `minProperties` and `maxProperties` next to named members or clauses."""

MAX_WITNESSES: Final = 3
"""Undeclared members of one object that may each have to be a witness."""
REPEATED_SLOTS: Final = 1
"""Slots by which a state moves on past the named slots once another member was written, if that counts."""

Demands = dict[int, list[Lits | None]]
"""By clause, the constraints with which a member of one name meets it.

None is a clause that is met if there is no such member.
"""


class ObjectState(NamedTuple):
    """State of the automaton of an object."""

    slot: int
    """The next slot."""
    pending: OpenClauses
    """The clauses without a witness."""
    distinct: int
    """The number of members that surely differ, up to its cap."""
    total: int
    """The number of all members, up to its cap."""


class ObjectWriter:
    """Writer of object shapes.

    Args:
        resolver: the constraints of the schema.
        rules: the rules that are added to.
        strings: the writer of names.
        value: returns the row of a constraint.
    """

    def __init__(
        self, resolver: SchemaResolver, rules: Rules, strings: Strings, value: Callable[[Lits], Symbols]
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._strings = strings
        self.value = value
        self.names = NamePrefixes(resolver.algebra, rules, strings)
        self._members: dict[tuple[str, Lits], Symbols] = {}

    def body(self, shape: ObjectShape) -> Symbols:
        """Returns the row after the opening brace.

        Raises:
            Inexact: there are too many classes of names, choices or counts, or distinct members cannot be
                expressed.
        """
        declared = slot_names(shape)
        rank = self._resolver.document.rank
        ranked = sorted(declared, key=lambda name: rank.get(name, len(rank)))
        body = _ObjectAutomaton(self._resolver, self._rules, self, shape, declared)
        rows = [body.row()]
        if ranked != declared:
            rows.append(
                _ObjectAutomaton(self._resolver, self._rules, self, shape, ranked, body.classes).row()
            )
        return rows[0] if len(rows) == 1 else (self._rules.of(*rows),)

    def member(self, name: str, lits: Lits) -> Symbols:
        """Returns the row of one member under its name."""
        key = (name, lits)
        if key not in self._members:
            self._members[key] = (literal('"' + escaped(name) + '":'), "ws", *self.value(lits))
        return self._members[key]

    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the row of one member under any name of a language."""
        return (*self._strings.value(lang), *self.valued(lits))

    def valued(self, lits: Lits) -> Symbols:
        """Returns the row after the name of a member."""
        return ('":"', "ws", *self.value(lits))

    def pair(self, first: Lits, second: Lits) -> Symbols:
        """Returns the row of two members under any two names that differ.

        That two words differ is context-free: at some index their letters do, or one goes on where the other
        ends. Letters are distinguished by their bits; letters beyond ASCII that share their higher bits are
        not.
        """
        between: Symbols = (*self.valued(first), '","', "ws", QUOTE)
        rows: list[Symbols] = []
        for one, other in disjoint_pairs():
            meet = self._rules.new()
            self._rules.add(meet, ("char", meet, "char"))
            self._rules.add(meet, (self._strings.char(one), "chars", *between))
            rows.append((meet, self._strings.char(other), "chars"))
        for start, end in (((self._rules.of(("char", "chars")),), (QUOTE,)), ((QUOTE,), ("char", "chars"))):
            meet = self._rules.new()
            self._rules.add(meet, ("char", meet, "char"))
            self._rules.add(meet, (*start, *between))
            rows.append((meet, *end))
        return (QUOTE, self._rules.of(*rows), *self.valued(second))


class _ObjectAutomaton:
    """Automaton of one shape with one order of names."""

    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        writer: ObjectWriter,
        shape: ObjectShape,
        names: list[str],
        classes: list[NameClass] | None = None,
    ) -> None:
        self._resolver = resolver
        self._algebra = resolver.algebra
        self._rules = rules
        self._writer = writer
        self._shape = shape
        self._clauses: list[Clause] = sorted(shape.clauses, key=_clause_key)
        self._names = names
        self._base = [resolver.member_lits(shape, name) for name in names]
        self._slot_demands = self._demands_on_slots(names)
        self._named_in = [frozenset(demands) for demands in self._slot_demands]
        self.classes = name_classes(resolver.algebra, shape, names) if classes is None else classes
        self._known_slot_options: dict[tuple[int, OpenClauses], list[tuple[Lits, OpenClauses]]] = {}
        self._count_caps = (0, 0)
        self._first: dict[ObjectState, int] = {}
        self._next: dict[ObjectState, int] = {}
        self._required = names_required(shape.clauses)
        self._class_demands = [self._demands_on_class(inside) for _, _, inside in self.classes]
        self._unmeetable = self._find_unmeetable()
        all_clauses = frozenset(range(len(self._clauses)))
        self._always_met = frozenset[int]().union(
            *(
                self._met_by_any(base, all_clauses, demands)
                for (_, base, _), demands in zip(self.classes, self._class_demands, strict=True)
            )
        )
        self._known_class_options: dict[tuple[int, OpenClauses, bool], list[tuple[Lits, OpenClauses]]] = {}
        self._distinct = DistinctMembers(
            rules, writer.names, self.classes, self._class_options, writer.valued, writer.pair
        )

    # -------------------------------------------------------------------------------------- counts
    def _find_count_caps(self) -> tuple[int, int]:
        """Returns the caps of the two counts: of members that surely differ, and of all members.

        A cap is 0 if the count does not matter.
        """
        low, high = self._shape.low, self._shape.high
        if not self.classes and not exceeds(len(self._names), high):
            high = None
        if self.classes and low > len(self._names) + MAX_DISTINCT_MEMBERS:
            raise Inexact("", "undeclared members cannot be told apart, so minProperties cannot count them")
        if max(low, high or 0) > MAX_COUNTED_MEMBERS:
            raise Inexact("", f"more than {MAX_COUNTED_MEMBERS} members cannot be counted here")
        return low, 0 if high is None else high + 1

    def _counts(self, state: ObjectState, distinct: int = 1, total: int = 1) -> tuple[int, int]:
        """Returns the two counts after more members."""
        return min(state.distinct + distinct, self._count_caps[0]), min(
            state.total + total, self._count_caps[1]
        )

    # -------------------------------------------------------------------------------------- states
    def row(self) -> Symbols:
        """Returns the row of the whole."""
        if (row := self._as_repetition()) is not None:
            return row
        if (row := self._as_trie()) is not None:
            return row
        self._count_caps = self._find_count_caps()
        start = ObjectState(0, frozenset(range(len(self._clauses))), 0, 0)
        todo = [(start, True)]
        rule = self._first[start] = self._rules.new()
        while todo:
            state, is_first = todo.pop()
            self._fill(state, todo, first=is_first)
        return (rule,)

    def _as_repetition(self) -> Symbols | None:
        """Returns members of one class alone as a repetition, however large the count.

        None means that the shape has other members, clauses, or more than one required member.
        """
        if self._names or self._clauses or len(self.classes) != 1 or self._shape.low > 1:
            return None
        lang, lits, _ = self.classes[0]
        member = self._writer.other(lang, lits)
        more = self._rules.of(('","', "ws", *member))
        low, high = self._shape.low, self._shape.high
        if high == 0:
            return ('"}"',)
        some = self._rules.of((*member, Times(more, 0, lowered(high)), '"}"'))
        return (some,) if low else (self._rules.of(('"}"',), (some,)),)

    def _as_trie(self) -> Symbols | None:
        """Returns the row of many members that no clause or count relates; None for other shapes."""
        shape, size = self._shape, len(self._names)
        if size < members.FROM or len(self._required) < len(self._clauses) or shape.low > 0:
            return None
        if shape.high is not None and (self.classes or shape.high < size):
            return None
        others = [self._writer.other(lang, lits) for lang, lits, _ in self.classes]
        named = [
            members.Member(name, None if lits == FALSE else self._writer.value(lits), name in self._required)
            for name, lits in zip(self._names, self._base, strict=True)
        ]
        return members.Members(self._rules, named, others).row()

    def _rule(self, state: ObjectState, todo: list[tuple[ObjectState, bool]], *, first: bool) -> int:
        """Returns the rule of a state; a new one is added to `todo`."""
        known = self._first if first else self._next
        if state not in known:
            known[state] = self._rules.new()
            todo.append((state, first))
        return known[state]

    def _fill(self, state: ObjectState, todo: list[tuple[ObjectState, bool]], *, first: bool) -> None:
        """Adds the rows of a state to its rule."""
        rule = (self._first if first else self._next)[state]
        comma: Symbols = () if first else ('","', "ws")
        for member, after in self._members(state):
            if self._within_high(after) and self._can_finish(after):
                self._rules.add(rule, (*comma, *member, self._rule(after, todo, first=False)))
        if state.slot < len(self._names):
            skipped = self._skip(state.slot, state.pending)
            if skipped is not None:
                after = ObjectState(state.slot + 1, skipped, state.distinct, state.total)
                if self._can_finish(after):
                    self._rules.add(rule, (self._rule(after, todo, first=first),))
            return
        for row in self._distinct_members(state, todo):
            self._rules.add(rule, (*comma, *row))
        if not state.pending and state.distinct >= self._shape.low:
            self._rules.add(rule, ('"}"',))

    def _members(self, state: ObjectState) -> Iterator[tuple[Symbols, ObjectState]]:
        """Yields the members that may be written in a state, each with the state after it."""
        slot, size = state.slot, len(self._names)
        if slot < size:
            counts = self._counts(state)
            for lits, met in self._slot_options(slot, state.pending & self._named_in[slot]):
                filled = ObjectState(slot + 1, state.pending - met, *counts)
                yield self._writer.member(self._names[slot], lits), filled
        elif self._missing(state) < 2 or state.pending or slot > size:
            # Other names may repeat, so only the first of them surely adds a member.
            again = size + REPEATED_SLOTS if self._shape.low > 1 else slot
            counts = self._counts(state, distinct=slot == size)
            for (lang, base, _), demands in zip(self.classes, self._class_demands, strict=True):
                after = ObjectState(
                    again, state.pending - self._met_by_any(base, state.pending, demands), *counts
                )
                yield self._writer.other(lang, base), after

    def _missing(self, state: ObjectState) -> int:
        """Returns the number of undeclared members that the count still demands.

        Those already written do not count, because they may have any names.
        """
        return self._shape.low - state.distinct + (state.slot > len(self._names))

    def _distinct_members(
        self, state: ObjectState, todo: list[tuple[ObjectState, bool]]
    ) -> Iterator[Symbols]:
        """Yields the rows of other members that differ.

        They are as many as the count demands, or the missing witnesses at the end of the object.
        """
        if not self.classes:
            return
        missing, pending = self._missing(state), state.pending
        if missing > 1 and not pending:
            slot = len(self._names) + REPEATED_SLOTS
            after = ObjectState(slot, pending, *self._counts(state, missing, missing))
            if self._within_high(after):
                yield (self._distinct.rule(missing, pending, (self._rule(after, todo, first=False),)),)
        hard = pending - self._always_met  # any member of some class meets the others
        if hard or (pending and missing > 1):
            least = max(missing, 1)
            for count in range(least, max(least, min(len(hard), MAX_WITNESSES)) + 1):
                if self._within_high(ObjectState(state.slot, pending, *self._counts(state, count, count))):
                    yield (self._distinct.rule(count, pending, ('"}"',)),)

    def _can_finish(self, state: ObjectState) -> bool:
        """Returns True if a later member can still meet every open clause."""
        return state.pending.isdisjoint(self._unmeetable[min(state.slot, len(self._names))])

    def _find_unmeetable(self) -> list[OpenClauses]:
        """Returns, for each slot and after them, the clauses that no later member can meet."""
        clauses = range(len(self._clauses))
        out = [
            frozenset(
                i for i in clauses if not any(_demand_options(demands, i) for demands in self._class_demands)
            )
        ]
        for named in reversed(self._named_in):
            out.append(out[-1] - named)
        return out[::-1]

    def _within_high(self, state: ObjectState) -> bool:
        """Returns True if the members so far are not too many."""
        return not self._count_caps[1] or not exceeds(state.total, self._shape.high)

    def _class_options(
        self, number: int, pending: OpenClauses, *, witness: bool
    ) -> list[tuple[Lits, OpenClauses]]:
        """Returns the ways to write a member of a class: its constraint, and the clauses that it meets."""
        key = (number, pending, witness)
        if key not in self._known_class_options:
            base, demands = self.classes[number][1], self._class_demands[number]
            free = [(base, self._met_by_any(base, pending, demands))]
            self._known_class_options[key] = (
                self._witness_options(base, pending, demands) if witness else free
            )
        return self._known_class_options[key]

    def _slot_options(self, slot: int, pending: OpenClauses) -> list[tuple[Lits, OpenClauses]]:
        """Returns the ways in which the member of a slot may witness open clauses about its name."""
        key = (slot, pending)
        if key not in self._known_slot_options:
            self._known_slot_options[key] = self._witness_options(
                self._base[slot], pending, self._slot_demands[slot]
            )
        return self._known_slot_options[key]

    def _demands_on_slots(self, names: list[str]) -> list[Demands]:
        """Returns the demands of the clauses on each slot's name."""
        out: dict[str, Demands] = {name: {} for name in names}
        for i, clause in enumerate(self._clauses):
            for witness in sorted(clause, key=_witness_key):
                key = witness.key
                of = (key,) if isinstance(key, str) else [n for n in names if key.covers(self._algebra, n)]
                for name in of:
                    out[name].setdefault(i, []).append(witness.lits)
        return list(out.values())

    def _demands_on_class(self, inside: list[NameSet]) -> Demands:
        """Returns the demands of the clauses on the names of a class."""
        out: Demands = {}
        for i, clause in enumerate(self._clauses):
            for witness in sorted(clause, key=_witness_key):
                if witness.key in inside:
                    out.setdefault(i, []).append(witness.lits)
        return out

    def _met_by_any(self, base: Lits, pending: OpenClauses, demands: Demands) -> OpenClauses:
        """Returns the open clauses that any member with the constraint `base` meets."""
        return frozenset(
            i
            for i in pending.intersection(demands)
            if any(lits <= base for lits in _demand_options(demands, i))
        )

    def _witness_options(
        self, base: Lits, pending: OpenClauses, demands: Demands
    ) -> list[tuple[Lits, OpenClauses]]:
        """Returns the ways in which a member may witness open clauses, as `_class_options`."""
        if base == FALSE:
            return []
        free = self._met_by_any(base, pending, demands)
        chosen = [(i, lits) for i in sorted(pending - free) for lits in _demand_options(demands, i)]
        return [(lits, free | met) for lits, met in self._partition(base, chosen)]

    def _partition(self, base: Lits, chosen: list[tuple[int, Lits]]) -> list[tuple[Lits, OpenClauses]]:
        """Returns constraints on one member that together cover all of `base`.

        Each comes with the clauses that it meets. With a few clauses: every choice of them, and the choice of
        none demands nothing more. With many the choices must exclude each other, or there were too many;
        those that no value meets are dropped as they arise.
        """
        cells: list[tuple[Lits, OpenClauses]] = [(base, frozenset())]
        is_small = len(chosen) <= MAX_FREE_CHOICES
        for clause, lits in chosen:
            fresh = []
            for cell, met in cells:
                with_lits = all_of(cell, lits)
                if with_lits != FALSE and (is_small or not self._resolver.is_void(with_lits, 2)):
                    fresh.append((with_lits, met | {clause}))
                without_lits = cell if is_small or len(lits) > 1 else all_of(cell, negated(lits))
                if without_lits != FALSE and (is_small or not self._resolver.is_void(without_lits, 2)):
                    fresh.append((without_lits, met))
            cells = list(dict.fromkeys(fresh))
            if len(cells) > MAX_WITNESS_CELLS:
                raise Inexact("", "one member could settle too many alternatives")
        return cells

    def _skip(self, slot: int, pending: OpenClauses) -> OpenClauses | None:
        """Returns the open clauses if a slot is left empty, or None if it must be filled."""
        if self._names[slot] in self._required:
            return None
        demands = self._slot_demands[slot]
        return pending.difference([i for i in pending.intersection(demands) if None in demands[i]])


def _demand_options(demands: Demands, clause: int) -> list[Lits]:
    """Returns the constraints with each of which a member meets a clause."""
    return [lits for lits in demands.get(clause, ()) if lits is not None]


def _witness_key(witness: MemberWitness) -> list[int]:
    """Returns the key that orders the witnesses of a clause."""
    return sorted(witness.lits or ())


def _clause_key(clause: Clause) -> list[tuple[str, list[int]]]:
    """Returns the key that orders clauses."""
    return sorted((sort_key(witness.key), _witness_key(witness)) for witness in clause)
