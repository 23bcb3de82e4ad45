"""Grammar rules as data, their simplification, and their printing as GBNF.

A rule is a list of alternatives. An alternative is a row of symbols: a piece of GBNF that matches text, the
number of another rule, or a counted repetition of one. Before printing, alternatives that can never end are
dropped (such as those that need an impossible value), equal rules are merged, and rules that the root does
not reach are dropped.

Invariant: every row but the empty one starts with text or with rules that start with text further on, so the
grammar has no left recursion and no empty loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import msgspec

from b3node.grammar.gbnf import reader
from b3node.grammar.inexact import Inexact

BLOCK_REPEATS: Final = 256
"""Repetitions that make a block: larger counts are written as blocks, far below the engine's 2,000."""


_MAX_INLINE_CHARS: Final = 16
"""Characters of GBNF below which a rule of one piece of text is written where it is used."""


class Times(msgspec.Struct, frozen=True):
    """A counted repetition."""

    rule: int
    """Number of the rule that repeats."""
    low: int
    high: int | None
    """None for no bound."""


Symbol = str | int | Times
"""A piece of GBNF, the number of a rule, or a counted repetition."""
Symbols = tuple[Symbol, ...]
"""Symbols in sequence: an alternative, or a part of one."""


class Rules:
    """The rules of one grammar while it is built.

    Args:
        limit: greatest number of rules.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: list[list[Symbols]] = []
        self._same: dict[tuple[Symbols, ...], int] = {}

    def new(self) -> int:
        """Makes a rule without alternatives, to be filled by `add`.

        Raises:
            Inexact: the limit of rules is reached.
        """
        if len(self._rows) >= self._limit:
            raise Inexact("", f"the grammar needs more than {self._limit} rules")
        self._rows.append([])
        return len(self._rows) - 1

    def add(self, rule: int, row: Symbols) -> None:
        """Adds an alternative to a rule, unless it has it."""
        if row not in self._rows[rule]:
            self._rows[rule].append(row)

    def of(self, *rows: Symbols) -> int:
        """Returns the rule with these alternatives; the first call with them makes it."""
        found = self._same.get(rows)
        if found is None:
            found = self._same[rows] = self.new()
            self._rows[found] = list(dict.fromkeys(rows))
        return found

    # ---------------------------------------------------------------------------------- cleaning
    def productive_rules(self) -> set[int]:
        """Returns the productive rules: those that match at least one finite text."""
        productive: set[int] = set()
        for rule in range(len(self._rows) - 1, -1, -1):  # most rules name only later ones
            for row in self._rows[rule]:
                if productive.issuperset(_needed(row)):
                    productive.add(rule)
                    break
        if len(productive) < len(self._rows):
            self._add_productive_users(productive)
        return productive

    def _add_productive_users(self, productive: set[int]) -> None:
        """Adds the rules that are productive because of those in `productive`, transitively."""
        users: dict[int, list[list[int]]] = {}
        todo = []
        for rule, rows in enumerate(self._rows):
            for row in rows if rule not in productive else ():
                needs = set(_needed(row)) - productive
                waiting = [rule, len(needs)]
                for need in needs:
                    users.setdefault(need, []).append(waiting)
                if not needs and rule not in productive:
                    productive.add(rule)
                    todo.append(rule)
        while todo:
            for waiting in users.get(todo.pop(), ()):
                waiting[1] -= 1
                if waiting[1] == 0 and waiting[0] not in productive:
                    productive.add(waiting[0])
                    todo.append(waiting[0])

    def simplified(self, root: int) -> list[list[Symbols]] | None:
        """Returns the simplified rules, the root first; None if the root is not productive."""
        productive = self.productive_rules()
        if root not in productive:
            return None
        if len(productive) == len(self._rows):
            table = [rows.copy() for rows in self._rows]
        else:
            table = [
                [kept for row in rows if (kept := _productive_row(row, productive)) is not None]
                if i in productive
                else []
                for i, rows in enumerate(self._rows)
            ]
        merger = _RuleMerger(table)
        merger.merge()
        return _reached(table, Counter(chain.from_iterable(merger.links)), merger.find(root))


def _needed(row: Symbols) -> list[int]:
    """Returns the rules that must be productive for a row to be productive."""
    return [
        symbol if isinstance(symbol, int) else symbol.rule
        for symbol in row
        if not isinstance(symbol, str) and (isinstance(symbol, int) or symbol.low)
    ]


def _productive_row(row: Symbols, productive: set[int]) -> Symbols | None:
    """Returns a row without its optional unproductive symbols; None if it is unproductive itself."""
    gone = False
    for symbol in row:
        if type(symbol) is int:
            if symbol not in productive:
                return None
        elif type(symbol) is Times and symbol.rule not in productive:
            if symbol.low:
                return None
            gone = True
    return tuple(s for s in row if type(s) is not Times or s.rule in productive) if gone else row


class _RuleMerger:
    """Merges equal rules and replaces rules that only name another by it, until nothing changes."""

    def __init__(self, table: list[list[Symbols]]) -> None:
        self._table = table
        self.links = [referenced(rows) for rows in table]
        self._users: list[list[int]] = [[] for _ in table]
        for i, rules in enumerate(self.links):
            for rule in rules:
                self._users[rule].append(i)
        self._to = list(range(len(table)))
        self._seen: dict[tuple[Symbols, ...], int] = {}
        self._stale: set[int] = set()

    def merge(self) -> None:
        """Processes all rules, then again those that name a replaced one."""
        todo = self._to[::-1]
        while todo:  # in rounds: a rule is processed once, however many of those that it names were replaced
            touched: set[int] = set()
            for i in todo:
                if self._to[i] == i and self._table[i] and (same := self._same(i)) != i:
                    self._to[i] = same
                    self._users[same] += self._users[i]
                    self._stale.update(self._users[i])
                    touched.update(self._users[i])
            todo = sorted(touched, reverse=True)

    def _same(self, i: int) -> int:
        """Returns the rule that rule `i` equals, after bringing its rows up to date."""
        rows = self._table[i]
        if i in self._stale:
            self._stale.discard(i)
            rows = list(dict.fromkeys([tuple([self._resolved(s) for s in row]) for row in rows]))
            self._table[i], self.links[i] = rows, referenced(rows)
        if len(rows) == 1 and len(rows[0]) == 1 and type(first := rows[0][0]) is int:
            return first
        return self.find(self._seen.setdefault(tuple(rows), i))

    def find(self, rule: int) -> int:
        """Returns the rule that replaces a rule (union-find with path halving)."""
        to = self._to
        while to[rule] != rule:
            to[rule] = to[to[rule]]
            rule = to[rule]
        return rule

    def _resolved(self, symbol: Symbol) -> Symbol:
        if type(symbol) is int:
            return self.find(symbol)
        return Times(self.find(symbol.rule), symbol.low, symbol.high) if type(symbol) is Times else symbol


def referenced(rows: list[Symbols]) -> list[int]:
    """Returns the rules that rows name."""
    return [s if isinstance(s, int) else s.rule for row in rows for s in row if not isinstance(s, str)]


def _reached(table: list[list[Symbols]], uses: Mapping[int, int], root: int) -> list[list[Symbols]]:
    """Returns the rules that the root needs, in the order of discovery; chains with one user are inlined."""
    numbers, order = {root: 0}, [root]
    out: list[list[Symbols]] = []
    for at in order:  # grows while it is walked
        rows = []
        for row in table[at]:
            flat: list[Symbol] = []
            for symbol in _inlined(row, table, uses, numbers):
                if isinstance(symbol, str):
                    flat.append(symbol)
                    continue
                rule = symbol if isinstance(symbol, int) else symbol.rule
                number = numbers.get(rule)
                if number is None:
                    number = numbers[rule] = len(order)
                    order.append(rule)
                flat.append(number if isinstance(symbol, int) else Times(number, symbol.low, symbol.high))
            rows.append(tuple(flat))
        out.append(rows)
    return out


def _inlined(
    row: Symbols, table: list[list[Symbols]], uses: Mapping[int, int], kept: Mapping[int, int]
) -> Sequence[Symbol]:
    """Inlines rules of one alternative into a row, where that saves a rule or is as short."""
    if not [symbol for symbol in row if isinstance(symbol, int) and len(table[symbol]) == 1]:
        return row
    flat: list[Symbol] = []
    todo = list(reversed(row))
    while todo:
        symbol = todo.pop()
        if type(symbol) is int and len(table[symbol]) == 1:
            inner = table[symbol][0]
            plain = not inner or (
                len(inner) == 1 and type(inner[0]) is str and len(inner[0]) < _MAX_INLINE_CHARS
            )
            if plain or (uses[symbol] == 1 and symbol not in kept):
                todo += inner[::-1]
                continue
        flat.append(symbol)
    return flat


# ---------------------------------------------------------------------------------------- printing
def printed(table: list[list[Symbols]], library: Mapping[str, str]) -> str:
    """Prints simplified rules as GBNF, followed by the rules of `library` that they name."""
    lines, more = [], _Blocks()
    pieces = dict.fromkeys([s for rows in table for row in rows for s in row if isinstance(s, str)])
    for i, rows in enumerate(table):
        lines.append(f"{_name(i)} ::= {' | '.join([_row(row, more) for row in rows])}")
    names = dict.fromkeys([name for piece in pieces for name in reader.references(piece)])
    needed = reader.closure(library, [name for name in names if name in library])
    lines += more.lines
    lines += [f"{name} ::= {library[name]}" for name in needed]
    return "\n".join(lines) + "\n"


def _name(number: int) -> str:
    return "root" if number == 0 else f"r{number}"


def _row(row: Symbols, blocks: _Blocks) -> str:
    """Prints one alternative; adjacent literals become one."""
    parts: list[str] = []
    for symbol in row:
        if isinstance(symbol, int):
            parts.append(_name(symbol))
        elif isinstance(symbol, Times):
            if text := blocks.times(_name(symbol.rule), symbol.low, symbol.high):
                parts.append(text)
        elif parts and symbol[:1] == '"' and _is_literal(parts[-1]) and _is_literal(symbol):
            parts[-1] = parts[-1][:-1] + symbol[1:]
        elif symbol:
            parts.append(symbol)
    return " ".join(parts) or '""'


def _is_literal(text: str) -> bool:
    return text[:1] == '"' and text[-1:] == '"' and '" ' not in text


class _Blocks:
    """Printer of counted repetitions, in blocks where the count is large."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._known: dict[tuple[str, int, int], str] = {}

    def times(self, name: str, low: int, high: int | None) -> str:
        """Prints `name` repeated `low` to `high` times (None: no bound); empty for no repetition."""
        if high == 0:
            return ""
        if (low, high) == (1, 1):
            return name
        if high is None:
            mark = {0: f"{name}*", 1: f"{name}+"}.get(low)
            return mark or f"{self.times(name, low, low)} {name}*"
        if high <= 2 * BLOCK_REPEATS:
            return f"{name}{{{low}}}" if low == high else f"{name}{{{low},{high}}}"
        fixed = self._fixed(name, low)
        return f"{fixed} {self._upto(name, high - low)}".strip() if high > low else fixed

    def _block(self, name: str) -> str:
        return self._rule((name, BLOCK_REPEATS, BLOCK_REPEATS), f"{name}{{{BLOCK_REPEATS}}}")

    def _fixed(self, name: str, count: int) -> str:
        """Prints exactly `count` repetitions."""
        if count <= 2 * BLOCK_REPEATS:
            return f"{name}{{{count}}}" if count else ""
        blocks, rest = divmod(count, BLOCK_REPEATS)
        return f"{self.times(self._block(name), blocks, blocks)} {self._fixed(name, rest)}".strip()

    def _upto(self, name: str, count: int) -> str:
        """Prints at most `count` repetitions: whole blocks while more may follow, then a part of one."""
        if count <= 2 * BLOCK_REPEATS:
            return f"{name}{{0,{count}}}"
        blocks, rest = divmod(count, BLOCK_REPEATS)
        tail = self._rule((name, 0, BLOCK_REPEATS - 1), f"{name}{{0,{BLOCK_REPEATS - 1}}}")
        full = self._block(name)
        if blocks <= 2 * BLOCK_REPEATS:
            step = f"{name}{{0,{rest}}}" if rest else '""'
            for left in range(1, blocks + 1):
                step = self._rule((name, -left, count), f"{full} {step} | {tail}")
            return step
        return f"{self._upto(full, blocks - 1)} {self.times(name, 0, BLOCK_REPEATS + rest)}"

    def _rule(self, key: tuple[str, int, int], body: str) -> str:
        if key not in self._known:
            self._known[key] = f"n{len(self._known)}"
            self.lines.append(f"{self._known[key]} ::= {body}")
        return self._known[key]
