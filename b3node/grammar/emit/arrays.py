"""Arrays as rules: an item automaton.

A state is (place, clauses still without a witness, counts so far, length as far as it matters). Where only
the length is left to say, the rest is one counted repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import Final

from b3node.grammar.constraints.array_shape import ArrayShape, ContainsCount, ItemWitness
from b3node.grammar.constraints.keywords import negated
from b3node.grammar.constraints.literals import FALSE, Lits, all_of
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.values import canonical
from b3node.grammar.gbnf.rules import Row, Rules, Times
from b3node.grammar.inexact import Inexact

MAX_STATES: Final = 4_000
"""States of one array's automaton."""
MAX_DISTINCT: Final = 10
"""Values among which distinct items may be chosen: every subset of them is a state."""

State = tuple[int, frozenset[int], tuple[int, ...]]


class Arrays:
    """The writer of array shapes.

    Args:
        value: gives the rule of an obligation.
        finite: gives the values of an obligation, when there are at most so many.
    """

    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        value: Callable[[Lits], Row],
        finite: Callable[[Lits, int], list[object] | None],
        listed: Callable[[object], Row],
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._value = value
        self._finite = finite
        self._listed = listed

    def body(self, shape: ArrayShape) -> Row:
        """What follows the opening bracket.

        Raises:
            Inexact: items would have to be told apart, or the automaton is too large.
        """
        if shape.unique is not None:
            return self._distinct(shape)
        if not shape.clauses and not shape.counts:
            return self._plain(shape)
        return _Body(self._rules, self._value, shape).row()

    def _plain(self, shape: ArrayShape) -> Row:
        """Places one after the other, then a repetition."""
        more = self._rules.of(('","', "ws", *self._value(shape.rest)))
        size = len(shape.prefix)
        high = shape.high - size if shape.high >= 0 else -1
        rows: list[Row] = []
        tail: Row = ('"]"',) if high == 0 else (Times(more, max(shape.low - size, 0), high), '"]"')
        after = self._rules.of(tail)
        for place in range(size - 1, 0, -1):
            rows = [('"]"',)] if place >= shape.low else []
            rows.append(('","', "ws", *self._value(shape.prefix[place]), after))
            after = self._rules.of(*rows)
        rows = [('"]"',)] if shape.low == 0 else []
        if shape.high != 0:
            if size == 0:
                rest = Times(more, max(shape.low - 1, 0), shape.high - 1 if shape.high > 0 else -1)
                rows.append((*self._value(shape.rest), rest, '"]"'))
            else:
                rows.append((*self._value(shape.prefix[0]), after))
        return (self._rules.of(*rows),)

    # ---------------------------------------------------------------------------------- uniqueness
    def _distinct(self, shape: ArrayShape) -> Row:
        """Distinct items of finitely many values: the state is the set of values used."""
        places = [*shape.prefix, shape.rest]
        if 0 <= shape.high < len(places):
            places = places[: shape.high]
        values: dict[str, object] = {}
        for lits in places:
            found = None if len(values) > MAX_DISTINCT else self._finite(lits, MAX_DISTINCT)
            if found is None:
                raise Inexact(
                    str(shape.unique), f"items can be kept distinct only among at most {MAX_DISTINCT} values"
                )
            values |= {canonical(value): value for value in found}
        if len(values) > MAX_DISTINCT:
            raise Inexact(
                str(shape.unique), f"items can be kept distinct only among at most {MAX_DISTINCT} values"
            )
        return (_Distinct(self._resolver, self._rules, self._listed, shape, values).rule(frozenset(), ()),)


