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
from b3node.grammar.emit import members
from b3node.grammar.emit.distinct_names import MOST, Names, Runs, apart
from b3node.grammar.gbnf.rules import Row, Rules, Times
from b3node.grammar.gbnf.strings import QUOTE, Strings, escaped, literal
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages.algebra import Lang

MAX_CHOICES: Final = 3
"""Clauses that one member may or may not witness without looking at which of them exclude each other."""
MAX_CELLS: Final = 96
"""Ways in which one member may settle clauses."""
MAX_COUNTED: Final = 300
"""`minProperties` and `maxProperties` beside named members or clauses."""

MAX_WITNESSES: Final = 3
"""Undeclared members of one object that may each have to be a witness."""
REPEATED: Final = 1
"""After the named slots, where it matters: how many slots further a state is once another member was written."""

Pending = frozenset[int]
Told = dict[int, list[Lits | None]]
"""By clause, the obligations with which members of one name meet it; None where it is met without such a member."""


class State(NamedTuple):
    """The next slot, the clauses without a witness, the members that surely differ, and all members."""

    slot: int
    pending: Pending
    distinct: int
    total: int


class Objects:
    """The writer of object shapes.

    Args:
        value: gives the rule of an obligation.
    """

    def __init__(
        self, resolver: SchemaResolver, rules: Rules, strings: Strings, value: Callable[[Lits], Row]
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._strings = strings
        self.value = value
        self.names = Names(resolver.algebra, rules, strings)
        self._members: dict[tuple[str, Lits], Row] = {}

    def body(self, shape: ObjectShape) -> Row:
        """What follows the opening brace.

        Raises:
            Inexact: too many classes of names, choices or counts; or members would have to be told apart.
        """
        declared = slot_names(shape)
        rank = self._resolver.document.rank
        ranked = sorted(declared, key=lambda name: rank.get(name, len(rank)))
        body = _Body(self._resolver, self._rules, self, shape, declared)
        rows = [body.row()]
        if ranked != declared:
            rows.append(_Body(self._resolver, self._rules, self, shape, ranked, body.classes).row())
        return rows[0] if len(rows) == 1 else (self._rules.of(*rows),)

    def member(self, name: str, lits: Lits) -> Row:
        """One member under its name."""
        key = (name, lits)
        if key not in self._members:
            self._members[key] = (literal('"' + escaped(name) + '":'), "ws", *self.value(lits))
        return self._members[key]

    def other(self, lang: Lang, lits: Lits) -> Row:
        """One member under any name of a language."""
        return (*self._strings.value(lang), *self.valued(lits))

    def valued(self, lits: Lits) -> Row:
        """What follows the name of a member."""
        return ('":"', "ws", *self.value(lits))

    def pair(self, first: Lits, second: Lits) -> Row:
        """Two members under any two names that differ.

        That two words differ is context-free: at some place their letters do, or one goes on where the other ends.
        Letters are told apart by their bits; letters beyond ASCII that share their higher bits are not.
        """
        between: Row = (*self.valued(first), '","', "ws", QUOTE)
        rows: list[Row] = []
        for one, other in apart():
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


class _Body:
    """The automaton of one shape."""

    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        writer: Objects,
        shape: ObjectShape,
        names: list[str],
        classes: list[NameClass] | None = None,
    ) -> None:
        self._resolver = resolver
        self._algebra = resolver.algebra
        self._rules = rules
        self._writer = writer
        self._shape = shape
        self._clauses: list[Clause] = sorted(shape.clauses, key=_order)
        self._names = names
        self._base = [resolver.member_lits(shape, name) for name in names]
        self._told = self._witnesses(names)
        self._named_in = [frozenset(told) for told in self._told]
        self.classes = name_classes(resolver.algebra, shape, names) if classes is None else classes
        self._settled: dict[tuple[int, Pending], list[tuple[Lits, Pending]]] = {}
        self._cap = (0, 0)
        self._first: dict[State, int] = {}
        self._next: dict[State, int] = {}
        self._required = names_required(shape.clauses)
        self._told_of = [self._among(inside) for _, _, inside in self.classes]
        self._lost = self._losses()
        every = frozenset(range(len(self._clauses)))
        self._freed = frozenset[int]().union(
            *(
                self._free(base, every, told)
                for (_, base, _), told in zip(self.classes, self._told_of, strict=True)
            )
        )
        self._claimed: dict[tuple[int, Pending, bool], list[tuple[Lits, Pending]]] = {}
        self._others = Runs(rules, writer.names, self.classes, self._other_claims, writer.valued, writer.pair)

    # -------------------------------------------------------------------------------------- counts
    def _counted(self) -> tuple[int, int]:
        """Up to where members are counted: those that surely differ, and all; 0 when that does not matter."""
        low, high = self._shape.low, self._shape.high
        if not self.classes and high >= len(self._names):
            high = -1
        if self.classes and low > len(self._names) + MOST:
            raise Inexact("", "undeclared members cannot be told apart, so minProperties cannot count them")
        if max(low, high) > MAX_COUNTED:
            raise Inexact("", f"more than {MAX_COUNTED} members cannot be counted here")
        return low, high + 1

    def _counts(self, state: State, distinct: int = 1, total: int = 1) -> tuple[int, int]:
        """The counts after more members."""
        return min(state.distinct + distinct, self._cap[0]), min(state.total + total, self._cap[1])

    # -------------------------------------------------------------------------------------- states
    def row(self) -> Row:
        """The rule of the whole."""
        if (row := self._repeated()) is not None:
            return row
        if (row := self._many()) is not None:
            return row
        self._cap = self._counted()
        start = State(0, frozenset(range(len(self._clauses))), 0, 0)
        todo = [(start, True)]
        rule = self._first[start] = self._rules.new()
        while todo:
            state, is_first = todo.pop()
            self._fill(state, todo, first=is_first)
        return (rule,)

    def _repeated(self) -> Row | None:
        """Members of one class alone, counted: a repetition, however large the count."""
        if self._names or self._clauses or len(self.classes) != 1 or self._shape.low > 1:
            return None
        lang, lits, _ = self.classes[0]
        member = self._writer.other(lang, lits)
        more = self._rules.of(('","', "ws", *member))
        low, high = self._shape.low, self._shape.high
        if high == 0:
            return ('"}"',)
        some = self._rules.of((*member, Times(more, 0, high - 1 if high > 0 else -1), '"}"'))
        return (some,) if low else (self._rules.of(('"}"',), (some,)),)

    def _many(self) -> Row | None:
        """Many members that no clause or count ties together."""
        shape, size = self._shape, len(self._names)
        if size < members.FROM or len(self._required) < len(self._clauses) or shape.low > 0:
            return None
        if shape.high >= 0 and (self.classes or shape.high < size):
            return None
        others = [self._writer.other(lang, lits) for lang, lits, _ in self.classes]
        named = [
            members.Member(name, None if lits == FALSE else self._writer.value(lits), name in self._required)
            for name, lits in zip(self._names, self._base, strict=True)
        ]
        return members.Members(self._rules, named, others).row()

    def _rule(self, state: State, todo: list[tuple[State, bool]], *, first: bool) -> int:
        known = self._first if first else self._next
        if state not in known:
            known[state] = self._rules.new()
            todo.append((state, first))
        return known[state]

    def _fill(self, state: State, todo: list[tuple[State, bool]], *, first: bool) -> None:
        rule = (self._first if first else self._next)[state]
        comma: Row = () if first else ('","', "ws")
        for member, after in self._members(state):
            if self._fits(after) and self._has_hope(after):
                self._rules.add(rule, (*comma, *member, self._rule(after, todo, first=False)))
        if state.slot < len(self._names):
            skipped = self._skipped(state.slot, state.pending)
            if skipped is not None:
                after = State(state.slot + 1, skipped, state.distinct, state.total)
                if self._has_hope(after):
                    self._rules.add(rule, (self._rule(after, todo, first=first),))
            return
        for row in self._runs(state, todo):
            self._rules.add(rule, (*comma, *row))
        if not state.pending and state.distinct >= self._shape.low:
            self._rules.add(rule, ('"}"',))

    def _members(self, state: State) -> Iterator[tuple[Row, State]]:
        """The members that may be written in a state, each with the state after it."""
        slot, size = state.slot, len(self._names)
        if slot < size:
            counts = self._counts(state)
            for lits, met in self._slot_claims(slot, state.pending & self._named_in[slot]):
                filled = State(slot + 1, state.pending - met, *counts)
                yield self._writer.member(self._names[slot], lits), filled
        elif self._needed(state) < 2 or state.pending or slot > size:
            # Other names may repeat: only the first of them surely adds a member.
            again = size + REPEATED if self._shape.low > 1 else slot
            counts = self._counts(state, distinct=slot == size)
            for (lang, base, _), told in zip(self.classes, self._told_of, strict=True):
                after = State(again, state.pending - self._free(base, state.pending, told), *counts)
                yield self._writer.other(lang, base), after

    def _needed(self, state: State) -> int:
        """How many undeclared members the count still asks for, those that came already being of any names."""
        return self._shape.low - state.distinct + (state.slot > len(self._names))

    def _runs(self, state: State, todo: list[tuple[State, bool]]) -> Iterator[Row]:
        """Other members that differ: as many as are asked for, or last the witnesses that are missing."""
        if not self.classes:
            return
        needed, pending = self._needed(state), state.pending
        if needed > 1 and not pending:
            slot = len(self._names) + REPEATED
            after = State(slot, pending, *self._counts(state, needed, needed))
            if self._fits(after):
                yield (self._others.rule(needed, pending, (self._rule(after, todo, first=False),)),)
        hard = pending - self._freed  # others are met by any member of some class
        if hard or (pending and needed > 1):
            least = max(needed, 1)
            for count in range(least, max(least, min(len(hard), MAX_WITNESSES)) + 1):
                if self._fits(State(state.slot, pending, *self._counts(state, count, count))):
                    yield (self._others.rule(count, pending, ('"}"',)),)

    def _has_hope(self, state: State) -> bool:
        """Whether every open clause may still be met by a member to come."""
        return state.pending.isdisjoint(self._lost[min(state.slot, len(self._names))])

    def _losses(self) -> list[Pending]:
        """For each slot, and after them, the clauses that no later member can meet."""
        clauses = range(len(self._clauses))
        out = [frozenset(i for i in clauses if not any(_offers(told, i) for told in self._told_of))]
        for named in reversed(self._named_in):
            out.append(out[-1] - named)
        return out[::-1]

    def _fits(self, state: State) -> bool:
        """Whether the members so far are not too many."""
        return self._shape.high < 0 or not self._cap[1] or state.total <= self._shape.high

    def _other_claims(self, number: int, pending: Pending, *, witness: bool) -> list[tuple[Lits, Pending]]:
        """The obligations that a member of a class may be written with, each with the clauses it meets."""
        key = (number, pending, witness)
        if key not in self._claimed:
            base, told = self.classes[number][1], self._told_of[number]
            free = [(base, self._free(base, pending, told))]
            self._claimed[key] = self._claims(base, pending, told) if witness else free
        return self._claimed[key]

    def _slot_claims(self, slot: int, pending: Pending) -> list[tuple[Lits, Pending]]:
        """The ways in which the member of a slot may witness those of the open clauses that speak of it."""
        key = (slot, pending)
        if key not in self._settled:
            self._settled[key] = self._claims(self._base[slot], pending, self._told[slot])
        return self._settled[key]

    def _witnesses(self, names: list[str]) -> list[Told]:
        """What the clauses say of each slot's name."""
        out: dict[str, Told] = {name: {} for name in names}
        for i, clause in enumerate(self._clauses):
            for witness in sorted(clause, key=_strictness):
                key = witness.key
                of = (key,) if isinstance(key, str) else [n for n in names if key.covers(self._algebra, n)]
                for name in of:
                    out[name].setdefault(i, []).append(witness.lits)
        return list(out.values())

    def _among(self, inside: list[NameSet]) -> Told:
        """What the clauses say of the names of a class."""
        out: Told = {}
        for i, clause in enumerate(self._clauses):
            for witness in sorted(clause, key=_strictness):
                if witness.key in inside:
                    out.setdefault(i, []).append(witness.lits)
        return out

    def _free(self, base: Lits, pending: Pending, told: Told) -> Pending:
        """The open clauses that any member with the obligation `base` meets."""
        return frozenset(
            i for i in pending.intersection(told) if any(lits <= base for lits in _offers(told, i))
        )

    def _claims(self, base: Lits, pending: Pending, told: Told) -> list[tuple[Lits, Pending]]:
        """The ways in which a member may witness open clauses: its obligation, and the clauses it meets."""
        if base == FALSE:
            return []
        free = self._free(base, pending, told)
        chosen = [(i, lits) for i in sorted(pending - free) for lits in _offers(told, i)]
        return [(lits, free | met) for lits, met in self._cells_of(base, chosen)]

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
                if claimed != FALSE and (few or not self._resolver.is_void(claimed, 2)):
                    fresh.append((claimed, met | {clause}))
                left = cell if few or len(lits) > 1 else all_of(cell, negated(lits))
                if left != FALSE and (few or not self._resolver.is_void(left, 2)):
                    fresh.append((left, met))
            cells = list(dict.fromkeys(fresh))
            if len(cells) > MAX_CELLS:
                raise Inexact("", "one member could settle too many alternatives")
        return cells

    def _skipped(self, slot: int, pending: Pending) -> Pending | None:
        """The open clauses when a slot is left empty; None when it must be filled."""
        if self._names[slot] in self._required:
            return None
        told = self._told[slot]
        return pending.difference([i for i in pending.intersection(told) if None in told[i]])


def _offers(told: Told, clause: int) -> list[Lits]:
    """The obligations with each of which a member meets a clause."""
    return [lits for lits in told.get(clause, ()) if lits is not None]


def _strictness(witness: MemberWitness) -> list[int]:
    return sorted(witness.lits or ())


def _order(clause: Clause) -> list[tuple[str, list[int]]]:
    return sorted((sort_key(witness.key), _strictness(witness)) for witness in clause)
