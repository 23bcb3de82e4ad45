"""Arrays as rules: an automaton over items.

A state is (index, clauses still without a witness, counts so far, length as far as it matters). Where only
the length is left to constrain, the rest is one counted repetition.
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
from b3node.grammar.counts import exceeds, lowered
from b3node.grammar.gbnf.rules import Rules, Symbols, Times
from b3node.grammar.inexact import Inexact

MAX_ARRAY_STATES: Final = 4_000
"""States of one array's automaton."""
MAX_DISTINCT_VALUES: Final = 10
"""Values among which distinct items may be chosen: every subset of them is a state."""

ArrayState = tuple[int, frozenset[int], tuple[int, ...]]
"""The index, the clauses without a witness, and the counts so far."""


class ArrayWriter:
    """Writer of array shapes.

    Args:
        resolver: the constraints of the schema.
        rules: the rules that are added to.
        value: returns the row of a constraint.
        few_values: returns the values of a constraint, or None if there are more than so many.
        literal_row: returns the row of one JSON value.
    """

    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        value: Callable[[Lits], Symbols],
        few_values: Callable[[Lits, int], list[object] | None],
        literal_row: Callable[[object], Symbols],
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._value = value
        self._few_values = few_values
        self._literal = literal_row

    def body(self, shape: ArrayShape) -> Symbols:
        """Returns the row after the opening bracket.

        Raises:
            Inexact: distinct items cannot be expressed, or the automaton is too large.
        """
        if shape.unique is not None:
            return self._distinct_items(shape)
        if not shape.clauses and not shape.counts:
            return self._plain(shape)
        return _ArrayAutomaton(self._rules, self._value, shape).row()

    def _plain(self, shape: ArrayShape) -> Symbols:
        """Returns the row of an array without clauses and counts: the first items, then a repetition."""
        more = self._rules.of(('","', "ws", *self._value(shape.rest)))
        size = len(shape.prefix)
        high = lowered(shape.high, size)
        rows: list[Symbols] = []
        tail: Symbols = ('"]"',) if high == 0 else (Times(more, max(shape.low - size, 0), high), '"]"')
        after = self._rules.of(tail)
        for index in range(size - 1, 0, -1):
            rows = [('"]"',)] if index >= shape.low else []
            rows.append(('","', "ws", *self._value(shape.prefix[index]), after))
            after = self._rules.of(*rows)
        rows = [('"]"',)] if shape.low == 0 else []
        if shape.high != 0:
            if size == 0:
                rest = Times(more, max(shape.low - 1, 0), lowered(shape.high))
                rows.append((*self._value(shape.rest), rest, '"]"'))
            else:
                rows.append((*self._value(shape.prefix[0]), after))
        return (self._rules.of(*rows),)

    # ---------------------------------------------------------------------------------- uniqueness
    def _distinct_items(self, shape: ArrayShape) -> Symbols:
        """Returns the row of distinct items of finitely many values; a state is the set of values used."""
        places = [*shape.prefix, shape.rest][: shape.high]
        values: dict[str, object] = {}
        for lits in places:
            found = None if len(values) > MAX_DISTINCT_VALUES else self._few_values(lits, MAX_DISTINCT_VALUES)
            if found is None:
                raise Inexact(
                    str(shape.unique),
                    f"items can be kept distinct only among at most {MAX_DISTINCT_VALUES} values",
                )
            values |= {canonical(value): value for value in found}
        if len(values) > MAX_DISTINCT_VALUES:
            raise Inexact(
                str(shape.unique),
                f"items can be kept distinct only among at most {MAX_DISTINCT_VALUES} values",
            )
        return (
            _DistinctItems(self._resolver, self._rules, self._literal, shape, values).rule(frozenset(), ()),
        )


class _DistinctItems:
    """Automaton of distinct items of one shape."""

    def __init__(
        self,
        resolver: SchemaResolver,
        rules: Rules,
        literal_row: Callable[[object], Symbols],
        shape: ArrayShape,
        values: dict[str, object],
    ) -> None:
        self._resolver = resolver
        self._rules = rules
        self._literal = literal_row
        self._shape = shape
        self._values = values
        self._known: dict[tuple[frozenset[str], tuple[int, ...]], int] = {}
        self._counts: list[ContainsCount | frozenset[ItemWitness]] = [
            *sorted(shape.counts, key=_sort_key),
            *shape.clauses,
        ]

    def rule(self, used: frozenset[str], met: tuple[int, ...]) -> int:
        """Returns the rule of the rest of the array after the values `used` with the counts `met`."""
        met = met or (0,) * len(self._counts)
        key = (used, met)
        if key in self._known:
            return self._known[key]
        self._known[key] = rule = self._rules.new()
        index = len(used)
        if index >= self._shape.low and self._counts_met(met):
            self._rules.add(rule, ('"]"',))
        if exceeds(index + 1, self._shape.high):
            return rule
        comma: Symbols = ('","', "ws") if index else ()
        for text, value in self._values.items():
            if text not in used and self._resolver.meets(value, self._shape.item_lits(index)):
                after = self.rule(used | {text}, self._count_value(met, value, index))
                self._rules.add(rule, (*comma, *self._literal(value), after))
        return rule

    def _count_value(self, met: tuple[int, ...], value: object, index: int) -> tuple[int, ...]:
        """Returns the counts after a value at an index."""
        out = []
        for count, found in zip(self._counts, met, strict=True):
            if isinstance(count, ContainsCount):
                hit = self._resolver.meets(value, count.lits)
            else:
                hit = any(
                    _covers_index(spot, index) and self._resolver.meets(value, spot.lits) for spot in count
                )
            out.append(found + hit)
        return tuple(out)

    def _counts_met(self, met: tuple[int, ...]) -> bool:
        """Returns True if all counts and clauses are met."""
        for count, found in zip(self._counts, met, strict=True):
            if not isinstance(count, ContainsCount):
                if not found:
                    return False
            elif found < count.low or exceeds(found, count.high):
                return False
        return True


