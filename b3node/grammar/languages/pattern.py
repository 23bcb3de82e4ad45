"""Parser of ECMA-262 patterns: text to a syntax tree.

Patterns have the meaning of the `u` flag: classes are sets of code points, and a surrogate pair written as
two escapes is one character. Identity escapes and lone braces are accepted as in Annex B. Patterns in the
wild need both. Back-references, lookbehind and word boundaries are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from b3node.grammar.counts import exceeds
from b3node.grammar.languages import charset
from b3node.grammar.languages.charset import Charset

MAX_GROUP_DEPTH: Final = 60
"""Levels of nested groups that a pattern may have."""
MAX_QUANTIFIER: Final = 100_000
"""Highest bound of a quantifier that is accepted."""


class PatternError(ValueError):
    """A pattern that is malformed or has no regular language; the message is a reason for people."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: Charset


@dataclass(frozen=True, slots=True)
class Assertion:
    """An anchor."""

    start: bool
    """True for `^`, False for `$`."""


@dataclass(frozen=True, slots=True)
class Lookahead:
    """A lookahead."""

    inner: Tree
    wanted: bool
    """False for a negative lookahead."""


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Elements one after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives."""

    options: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`inner` from `low` to `high` times."""

    inner: Tree
    low: int
    high: int | None
    """None for no bound."""


Tree = Chars | Assertion | Lookahead | Concatenation | Choice | Repeat

_CONTROL: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_CLASSES: Final[dict[str, Charset]] = {
    "d": charset.DIGIT,
    "w": charset.WORD,
    "s": charset.SPACE,
    "D": charset.complement(charset.DIGIT),
    "W": charset.complement(charset.WORD),
    "S": charset.complement(charset.SPACE),
}
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def parse(source: str) -> Tree:
    """Parses a pattern.

    Raises:
        PatternError: the pattern is malformed, or holds an element that is not regular.
    """
    return _PatternParser(source).parse()


