"""Texts drawn at random from a GBNF grammar: a small reader and walker, independent of the compiler."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-zA-Z][a-zA-Z0-9-]*|\{\d+(?:,\d*)?\}|[()|*+?]')
_ESCAPE = re.compile(r"\\x(..)|\\u(....)|\\U(........)|\\(.)")
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass
class Item:
    """A literal, a class, a rule or a group, with how often it repeats (a high of None is no bound)."""

    kind: str
    value: Any
    low: int = 1
    high: int | None = 1


class Grammar:
    """A GBNF text that random members can be drawn from."""

    def __init__(self, text: str) -> None:
        self._rules = {}
        for line in text.splitlines():
            name, _, body = line.partition(" ::= ")
            self._tokens = _TOKEN.findall(body)
            self._at = 0
            self._rules[name] = self._choice()
        self._cost: dict[str, float] = {}
        self._weigh()

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _choice(self) -> list[list[Item]]:
        rows = [self._row()]
        while self._peek() == "|":
            self._at += 1
            rows.append(self._row())
        return rows

    def _row(self) -> list[Item]:
        items = []
        while self._peek() not in {"", "|", ")"}:
            token = self._peek()
            self._at += 1
            if token == "(":
                item = Item("group", self._choice())
                self._at += 1
            elif token[0] == '"':
                item = Item("text", _unescaped(token[1:-1]))
            elif token[0] == "[":
                item = Item("class", _ranges(token[1:-1]))
            else:
                item = Item("rule", token)
            items.append(self._repeated(item))
        return items

    def _repeated(self, item: Item) -> Item:
        mark = self._peek()
        if mark[:1] in {"*", "+", "?", "{"} and mark:
            self._at += 1
            low, comma, high = mark[1:-1].partition(",") if mark[0] == "{" else ("", "", "")
            bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(mark[0])
            bounds = bounds or (int(low), (int(high) if high else None) if comma else int(low))
            item.low, item.high = bounds
        return item

    def _weigh(self) -> None:
        """Computes the least number of characters of each rule."""
        changed = True
        while changed:
            changed = False
            for name, rows in self._rules.items():
                cost = self._choice_cost(rows)
                if cost < self._cost.get(name, float("inf")):
                    self._cost[name] = cost
                    changed = True

    def _choice_cost(self, rows) -> float:
        return min(float(self._row_cost(row)) for row in rows)

    def _row_cost(self, row) -> float:
        return 1 + sum(float(item.low * self._item_cost(item)) for item in row)

    def _item_cost(self, item) -> float:
        if item.kind == "rule":
            return self._cost.get(item.value, float("inf"))
        if item.kind == "group":
            return self._choice_cost(item.value)
        return float(len(item.value)) if item.kind == "text" else 1.0

    def draw(self, seed: int, budget: int = 400) -> str:
        """Returns a random text of the grammar; after about `budget` characters it ends soon."""
        self._random, self._left = random.Random(seed), budget
        out: list[str] = []
        todo: list[Any] = [Item("rule", "root")]
        while todo:
            item = todo.pop()
            if item.kind == "text":
                out.append(item.value)
                self._left -= len(item.value)
            elif item.kind == "class":
                low, high = self._random.choice(item.value)
                out.append(chr(self._random.randint(low, min(high, low + 90))))
                self._left -= 1
            else:
                rows = self._rules[item.value] if item.kind == "rule" else item.value
                self._left -= 1
                for each in reversed(self._pick(rows)):
                    todo += [Item(each.kind, each.value)] * self._times(each)
        return "".join(out)

    def _pick(self, rows):
        if self._left > 0:
            fit = [row for row in rows if self._row_cost(row) < float("inf")]
            return self._random.choice(fit)
        return min(rows, key=self._row_cost)

    def _times(self, item: Item) -> int:
        if item.low == item.high:
            return item.low
        high = item.low + 4 if item.high is None else min(item.high, item.low + 6)
        return self._random.randint(item.low, high) if self._left > 0 else item.low


def _unescaped(text: str) -> str:
    def one(found):
        digits = found[1] or found[2] or found[3]
        return chr(int(digits, 16)) if digits else _SHORT.get(found[4], found[4])

    return _ESCAPE.sub(one, text)


def _ranges(text: str) -> list[tuple[int, int]]:
    points = [
        (ord(_unescaped(piece)), piece)
        for piece in re.findall(r"\\x..|\\u....|\\U........|\\.|.", text, re.DOTALL)
    ]
    out, i = [], 0
    while i < len(points):
        if i + 2 < len(points) and points[i + 1][1] == "-":
            out.append((points[i][0], points[i + 2][0]))
            i += 3
        else:
            out.append((points[i][0], points[i][0]))
            i += 1
    return out