def _sort_key(demand: ItemWitness | ContainsCount) -> tuple[int, int, list[int]]:
    """Returns the key that orders witnesses and counts, as sets of them have no order."""
    return demand.low, -1 if demand.high is None else demand.high, sorted(demand.lits)


def _covers_index(spot: ItemWitness, index: int) -> bool:
    """Returns True if an item at the index can be the witness."""
    return spot.low <= index and not exceeds(index, spot.high)


class _ArrayAutomaton:
    """Automaton of one shape with clauses or counts."""

    def __init__(self, rules: Rules, value: Callable[[Lits], Symbols], shape: ArrayShape) -> None:
        self._rules = rules
        self._value = value
        self._shape = shape
        self._clauses = sorted(
            (sorted(clause, key=_sort_key) for clause in shape.clauses), key=lambda c: [*map(_sort_key, c)]
        )
        self._counts = sorted(shape.counts, key=_sort_key)
        spots = [spot for clause in self._clauses for spot in clause]
        highs = [shape.high, *(spot.high for spot in spots)]
        edges = [len(shape.prefix), shape.low, *(spot.low for spot in spots)]
        self._last_index = max([*edges, *(high + 1 for high in highs if high is not None)])
        self._known: dict[ArrayState, int] = {}

    def row(self) -> Symbols:
        """Returns the row of the whole. Raises `Inexact` if it needs too many states."""
        start: ArrayState = (0, frozenset(range(len(self._clauses))), (0,) * len(self._counts))
        todo = [start]
        self._known[start] = self._rules.new()
        while todo:
            state = todo.pop()
            self._fill(state, todo)
            if len(self._known) > MAX_ARRAY_STATES:
                raise Inexact("", "what is counted in an array needs too many states")
        return (self._known[start],)

    def _fill(self, state: ArrayState, todo: list[ArrayState]) -> None:
        rule = self._known[state]
        index, pending, counts = state
        if (
            not pending
            and index >= self._shape.low
            and all(found >= count.low for count, found in zip(self._counts, counts, strict=True))
        ):
            self._rules.add(rule, ('"]"',))
        if exceeds(index + 1, self._shape.high):
            return
        comma: Symbols = ('","', "ws") if index else ()
        for lits, met, found in self._items(index, pending, counts):
            after: ArrayState = (min(index + 1, max(self._last_index, 1)), pending - met, found)
            if after not in self._known:
                self._known[after] = self._rules.new()
                todo.append(after)
            self._rules.add(rule, (*comma, *self._value(lits), self._known[after]))

    def _items(
        self, index: int, pending: frozenset[int], counts: tuple[int, ...]
    ) -> Iterator[tuple[Lits, frozenset[int], tuple[int, ...]]]:
        """Yields the items that may come: the constraint, the clauses that it meets, the counts after it."""
        base = self._shape.item_lits(index)
        witnesses = [
            (i, spot.lits) for i in sorted(pending) for spot in self._clauses[i] if _covers_index(spot, index)
        ]
        choices = [chosen for size in range(len(witnesses) + 1) for chosen in combinations(witnesses, size)]
        for hits in product((True, False), repeat=len(self._counts)):
            after, demanded = self._count_items(counts, hits)
            if after is None:
                continue
            for chosen in choices:
                lits = all_of(base, *demanded, *(lits for _, lits in chosen))
                if lits != FALSE:
                    yield lits, frozenset(i for i, _ in chosen), after

    def _count_items(
        self, counts: tuple[int, ...], hits: tuple[bool, ...]
    ) -> tuple[tuple[int, ...] | None, list[Lits]]:
        """Returns the counts after an item, and the constraints that make it hit or miss each of them.

        The counts are None if one would pass its bound.
        """
        out, demanded = [], []
        for count, found, hit in zip(self._counts, counts, hits, strict=True):
            after = found + hit
            if exceeds(after, count.high):
                return None, []
            out.append(min(after, count.low if count.high is None else count.high))
            demanded.append(count.lits if hit else negated(count.lits))
        return tuple(out), demanded
