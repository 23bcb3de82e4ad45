"""Automata with a bound on the length of their strings.

The exact automaton needs a state for each pair of state and length. A narrowed one accepts fewer strings and
needs fewer states.
"""

from __future__ import annotations

from b3node.grammar.languages.algebra import Dfa, TooLarge, Transitions, merge_adjacent
from b3node.grammar.languages.automaton import VOID_DFA, minimized, predecessors, renumbered


def with_length(dfa: Dfa, low: int, high: int | None, limit: int) -> Dfa:
    """Builds the minimal automaton of the accepted strings of `low` to `high` characters (None: no bound).

    Raises:
        TooLarge: `limit` states, each once for every length that is counted, do not suffice.
    """
    accepting, rows = dfa
    layers = _layers(rows, low, high, limit)
    known: dict[tuple[bool, Transitions], int] = {}
    below: dict[int, int] = {}
    if high is None:
        below = {i: known.setdefault(state, i) for i, state in enumerate(zip(accepting, rows, strict=True))}
    for length in range(len(layers) - 1, -1, -1):
        here: dict[int, int] = {}
        for state in layers[length]:
            row = _edges_into(rows[state], below)
            accept = accepting[state] and length >= low
            if row or accept:
                here[state] = known.setdefault((accept, row), len(known))
        below = here
    if 0 not in below:
        return VOID_DFA
    return renumbered([accept for accept, _ in known], [row for _, row in known], below[0])


def _layers(rows: tuple[Transitions, ...], low: int, high: int | None, limit: int) -> list[set[int]]:
    """Returns, for each length that is counted, the states that strings of that length lead to."""
    out, total = [{0}], len(rows) if high is None else 1
    for _ in range(low if high is None else high):
        total += len(out[-1])
        if total > limit:
            raise TooLarge
        out.append({to for state in out[-1] for _, _, to in rows[state]})
    return out[:-1] if high is None else out


def _edges_into(row: Transitions, below: dict[int, int]) -> Transitions:
    """Returns the edges with the numbers that their targets have in the next layer."""
    return merge_adjacent(((lo, hi, below.get(state, -1)) for lo, hi, state in row), -1)


def narrowed_to_length(dfa: Dfa, longest: int, limit: int) -> Dfa:
    """Builds an automaton of some of the accepted strings of at most `longest` characters, with few states.

    An exact count needs every state once for every length. Here the characters are counted separately in each
    loop of the automaton, up to a budget that is the same for all loops, so that the sum cannot pass
    `longest`. A string is accepted if its part in each loop is within the budget.

    Raises:
        TooLarge: the budget would be too small to be useful, or `limit` states do not suffice.
    """
    accepting, rows = dfa
    loops = _components(rows)
    sizes = [loops.count(name) for name in set(loops) if name >= 0]
    for budget in (longest, *(b for b in _LOOP_BUDGETS_CHARS if b < longest)):
        if budget * sum(sizes) <= limit and _longest_walk(rows, loops, budget) <= longest:
            return _unrolled(accepting, rows, loops, budget)
    raise TooLarge


_LOOP_BUDGETS_CHARS = (
    *(1000, 800, 600, 500, 400, 320, 256, 200, 160, 126),
    *(120, 100, 80, 64, 48, 40, 32, 24, 16, 12),
)
"""Budgets of a loop that are tried, the largest first; below the last, few useful strings are left."""


def _components(rows: tuple[Transitions, ...]) -> list[int]:
    """Returns, for each state, the number of its loop (strongly connected component); -1 if in none."""
    out, back, names = [-2] * len(rows), predecessors(list(rows)), 0
    for root in reversed(_postorder(rows)):
        if out[root] != -2:
            continue
        part, todo = {root}, [root]
        while todo:
            fresh = {i for i in back[todo.pop()] if out[i] == -2 and i not in part}
            part |= fresh
            todo.extend(fresh)
        looping = len(part) > 1 or any(to == root for _, _, to in rows[root])
        for state in part:
            out[state] = names if looping else -1
        names += looping
    return out


def _postorder(rows: tuple[Transitions, ...]) -> list[int]:
    """Returns the states in the order in which a depth-first walk from the start leaves them."""
    out, seen = list[int](), {0}
    work = [(0, iter(rows[0]))]
    while work:
        at, edges = work[-1]
        for _, _, to in edges:
            if to not in seen:
                seen.add(to)
                work.append((to, iter(rows[to])))
                break
        else:
            out.append(at)
            work.pop()
    return out


def _longest_walk(rows: tuple[Transitions, ...], loops: list[int], budget: int) -> int:
    """Returns the length of the longest string if each loop is walked for at most `budget` characters."""
    best: dict[int, int] = {}

    def walk(name: int) -> int:
        if name not in best:
            best[name] = 0
            inside = [i for i in range(len(rows)) if (loops[i] if loops[i] >= 0 else -2 - i) == name]
            out = 0
            for i in inside:
                for _, _, to in rows[i]:
                    other = loops[to] if loops[to] >= 0 else -2 - to
                    if other != name:
                        out = max(out, 1 + walk(other))
            best[name] = out + (budget if name >= 0 else 0)
        return best[name]

    return walk(loops[0] if loops[0] >= 0 else -2)


def _unrolled(
    accepting: tuple[bool, ...], rows: tuple[Transitions, ...], loops: list[int], budget: int
) -> Dfa:
    """Returns the automaton with a state for each count of characters in each loop."""
    numbers, order = {(0, 0): 0}, [(0, 0)]
    out: list[Transitions] = []
    for at, count in order:  # grows while it is walked
        row = []
        for lo, hi, to in rows[at]:
            same = loops[to] >= 0 and loops[to] == loops[at]
            key = (to, count + 1 if same else 0)
            if key[1] > budget:
                continue
            if key not in numbers:
                numbers[key] = len(order)
                order.append(key)
            row.append((lo, hi, numbers[key]))
        out.append(tuple(row))
    return minimized([accepting[at] for at, _ in order], out)
