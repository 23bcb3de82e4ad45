"""Words that lead on to different things, letter by letter: one live stack for the engine however many words."""

from __future__ import annotations

from collections.abc import Sequence

from b3node.grammar.gbnf.rules import Row, Rules
from b3node.grammar.gbnf.strings import literal

Entry = tuple[str, Row]
"""A word and what follows it."""


def trie(rules: Rules, entries: Sequence[Entry]) -> Row:
    """The words of `entries`, each with what follows it."""
    return (rules.of(*_branches(rules, entries, 0)),)


def _branches(rules: Rules, entries: Sequence[Entry], at: int) -> list[Row]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry[0][at : at + 1], []).append(entry)
    rows: list[Row] = []
    for letter, group in groups.items():
        if len(group) == 1 or not letter:
            rows += [(*_text(word[at:]), *after) for word, after in group]
            continue
        words = [word for word, _ in group]
        end = shared(min(words), max(words))
        rows.append((*_text(group[0][0][at:end]), rules.of(*_branches(rules, group, end))))
    return rows


def _text(text: str) -> Row:
    return (literal(text),) if text else ()


def shared(one: str, other: str) -> int:
    """Letters that two texts begin with alike."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))
