"""Languages as rules: JSON strings for string values and member names, plain text for numbers.

Each character of a JSON string has one spelling: raw UTF-8, except the quote, the backslash and the control
characters up to U+001F, which are escaped (with the short escape where there is one). If a language is a
counted repetition of one class, it is written as such, which needs a few rules for any count. Else it is a
minimal automaton written as right-linear rules, which the engine runs on one stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from b3node.grammar.counts import tighter_bound
from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Rules, Symbols, Times
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton, bounded
from b3node.grammar.languages.algebra import ALL, Algebra, Dfa, Lang, TooLarge, Transitions, leads_all_to
from b3node.grammar.languages.charset import ANY, Charset, intersection

QUOTE: Final = '"\\""'
_SHORT: Final = {0x22: '\\"', 0x5C: "\\\\", 8: "b", 9: "t", 0xA: "n", 0xC: "f", 0xD: "r"}
_RAW: Final[Charset] = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_CONTROLS: Final = tuple(point for point in range(0x20) if point not in _SHORT)
_ESCAPED: Final[Charset] = ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))
_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
"""Texts that need no escape in a GBNF literal."""
_UNESCAPED: Final = re.compile(r'[^"\\\x00-\x1f]*')
"""Texts that need no escape in a JSON string."""
_MAX_INLINE_CLASS_CHARS: Final = 12
"""Characters of GBNF above which a class is a rule of its own, shared by all states that use it."""
_MAX_LITERAL_CHARS: Final = 120
"""Letters of one literal of a chain of states; longer chains continue in the next rule."""
_MAX_COUNTED_STATES: Final = 2_600
"""States that a pattern with a length may need before it is narrowed."""
_MAX_TRIED_STATES: Final = 8_000
"""States times length up to which an exact count is tried, as many of those may not be reached."""
MAX_LOOP_DIGITS: Final = 32
"""Digits where any number could follow: enough for any value, and a bound on runaway digits."""


def literal(text: str) -> str:
    """Returns a GBNF literal of exactly `text`."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return f'"{"".join(map(_quoted, text))}"'


def _quoted(char: str) -> str:
    point = ord(char)
    if char in '"\\':
        return "\\" + char
    if 0x20 <= point < 0x7F:
        return char
    if point > 0xFFFF:
        return f"\\U{point:08X}"
    return f"\\u{point:04X}" if point > 0xFF else f"\\x{point:02X}"


@lru_cache(maxsize=2048)
def char_class(chars: Charset) -> str:
    """Returns a GBNF class of exactly these characters; a literal if there is one character."""
    if len(chars) == 1 and chars[0][0] == chars[0][1]:
        return literal(chr(chars[0][0]))
    return "[" + "".join(_point(lo) if lo == hi else f"{_point(lo)}-{_point(hi)}" for lo, hi in chars) + "]"


def _point(point: int) -> str:
    if point in {0x5B, 0x5D, 0x5C, 0x2D}:
        return "\\" + chr(point)
    if 0x20 <= point < 0x7F and point != 0x5E:
        return chr(point)
    return f"\\x{point:02X}" if point <= 0xFF else f"\\u{point:04X}" if point <= 0xFFFF else f"\\U{point:08X}"


def escaped(text: str) -> str:
    """Returns `text` escaped for a JSON string, without the quotes."""
    if _UNESCAPED.fullmatch(text):
        return text
    return "".join(_escape(ord(char)) or char for char in text)


def _escape(point: int) -> str:
    if point in _SHORT:
        return "\\" + _SHORT[point].removeprefix("\\")
    return f"\\u{point:04x}" if point < 0x20 else ""


@lru_cache(maxsize=2048)
def spellings(chars: Charset) -> tuple[str, ...]:
    """Returns the GBNF alternatives for one character of the set inside a JSON string."""
    out = []
    if raw := intersection(chars, _RAW):
        out.append(char_class(raw))
    special = intersection(chars, _ESCAPED)
    if special == _ESCAPED:
        return (*out, '"\\\\" escape')
    points = {p for lo, hi in special for p in range(lo, hi + 1)}
    short = [_SHORT[point] for point in _SHORT if point in points]
    controls = [point for point in _CONTROLS if point in points]
    if short:
        out.append('"\\\\" [' + "".join(short) + "]")
    if len(controls) == len(_CONTROLS):
        out.append('"\\\\u00" control')
    else:
        out += [f'"\\\\u{point:04x}"' for point in controls]
    return tuple(out)


