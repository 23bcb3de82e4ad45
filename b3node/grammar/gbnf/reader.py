"""Reader of hand-written GBNF files: rules by name, and regular rules as languages.

Reads the notation of llama.cpp without token elements: literals, classes, groups, alternatives and the
repetitions `* + ? {m} {m,} {m,n}`. An error here is an error in the package's own files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from b3node.grammar.languages import charset
from b3node.grammar.languages.algebra import EMPTY, Algebra, Lang
from b3node.grammar.languages.charset import Charset

_RULE: Final = re.compile(r"^([a-z][a-z0-9-]*)\s*::=\s*(.*)$")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]*")
_COUNT: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]')
_SHORT: Final = {"t": "\t", "r": "\r", "n": "\n"}
_WIDE: Final = {"x": 2, "u": 4, "U": 8}


class NotationError(ValueError):
    """A grammar file that does not follow the notation."""


def rules(source: str) -> dict[str, str]:
    """Returns the rules of a GBNF text: name to body. Each rule stands on one line; comments are dropped.

    Raises:
        NotationError: a line is no rule.
    """
    out: dict[str, str] = {}
    for line in source.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _RULE.match(line)
        if found is None:
            raise NotationError(f"not a rule: {line[:40]}")
        out[found[1]] = found[2].strip()
    return out


@lru_cache(maxsize=4096)
def references(body: str) -> list[str]:
    """Returns the rules that a body names, in order, without repetition."""
    return list(dict.fromkeys(_NAME.findall(_QUOTED.sub(" ", body))))


def closure(table: Mapping[str, str], names: list[str]) -> list[str]:
    """Returns `names` and all rules that they need, in the order of discovery."""
    found = dict.fromkeys(names)
    todo = list(found)
    for name in todo:  # grows while it is walked
        for other in references(table[name]):
            if other not in found:
                found[other] = None
                todo.append(other)
    return todo


def regular(algebra: Algebra, table: Mapping[str, str], name: str) -> Lang:
    """Returns the language of a rule that does not refer to itself.

    Raises:
        NotationError: the rule is recursive, unknown or malformed.
    """
    return _RuleParser(algebra, table, name, ()).parse()


class _RuleParser:
    """Recursive-descent parser of one rule body."""

    def __init__(self, algebra: Algebra, table: Mapping[str, str], name: str, above: tuple[str, ...]) -> None:
        if name in above or name not in table:
            raise NotationError(f"rule {name} is recursive or unknown")
        self._algebra = algebra
        self._table = table
        self._above = (*above, name)
        self._text = table[name]
        self._at = 0

    def parse(self) -> Lang:
        lang = self._choice()
        if self._at < len(self._text):
            raise NotationError(f"rule {self._above[-1]} does not parse at column {self._at}")
        return lang

    def _blank(self) -> None:
        while self._text[self._at : self._at + 1] == " ":
            self._at += 1

    def _choice(self) -> Lang:
        options = [self._sequence()]
        while self._text[self._at : self._at + 1] == "|":
            self._at += 1
            options.append(self._sequence())
        return self._algebra.either(options)

    def _sequence(self) -> Lang:
        parts = [EMPTY]
        self._blank()
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._quantified(self._item()))
            self._blank()
        return self._algebra.cat(*parts)

    def _item(self) -> Lang:
        char = self._text[self._at]
        if char == "(":
            self._at += 1
            inner = self._choice()
            self._at += 1
            return inner
        if char == '"':
            return self._literal()
        if char == "[":
            return self._algebra.chars(self._class())
        name = _NAME.match(self._text, self._at)
        if name is None:
            raise NotationError(f"rule {self._above[-1]} does not parse at column {self._at}")
        self._at = name.end()
        return _RuleParser(self._algebra, self._table, name[0], self._above).parse()

    def _quantified(self, item: Lang) -> Lang:
        for mark, low, high in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._text.startswith(mark, self._at):
                self._at += 1
                return self._algebra.repeat(item, low, high)
        found = _COUNT.match(self._text, self._at)
        if found is None:
            return item
        self._at = found.end()
        low = int(found[1])
        high = low if not found[2] else int(found[3]) if found[3] else None
        return self._algebra.repeat(item, low, high)

    def _literal(self) -> Lang:
        self._at += 1
        out = []
        while self._text[self._at] != '"':
            out.append(self._point())
        self._at += 1
        return self._algebra.text("".join(map(chr, out)))

    def _class(self) -> Charset:
        self._at += 1
        out = []
        while self._text[self._at] != "]":
            low = high = self._point()
            if self._text[self._at] == "-" and self._text[self._at + 1] != "]":
                self._at += 1
                high = self._point()
            out.append((low, high))
        self._at += 1
        return charset.intersection(charset.union(out), charset.ANY)

    def _point(self) -> int:
        char = self._text[self._at]
        self._at += 1
        if char != "\\":
            return ord(char)
        mark = self._text[self._at]
        self._at += 1
        if mark in _WIDE:
            digits = self._text[self._at : self._at + _WIDE[mark]]
            self._at += _WIDE[mark]
            return int(digits, 16)
        return ord(_SHORT.get(mark, mark))