class _PatternParser:
    """Recursive-descent parser of one pattern."""

    def __init__(self, source: str) -> None:
        self._text = source
        self._at = 0
        self._depth = 0

    def parse(self) -> Tree:
        tree = self._choice()
        if self._at < len(self._text):
            raise PatternError("a closing parenthesis has no opening one")
        return tree

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, expected: str) -> bool:
        if self._text.startswith(expected, self._at):
            self._at += len(expected)
            return True
        return False

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise PatternError("the pattern ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _choice(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_GROUP_DEPTH:
            raise PatternError(f"more than {MAX_GROUP_DEPTH} groups are nested")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._at < len(self._text) and self._peek() not in {"|", ")"}:
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _term(self) -> Tree:
        atom = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return atom
        if isinstance(atom, Assertion):
            raise PatternError("a quantifier has nothing to repeat")
        self._take("?")  # laziness does not change which strings match
        if self._quantifier() is not None:
            raise PatternError("a quantifier follows a quantifier")
        return Repeat(atom, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(mark):
                return bounds
        if self._peek() != "{":
            return None
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : max(end, 0)].partition(",")
        if end < 0 or not _is_count(least) or (most and not _is_count(most)):
            return None
        self._at = end + 1
        low = int(least)
        high = low if not comma else int(most) if most else None
        if exceeds(low, high):
            raise PatternError("the numbers of a quantifier are out of order")
        if max(low, high or 0) > MAX_QUANTIFIER:
            raise PatternError(f"a quantifier counts past {MAX_QUANTIFIER}")
        return low, high

    def _atom(self) -> Tree:
        char = self._next()
        match char:
            case "^" | "$":
                return Assertion(start=char == "^")
            case "(":
                return self._group()
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(charset.complement(charset.LINE_END))
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise PatternError("a quantifier has nothing to repeat")
            case "{" if _is_count(self._text[self._at :].partition("}")[0].partition(",")[0]):
                raise PatternError("a quantifier has nothing to repeat")
            case _:
                return Chars(_charset_of(ord(char)))

    def _group(self) -> Tree:
        look = None
        if self._take("?"):
            if self._take("="):
                look = True
            elif self._take("!"):
                look = False
            elif self._peek(2) in {"<=", "<!"}:
                raise PatternError("lookbehind is not supported")
            elif self._take("<"):
                self._group_name()
            elif not self._take(":"):
                raise PatternError("a group starts with an unknown mark after (?")
        inner = self._choice()
        if not self._take(")"):
            raise PatternError("a group is not closed")
        return inner if look is None else Lookahead(inner, look)

    def _group_name(self) -> None:
        name, found, _ = self._text[self._at :].partition(">")
        if not found or not name.replace("$", "_").isidentifier():
            raise PatternError("a group name is not valid")
        self._at += len(name) + 1

    def _escape(self) -> Tree:
        char = self._peek()
        if char in {"b", "B"}:
            raise PatternError("word boundaries are not supported")
        if char.isdigit() and char != "0":
            raise PatternError("back-references are not regular")
        if char == "k" and self._peek(2) == "k<":
            raise PatternError("back-references are not regular")
        found = self._class_escape()
        return Chars(found if found is not None else _charset_of(self._point()))

    def _class_escape(self) -> Charset | None:
        """Reads an escape of several characters; returns None, and reads nothing, at any other."""
        char = self._peek()
        if char in _CLASSES and char:
            self._at += 1
            return _CLASSES[char]
        if char not in {"p", "P"} or self._peek(2)[1:] != "{":
            return None
        name, closed, _ = self._text[self._at + 2 :].partition("}")
        found = charset.unicode_property(name) if closed else None
        if found is None:
            raise PatternError("a Unicode property is not known here")
        self._at += len(name) + 3
        return charset.complement(found) if char == "P" else found

    def _point(self) -> int:
        """Reads an escape of one code point, after its backslash."""
        char = self._next()
        if char in _CONTROL:
            return _CONTROL[char]
        match char:
            case "c" if self._peek().isascii() and self._peek().isalpha():
                return ord(self._next()) % 32
            case "0" if not self._peek().isdigit():
                return 0
            case "x":
                return self._hex(2)
            case "u" if self._take("{"):
                digits, closed, _ = self._text[self._at :].partition("}")
                if not closed or not digits or not _HEX.issuperset(digits) or int(digits, 16) > charset.LAST:
                    raise PatternError("a \\u{...} escape is not valid")
                self._at += len(digits) + 1
                return int(digits, 16)
            case "u":
                return self._pair(self._hex(4))
            case _ if char.isalnum():
                raise PatternError(f"\\{char} is no ECMA-262 escape")
            case _:
                return ord(char)

    def _pair(self, high: int) -> int:
        """Returns the code point of a surrogate pair if a second escape completes one, else `high`."""
        low = self._text[self._at + 2 : self._at + 6]
        if 0xD800 <= high < 0xDC00 and self._peek(2) == "\\u" and len(low) == 4 and _HEX.issuperset(low):
            value = int(low, 16)
            if 0xDC00 <= value < 0xE000:
                self._at += 6
                return 0x10000 + ((high - 0xD800) << 10) + value - 0xDC00
        return high

    def _hex(self, count: int) -> int:
        digits = self._peek(count)
        if len(digits) < count or not _HEX.issuperset(digits):
            raise PatternError("a hexadecimal escape is too short")
        self._at += count
        return int(digits, 16)

    def _class(self) -> Charset:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            first = self._class_atom()
            if self._peek() == "-" and self._peek(2)[1:] not in {"", "]"} and isinstance(first, int):
                self._at += 1
                last = self._class_atom()
                if not isinstance(last, int):
                    found += [(first, first), (0x2D, 0x2D), *last]
                elif last < first:
                    raise PatternError("the ends of a range are out of order")
                else:
                    found.append((first, last))
            else:
                found += [(first, first)] if isinstance(first, int) else first
        chars = charset.intersection(charset.union(found), charset.ANY)
        return charset.complement(chars) if negated else chars

    def _class_atom(self) -> int | Charset:
        char = self._next()
        if char != "\\":
            return ord(char)
        if self._take("b"):
            return 8
        if self._take("-"):
            return 0x2D
        found = self._class_escape()
        return self._point() if found is None else found


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def _charset_of(point: int) -> Charset:
    return charset.intersection(((point, point),), charset.ANY)