class Strings:
    """Rules of languages, each made once.

    Args:
        algebra: has the languages.
        rules: receives the rules.
        state_limit: states that an automaton may have.
    """

    def __init__(self, algebra: Algebra, rules: Rules, state_limit: int) -> None:
        self._algebra = algebra
        self._rules = rules
        self._limit = state_limit
        self._tails: dict[Lang, Symbols] = {}
        self._classes: dict[Charset, int] = {}
        self._dfas: dict[Dfa, Symbols] = {}

    def value(self, lang: Lang) -> Symbols:
        """Returns a JSON string of the language, with its quotes; the language must not be void.

        Raises:
            Inexact: the automaton would be too large.
        """
        return ("string",) if lang == ALL else (QUOTE, *self.tail(lang))

    def tail(self, lang: Lang) -> Symbols:
        """Returns the same as `value` after the opening quote.

        Raises:
            Inexact: the automaton would be too large.
        """
        if lang == ALL:
            return ("chars",)
        if lang not in self._tails:
            counted = self._counted(lang)
            self._tails[lang] = (self._rules.of(counted),) if counted else self._automaton(lang)
        return self._tails[lang]

    def _counted(self, lang: Lang) -> Symbols | None:
        """Returns counted classes if the language is a sequence of them and its automaton would be large."""
        parts, total = [], 0
        for part in self._parts(lang):
            plain = self._algebra.plain_repeat(part)
            if plain is None:
                return None
            total += max(plain[1], plain[2] or 0)
            parts.append(plain)
        if total < 24 and (len(parts) > 1 or parts[0][2] is not None):
            return None
        return (*(Times(self.char(chars), low, high) for chars, low, high in parts), QUOTE)

    def _parts(self, lang: Lang) -> list[Lang]:
        out, key = [], self._algebra.expression(lang)
        while key[0] == "cat":
            out.append(key[1])
            lang = key[2]
            key = self._algebra.expression(lang)
        return [*out, lang]

    def char(self, chars: Charset) -> int:
        """Returns the rule for one character of the set inside a JSON string."""
        if chars not in self._classes:
            rows: list[Symbols] = [("char",)] if chars == ANY else [(piece,) for piece in spellings(chars)]
            self._classes[chars] = self._rules.of(*rows)
        return self._classes[chars]

    def _automaton(self, lang: Lang) -> Symbols:
        try:
            dfa = self._build_dfa(lang)
        except TooLarge:
            raise Inexact("", "the pattern, format and lengths together need too many states") from None
        if not dfa[0]:
            return (self._rules.new(),)
        if dfa not in self._dfas:
            self._dfas[dfa] = _DfaWriter(self._rules, dfa, self.char).start()
        return self._dfas[dfa]

    def _build_dfa(self, lang: Lang) -> Dfa:
        """Builds the automaton of a language; a narrower one if its lengths need too many states.

        Raises:
            TooLarge: no automaton is small enough.
        """
        parts = list(self._algebra.operands(lang)) if self._algebra.expression(lang)[0] == "and" else []
        lengths = [p for p in parts if (plain := self._algebra.plain_repeat(p)) and plain[0] == ANY]
        if len(lengths) != 1:
            return automaton.build(self._algebra, lang, self._limit)
        parts.remove(lengths[0])
        rest = automaton.build(self._algebra, self._algebra.both(parts), self._limit)
        _, low, high = self._algebra.plain_repeat(lengths[0]) or (ANY, 0, None)
        shortest, longest = automaton.length_range(rest) if rest[0] else (low, 0)
        if shortest >= low and tighter_bound(longest, high) == longest:
            return rest
        for count in (self._count_exactly, self._count_plain_parts, self._count_by_loop):
            dfa = count(parts, rest, low, high)
            if dfa is not None:
                return dfa
        raise TooLarge

    def _count_exactly(self, _: list[Lang], rest: Dfa, low: int, high: int | None) -> Dfa | None:
        """Builds the exact automaton, a state for each pair of state and length; None if too large."""
        if len(rest[0]) * max(low, high or 0) > _MAX_TRIED_STATES:
            return None
        try:
            return self._within([self._algebra.from_dfa(rest)], low, high)
        except TooLarge:
            return None

    def _count_plain_parts(self, parts: list[Lang], _: Dfa, low: int, high: int | None) -> Dfa | None:
        """Counts with the plain parts of the formats instead of the formats; None if that does not help."""
        if high is None:
            return None
        langs, longest = [], high
        for part in parts:
            dfa = self._algebra.dfa_of(part)
            plain = library.plain_part(dfa) if dfa is not None else None
            langs.append(part if plain is None else self._algebra.from_dfa(plain[0]))
            longest = longest if plain is None else min(longest, plain[1])
        if langs == parts or longest < low:
            return None
        try:
            return self._within(langs, low, longest)
        except TooLarge:
            return None

    def _count_by_loop(self, _: list[Lang], rest: Dfa, low: int, high: int | None) -> Dfa | None:
        """Counts the characters of each loop of the automaton separately; None if too large."""
        try:
            dfa = bounded.narrowed_to_length(rest, high, _MAX_COUNTED_STATES) if high is not None else rest
            return self._within([self._algebra.from_dfa(dfa)], low, None)
        except TooLarge:
            return None

    def _within(self, langs: list[Lang], low: int, high: int | None) -> Dfa:
        dfa = self._algebra.dfa_of(langs[0]) if len(langs) == 1 else None
        if dfa is not None and (low > 0 or high is not None):
            found = bounded.with_length(dfa, low, high, _MAX_COUNTED_STATES)
            self._algebra.spend(len(found[0]))
            return found
        counted = self._algebra.repeat(self._algebra.chars(ANY), low, high)
        return automaton.build(self._algebra, self._algebra.both([*langs, counted]), _MAX_COUNTED_STATES)

    def number(self, lang: Lang) -> Symbols:
        """Returns a number of the language, as plain text.

        Raises:
            Inexact: the automaton would be too large.
        """
        try:
            dfa = automaton.build(self._algebra, lang, self._limit)
        except TooLarge:
            raise Inexact("", "the bounds and divisors of a number need too many states") from None
        if not dfa[0]:
            return (self._rules.new(),)
        numbers = [self._rules.new() for _ in dfa[0]]
        for state, (accepting, edges) in enumerate(zip(*dfa, strict=True)):
            targets = _by_target(edges)
            again = targets.pop(state, None)
            rows: list[Symbols] = [(char_class(chars), numbers[to]) for to, chars in targets.items()]
            rows += [()] if accepting else []
            if again is not None:
                counted = f"{char_class(again)}{{0,{MAX_LOOP_DIGITS}}}"
                rows = [(counted,)] if rows == [()] else [(counted, self._rules.of(*rows))]
            for row in rows:
                self._rules.add(numbers[state], row)
        return (numbers[0],)