class _Distinct:
    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        listed: Callable[[object], Row],
        shape: ArrayShape,
        values: dict[str, object],
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._listed = listed
        self._shape = shape
        self._values = values
        self._known: dict[tuple[frozenset[str], tuple[int, ...]], int] = {}
        self._counts: list[ContainsCount | frozenset[ItemWitness]] = [
            *sorted(shape.counts, key=_order),
            *shape.clauses,
        ]

    def rule(self, used: frozenset[str], met: tuple[int, ...]) -> int:
        """The rule of what follows when the values `used` have been written."""
        met = met or (0,) * len(self._counts)
        key = (used, met)
        if key in self._known:
            return self._known[key]
        self._known[key] = rule = self._rules.new()
        place = len(used)
        if place >= self._shape.low and self._done(met):
            self._rules.add(rule, ('"]"',))
        if 0 <= self._shape.high <= place:
            return rule
        comma: Row = ('","', "ws") if place else ()
        for text, value in self._values.items():
            if text not in used and self._resolver.meets(value, self._shape.item_lits(place)):
                after = self.rule(used | {text}, self._meet(met, value, place))
                self._rules.add(rule, (*comma, *self._listed(value), after))
        return rule

    def _meet(self, met: tuple[int, ...], value: object, place: int) -> tuple[int, ...]:
        out = []
        for count, found in zip(self._counts, met, strict=True):
            if isinstance(count, ContainsCount):
                hit = self._resolver.meets(value, count.lits)
            else:
                hit = any(_reaches(spot, place) and self._resolver.meets(value, spot.lits) for spot in count)
            out.append(found + hit)
        return tuple(out)

    def _done(self, met: tuple[int, ...]) -> bool:
        for count, found in zip(self._counts, met, strict=True):
            if not isinstance(count, ContainsCount):
                if not found:
                    return False
            elif found < count.low or 0 <= count.high < found:
                return False
        return True


def _order(asked: ItemWitness | ContainsCount) -> tuple[int, int, list[int]]:
    """What spots and counts are sorted by, as sets of them have no order."""
    return asked.low, asked.high, sorted(asked.lits)


def _reaches(spot: ItemWitness, place: int) -> bool:
    return spot.low <= place and (spot.high < 0 or place <= spot.high)


class _Body:
    """The automaton of one shape with clauses or counts."""

    def __init__(self, rules: Rules, value: Callable[[Lits], Row], shape: ArrayShape) -> None:
        self._rules = rules
        self._value = value
        self._shape = shape
        self._clauses = sorted(
            (sorted(clause, key=_order) for clause in shape.clauses), key=lambda c: [*map(_order, c)]
        )
        self._counts = sorted(shape.counts, key=_order)
        spots = [spot for clause in self._clauses for spot in clause]
        edges = [len(shape.prefix), *(spot.low for spot in spots), *(spot.high + 1 for spot in spots)]
        self._places = max([*edges, shape.low, shape.high + 1])
        self._known: dict[State, int] = {}

    def row(self) -> Row:
        start: State = (0, frozenset(range(len(self._clauses))), (0,) * len(self._counts))
        todo = [start]
        self._known[start] = self._rules.new()
        while todo:
            state = todo.pop()
            self._fill(state, todo)
            if len(self._known) > MAX_STATES:
                raise Inexact("", "what is counted in an array needs too many states")
        return (self._known[start],)

    def _fill(self, state: State, todo: list[State]) -> None:
        rule = self._known[state]
        place, pending, counts = state
        if (
            not pending
            and place >= self._shape.low
            and all(found >= count.low for count, found in zip(self._counts, counts, strict=True))
        ):
            self._rules.add(rule, ('"]"',))
        if 0 <= self._shape.high <= place:
            return
        comma: Row = ('","', "ws") if place else ()
        for lits, met, found in self._items(place, pending, counts):
            after: State = (min(place + 1, max(self._places, 1)), pending - met, found)
            if after not in self._known:
                self._known[after] = self._rules.new()
                todo.append(after)
            self._rules.add(rule, (*comma, *self._value(lits), self._known[after]))

    def _items(
        self, place: int, pending: frozenset[int], counts: tuple[int, ...]
    ) -> Iterator[tuple[Lits, frozenset[int], tuple[int, ...]]]:
        """The items that may come: the obligation, the clauses it settles, the counts after it."""
        base = self._shape.item_lits(place)
        offers = [
            (i, spot.lits) for i in sorted(pending) for spot in self._clauses[i] if _reaches(spot, place)
        ]
        claims = [some for size in range(len(offers) + 1) for some in combinations(offers, size)]
        for hits in product((True, False), repeat=len(self._counts)):
            after, told = self._count(counts, hits)
            if after is None:
                continue
            for some in claims:
                lits = all_of(base, *told, *(lits for _, lits in some))
                if lits != FALSE:
                    yield lits, frozenset(i for i, _ in some), after

    def _count(
        self, counts: tuple[int, ...], hits: tuple[bool, ...]
    ) -> tuple[tuple[int, ...] | None, list[Lits]]:
        out, told = [], []
        for count, found, hit in zip(self._counts, counts, hits, strict=True):
            after = found + hit
            if 0 <= count.high < after:
                return None, []
            cap = count.high if count.high >= 0 else count.low
            out.append(min(after, cap))
            told.append(count.lits if hit else negated(count.lits))
        return tuple(out), told
