"""Many optional members in a fixed order, cheap for the engine.

After a member any later one may come, up to the next required one. Written as a chain of skips that would be
one live stack for every name. Here the names ahead are read letter by letter: ranges of slots, aligned to
powers of four, are a trie each, and every slot refers to the few ranges that cover what is ahead of it. The
text grows as n log n, the live stacks as log n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from b3node.grammar.gbnf.rules import Rules, Symbols
from b3node.grammar.gbnf.strings import QUOTE, escaped
from b3node.grammar.gbnf.trie import branches

FROM: Final = 40
"""Members from which tries pay."""
_BASE: Final = 4


class Member(msgspec.Struct, frozen=True):
    """A named member."""

    name: str
    value: Symbols | None
    """The row of its value; None if the member cannot exist."""
    required: bool


class Members:
    """Writer of one sequence of members.

    Args:
        rules: receives the rules.
        members: in the order of writing.
        others: the rows of one member under any other name; such members may follow and repeat.
    """

    def __init__(self, rules: Rules, members: Sequence[Member], others: Sequence[Symbols]) -> None:
        self._rules = rules
        self._members = members
        self._others = others
        self._after = [rules.new() for _ in range(len(members) + 1)]
        self._tries: dict[tuple[int, int], int] = {}

    def row(self) -> Symbols:
        """Returns the row after the opening brace."""
        for slot, rule in enumerate(self._after):
            for row in self._ahead(slot, ('","', "ws")):
                self._rules.add(rule, row)
        return (self._rules.of(*self._ahead(0, ())),)

    def _ahead(self, slot: int, comma: Symbols) -> list[Symbols]:
        """Returns the rows of all that may come when the next slot is `slot`."""
        needed = next((i for i in range(slot, len(self._members)) if self._members[i].required), None)
        stop = len(self._members) if needed is None else needed + 1
        rows: list[Symbols] = []
        while slot < stop:
            size = 1
            while slot % (size * _BASE) == 0 and slot + size * _BASE <= stop:
                size *= _BASE
            rows += [(*comma, QUOTE, *row) for row in self._names(slot, slot + size)]
            slot += size
        if needed is None:
            rows += [(*comma, *other, self._after[-1]) for other in self._others]
            rows.append(('"}"',))
        return rows

    def _names(self, start: int, stop: int) -> list[Symbols]:
        """Returns the rows of the names of a range of slots, each with its value and the row after it."""
        if (start, stop) in self._tries:
            return [(self._tries[start, stop],)]
        entries = [
            (escaped(self._members[i].name), (self._valued(i),))
            for i in range(start, stop)
            if self._members[i].value is not None
        ]
        if len(entries) < 2:
            return branches(self._rules, entries)
        self._tries[start, stop] = self._rules.of(*branches(self._rules, entries))
        return [(self._tries[start, stop],)]

    def _valued(self, slot: int) -> int:
        value = self._members[slot].value or ()
        return self._rules.of(('"\\":"', "ws", *value, self._after[slot + 1]))