def _by_target(edges: Transitions) -> dict[int, Charset]:
    out: dict[int, list[tuple[int, int]]] = {}
    for lo, hi, to in edges:
        out.setdefault(to, []).append((lo, hi))
    return {to: tuple(pairs) for to, pairs in out.items()}


class _DfaWriter:
    """Writer of one automaton as rules; a run of single letters is one literal."""

    def __init__(self, rules: Rules, dfa: Dfa, char: Callable[[Charset], int]) -> None:
        self._rules = rules
        self._char = char
        self._accepting, self._edges = dfa
        self._numbers: dict[int, int] = {}
        self._rows: dict[int, Symbols] = {}
        self._todo: list[int] = []

    def start(self) -> Symbols:
        row = self._after(0, "")
        while self._todo:
            state = self._todo.pop()
            rule = self._numbers[state]
            if self._accepting[state]:
                self._rules.add(rule, (QUOTE,))
            for to, chars in _by_target(self._edges[state]).items():
                for out in self._steps(to, chars):
                    self._rules.add(rule, out)
        return row

    def _steps(self, to: int, chars: Charset) -> list[Symbols]:
        if len(chars) == 1 and chars[0][0] == chars[0][1]:
            return [self._after(to, chr(chars[0][0]))]
        pieces = spellings(chars)
        if len(pieces) == 1 and len(pieces[0]) <= _MAX_INLINE_CLASS_CHARS:
            return [(pieces[0], *self._after(to, ""))]
        return [(self._char(chars), *self._after(to, ""))]

    def _after(self, state: int, text: str) -> Symbols:
        """Returns the literal of `text` and all forced letters after it, then the symbols of the state."""
        while not self._accepting[state] and len(self._edges[state]) == 1 and len(text) < _MAX_LITERAL_CHARS:
            lo, hi, to = self._edges[state][0]
            if lo != hi or to == state:
                break
            text, state = text + chr(lo), to
        if not text:
            return self._into(state)
        return (literal(escaped(text)), *self._into(state))

    def _into(self, state: int) -> Symbols:
        """Returns the symbols of a state, the same at every call."""
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = self._new_state(state)
        return row

    def _new_state(self, state: int) -> Symbols:
        """Makes the symbols of a state: a rule to be filled later, unless none is needed."""
        if not self._edges[state]:
            return (QUOTE,)
        if self._accepting[state] and leads_all_to(self._edges[state], state):
            return ("chars",)
        self._numbers[state] = rule = self._rules.new()
        self._todo.append(state)
        return (rule,)
