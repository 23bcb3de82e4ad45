"""Member names: which have a slot, and into which classes all others fall.

The classes are cut by the patterns of the shape, within the complement of the names that have slots. Each is a
language, not empty, with the obligation of the values under its names; together they are all names that may
be written.
"""

from __future__ import annotations

from typing import Final

from b3node.grammar.constraints.shapes import FALSE, Keys, Lits, Object, all_of
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import ALL, VOID, Algebra, Lang, TooLarge

MAX_CLASSES: Final = 64
"""Classes of names that the patterns of one object may cut the other names into."""

NameClass = tuple[Lang, Lits, list[Keys]]
"""The names, the obligation of their values, and the classes of the shape that they are in."""


def names_of(shape: Object) -> list[str]:
    """The names with slots: those declared, in order, then those only required, then others that matter."""
    mentioned = {w.key for clause in shape.clauses for w in clause if isinstance(w.key, str)}
    out = dict.fromkeys(name for name, _ in shape.named)
    out |= dict.fromkeys(name for name in shape.order if name in mentioned)
    out |= dict.fromkeys(sorted(mentioned))
    out |= dict.fromkeys(sorted(name for keys, _ in shape.wide for name in keys.names))
    return list(out)


def order_of(key: str | Keys) -> str:
    """A text by which names and classes of names have the same order in every process."""
    if isinstance(key, str):
        return repr(key)
    return f"Keys({_listed(key.names)}, {_listed(key.langs)}, {key.others})"


def _listed(parts: frozenset[str] | frozenset[Lang]) -> str:
    return f"({{{', '.join(map(repr, sorted(parts)))}}})" if parts else "()"


def name_classes(algebra: Algebra, shape: Object, names: list[str]) -> list[NameClass]:
    """The classes of names without a slot.

    Raises:
        Inexact: too many classes, or too many states to tell them apart.
    """
    witnesses = {w.key for clause in shape.clauses for w in clause if isinstance(w.key, Keys)}
    kinds = sorted((keys for keys, _ in shape.wide), key=order_of) + sorted(witnesses, key=order_of)
    langs = list(dict.fromkeys(lang for keys in kinds for lang in sorted(keys.langs)))
    free = algebra.negate(algebra.table(automaton.words(names))) if names else ALL
    out = []
    for within, lang in _cells(algebra, langs, free):
        inside = [keys for keys in kinds if any(each in within for each in keys.langs) != keys.others]
        lits = all_of(*(lits for keys, lits in shape.wide if keys in inside))
        if lits != FALSE:
            out.append((lang, lits, inside))
    return out


def _cells(algebra: Algebra, langs: list[Lang], free: Lang) -> list[tuple[frozenset[Lang], Lang]]:
    """Every combination of languages that some name is in, with the names of exactly that combination."""
    cells: list[tuple[frozenset[Lang], Lang]] = [(frozenset(), free)]
    for lang in langs:
        fresh = []
        for within, cell in cells:
            inside = algebra.both([cell, lang])
            outside = algebra.both([cell, algebra.negate(lang)])
            fresh += [(within | {lang}, inside)] if is_some(algebra, inside) else []
            fresh += [(within, outside)] if is_some(algebra, outside) else []
        cells = fresh
        if len(cells) > MAX_CLASSES:
            raise Inexact("", "the patterns of member names overlap in too many ways")
    return cells


def is_some(algebra: Algebra, lang: Lang) -> bool:
    """Whether a language has a name. Raises `Inexact` when that takes too many states."""
    try:
        return lang != VOID and not automaton.is_void(algebra, lang)
    except TooLarge:
        raise Inexact("", "the patterns of member names need too many states") from None
