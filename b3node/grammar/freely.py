"""Languages as plain text, without quotes or escapes: what stands bare between two markers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from b3node.grammar import automaton
from b3node.grammar.charset import Charset
from b3node.grammar.regular import ALL, Algebra, Edges, Lang, Table
from b3node.grammar.rules import Row, Rules
from b3node.grammar.strings import char_class, literal

STATES: Final = 1_500
"""States that a bare text's automaton may have."""
_MAX_CHAIN: Final = 120
_BLANK: Final[Charset] = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))


def bare(rules: Rules, table: Table, tail: Row) -> Row:
    """The texts of an automaton, each followed by `tail`; a run of single letters is one literal."""
    accepting, edges = table
    if not accepting:
        return (rules.new(),)
    states = [rules.new() for _ in accepting]
    for state, ends in enumerate(accepting):
        for to, chars in _by_target(edges[state]).items():
            rules.add(states[state], _step(table, states, to, chars))
        if ends:
            rules.add(states[state], tail)
    return (states[0],)


def _step(table: Table, states: list[int], to: int, chars: Charset) -> Row:
    if len(chars) > 1 or chars[0][0] != chars[0][1]:
        return (char_class(chars), states[to])
    text = chr(chars[0][0])
    accepting, edges = table
    while not accepting[to] and len(edges[to]) == 1 and len(text) < _MAX_CHAIN:
        low, high, after = edges[to][0]
        if low != high or after == to:
            break
        text, to = text + chr(low), after
    return (literal(text), states[to])


def _by_target(edges: Edges) -> dict[int, Charset]:
    out: dict[int, list[tuple[int, int]]] = {}
    for low, high, to in edges:
        out.setdefault(to, []).append((low, high))
    return {to: tuple(pairs) for to, pairs in out.items()}


def without(algebra: Algebra, marker: str, *, exact: bool) -> Lang:
    """The texts that do not contain `marker`.

    With `exact` the marker that ends them is one token: then they do not end as it begins, because the engine would
    take the token for the text in front of it.
    """
    lang = algebra.negate(algebra.cat(ALL, algebra.text(marker), ALL))
    if exact:
        starts = [algebra.text(marker[:size]) for size in range(1, len(marker))]
        lang = algebra.both([lang, algebra.negate(algebra.cat(ALL, algebra.either(starts)))])
    return lang


def unlike(rules: Rules, heads: Sequence[str]) -> Row:
    """Any text that does not begin with one of `heads`, white space in front aside."""
    algebra = Algebra()
    blank = algebra.repeat(algebra.chars(_BLANK), 0)
    taken = algebra.cat(blank, algebra.either(algebra.text(head) for head in heads), ALL)
    return bare(rules, automaton.build(algebra, algebra.negate(taken)), ())
