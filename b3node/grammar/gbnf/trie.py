"""Prefix trees of words as rules: one live stack for the engine, however many words there are."""

from __future__ import annotations

from collections.abc import Sequence

from b3node.grammar.gbnf.rules import Rules, Symbols
from b3node.grammar.gbnf.strings import literal
from b3node.grammar.languages.automaton import common_prefix

Entry = tuple[str, Symbols]
"""A word and the symbols that follow it."""


def trie(rules: Rules, entries: Sequence[Entry]) -> Symbols:
    """Returns one symbol for the words of `entries`, each with the symbols that follow it."""
    return (rules.of(*branches(rules, entries)),)


def branches(rules: Rules, entries: Sequence[Entry], start: int = 0) -> list[Symbols]:
    """Returns the alternatives at the root of a trie, one for each next letter.

    Args:
        rules: receives a rule for each inner node.
        entries: words with the symbols that follow them; they agree in the letters before `start`.
        start: letters that are already written.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry[0][start : start + 1], []).append(entry)
    rows: list[Symbols] = []
    for letter, group in groups.items():
        if len(group) == 1 or not letter:
            rows += [(*_text(word[start:]), *after) for word, after in group]
            continue
        words = [word for word, _ in group]
        end = common_prefix(min(words), max(words))
        rows.append((*_text(group[0][0][start:end]), rules.of(*branches(rules, group, end))))
    return rows


def _text(text: str) -> Symbols:
    return (literal(text),) if text else ()
