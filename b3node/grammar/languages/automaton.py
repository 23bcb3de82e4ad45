"""Minimal deterministic automata of expressions of the algebra.

The result is trimmed (every state is reached and can still accept) and numbered breadth first from the
start, so two automata of the same language are equal values. The empty language has no states.
"""

from __future__ import annotations

import re
from typing import Final

from b3node.grammar.languages.algebra import (
    VOID,
    Algebra,
    Dfa,
    Lang,
    TooLarge,
    Transitions,
    all_to,
    complete_edges,
    leads_all_to,
    merge_adjacent,
)

VOID_DFA: Dfa = ((), ())
"""The automaton of the empty language."""


def build(algebra: Algebra, lang: Lang, limit: int = 4_000) -> Dfa:
    """Builds the minimal automaton of `lang`.

    Raises:
        TooLarge: more than `limit` states before minimizing, or the algebra is full.
    """
    known = _existing(algebra, lang)
    if known is not None:
        if len(known[0]) > limit:
            raise TooLarge
        return known
    numbers, order = {lang: 0}, [lang]
    rows: list[Transitions] = []
    for at in order:  # grows while it is walked
        row = []
        for lo, hi, to in algebra.edges(at):
            if to not in numbers:
                if len(order) >= limit:
                    raise TooLarge
                numbers[to] = len(order)
                order.append(to)
            row.append((lo, hi, numbers[to]))
        rows.append(tuple(row))
    return minimized([algebra.nullable(at) for at in order], rows)


def _existing(algebra: Algebra, lang: Lang) -> Dfa | None:
    """Returns the automaton of a language made from one, or from the complement of one; else None."""
    dfa = algebra.dfa_of(lang)
    if dfa is None and algebra.expression(lang)[0] == "not":
        inner = algebra.dfa_of(algebra.expression(lang)[1])
        return None if inner is None else complement(inner)
    return dfa


def complement(dfa: Dfa) -> Dfa:
    """Returns the minimal automaton of the strings that `dfa` does not accept; `dfa` must be minimal."""
    accepting, rows = dfa
    free = len(rows)
    dead = next((i for i, row in enumerate(rows) if accepting[i] and leads_all_to(row, i)), -1)
    full = [tuple([edge for edge in complete_edges(row, free) if edge[2] != dead]) for row in rows]
    if dead == 0:
        return VOID_DFA
    return renumbered([*(not each for each in accepting), True], [*full, all_to(free)])


def minimized(accepting: list[bool], rows: list[Transitions]) -> Dfa:
    """Minimizes an automaton.

    Partition refinement: a block is split again only where a state leads into a block that was split.
    """
    back = predecessors(rows)
    alive = _alive(accepting, back)
    if not alive[0]:
        return VOID_DFA
    block = [int(accept) if alive[i] else -1 for i, accept in enumerate(accepting)]
    members = {name: {i for i, each in enumerate(block) if each == name} for name in (0, 1)}
    dirty = members[0] | members[1]
    names = 2
    while dirty:
        fresh: dict[int, int] = {}
        for name in {block[i] for i in dirty}:
            for part in _split(rows, block, members[name], members[name] & dirty):
                members[name] -= part
                members[names] = part
                fresh.update(dict.fromkeys(part, names))
                names += 1
        for i, name in fresh.items():
            block[i] = name
        dirty = {i for state in fresh for i in back[state] if alive[i]}
    return _numbered(accepting, rows, block)


def _split(rows: list[Transitions], block: list[int], group: set[int], dirty: set[int]) -> list[set[int]]:
    """Returns the parts to split off a block: all but the largest, or but that of the states not dirty."""
    parts: dict[Transitions, set[int]] = {}
    for i in dirty:
        parts.setdefault(_to_blocks(rows[i], block), set()).add(i)
    if len(dirty) < len(group):
        rest = next(i for i in group if i not in dirty)
        parts.pop(_to_blocks(rows[rest], block), None)
    else:
        parts.pop(max(parts, key=lambda key: len(parts[key])))
    return list(parts.values())


def predecessors(rows: list[Transitions]) -> list[list[int]]:
    """Returns, for each state, the states with an edge to it."""
    back: list[list[int]] = [[] for _ in rows]
    for i, row in enumerate(rows):
        for _, _, to in row:
            back[to].append(i)
    return back


def _to_blocks(row: Transitions, block: list[int]) -> Transitions:
    """Returns the edges with blocks as targets; edges to dead states, whose block is -1, are left out."""
    return merge_adjacent(((lo, hi, block[state]) for lo, hi, state in row), -1)


def _alive(accepting: list[bool], back: list[list[int]]) -> list[bool]:
    """Returns, for each state, whether it can reach an accepting one."""
    alive, todo = accepting.copy(), [i for i, accept in enumerate(accepting) if accept]
    while todo:
        for i in back[todo.pop()]:
            if not alive[i]:
                alive[i] = True
                todo.append(i)
    return alive


def _numbered(accepting: list[bool], rows: list[Transitions], block: list[int]) -> Dfa:
    member = {number: i for i, number in reversed(list(enumerate(block)))}
    numbers, order = {block[0]: 0}, [block[0]]
    out = []
    for at in order:  # grows while it is walked
        row = []
        for lo, hi, to in _to_blocks(rows[member[at]], block):
            if to not in numbers:
                numbers[to] = len(order)
                order.append(to)
            row.append((lo, hi, numbers[to]))
        out.append(tuple(row))
    return tuple(accepting[member[at]] for at in order), tuple(out)


def renumbered(accepting: list[bool], rows: list[Transitions], start: int = 0) -> Dfa:
    """Numbers an automaton breadth first from its start; unreachable states are dropped."""
    numbers, order = {start: 0}, [start]
    out = []
    for at in order:  # grows while it is walked
        row = []
        for lo, hi, to in rows[at]:
            number = numbers.get(to)
            if number is None:
                number = numbers[to] = len(order)
                order.append(to)
            row.append((lo, hi, number))
        out.append(tuple(row))
    return tuple([accepting[at] for at in order]), tuple(out)


def is_void(algebra: Algebra, lang: Lang, limit: int = 4_000) -> bool:
    """Returns whether the language has no string.

    Raises:
        TooLarge: the search needs more than `limit` states.
    """
    seen, todo = {lang}, [lang]
    while todo:
        at = todo.pop()
        if algebra.nullable(at):
            return False
        for _, _, to in algebra.edges(at):
            if to not in seen and to != VOID:
                if len(seen) >= limit:
                    raise TooLarge
                seen.add(to)
                todo.append(to)
    return True


def length_range(dfa: Dfa) -> tuple[int, int | None]:
    """Returns the shortest and the longest length of the accepted strings; a longest of None is no bound."""
    accepting, rows = dfa
    depth, level, shortest = 0, {0}, -1
    while level and depth <= len(rows):
        if shortest < 0 and any(accepting[i] for i in level):
            shortest = depth
        level = {to for i in level for _, _, to in rows[i]}
        depth += 1
    return shortest, None if level else depth - 1


def accepted_strings(dfa: Dfa, limit: int) -> list[str] | None:
    """Returns all accepted strings, sorted, if there are at most `limit`; else None."""
    accepting, rows = dfa
    if not rows:
        return []
    if length_range(dfa)[1] is None:
        return None
    out: list[str] = []
    todo = [(0, "")]
    while todo:
        at, text = todo.pop()
        if accepting[at]:
            out.append(text)
        todo.extend(
            (to, text + chr(p)) for lo, hi, to in rows[at] for p in range(lo, min(hi, lo + limit) + 1)
        )
        if len(out) > limit or len(todo) > 4 * limit:
            return None
    return sorted(out)


def from_strings(texts: list[str]) -> Dfa:
    """Builds the minimal automaton of a finite list of strings, incrementally (Daciuk et al., 2000)."""
    group = sorted({text for text in texts if _SURROGATE.search(text) is None})
    if not group:
        return VOID_DFA
    known: dict[tuple[bool, Transitions], int] = {}
    path: list[_OpenState] = [_OpenState()]
    before = ""
    for text in group:
        alike = common_prefix(before, text)
        _close(path, before, alike, known)
        path += [_OpenState() for _ in text[alike:]]
        path[-1].accepting = True
        before = text
    _close(path, before, 0, known)
    start = known.setdefault((path[0].accepting, tuple(path[0].edges)), len(known))
    return renumbered([accept for accept, _ in known], [row for _, row in known], start)


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class _OpenState:
    """A state on the path of the last word: later words may still add edges to it."""

    def __init__(self) -> None:
        self.accepting = False
        self.edges: list[tuple[int, int, int]] = []


def common_prefix(one: str, other: str) -> int:
    """Returns the length of the common prefix of two texts."""
    most = min(len(one), len(other))
    return next((i for i in range(most) if one[i] != other[i]), most)


def _close(path: list[_OpenState], word: str, depth: int, known: dict[tuple[bool, Transitions], int]) -> None:
    """Numbers the states of a word after its first `depth` letters: no later word passes through them."""
    while len(path) > depth + 1:
        last = path.pop()
        to = known.setdefault((last.accepting, tuple(last.edges)), len(known))
        point, edges = ord(word[len(path) - 1]), path[-1].edges
        if edges and edges[-1][1:] == (point - 1, to):
            edges[-1] = (edges[-1][0], point, to)
        else:
            edges.append((point, point, to))
