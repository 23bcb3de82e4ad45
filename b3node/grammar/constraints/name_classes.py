"""Member names: those that have a slot, and the classes into which all others fall.

The patterns of a shape cut the names without a slot into classes. Each class is a language that is not empty,
with the constraint on the values under its names. All classes together are the names that may be written.
"""

from __future__ import annotations

from typing import Final

from b3node.grammar.constraints.literals import FALSE, Lits, all_of
from b3node.grammar.constraints.object_shape import NameSet, ObjectShape
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import ALL, VOID, Algebra, Lang, TooLarge

MAX_CLASSES: Final = 64
"""Classes into which the patterns of one object may cut the names without a slot."""

NameClass = tuple[Lang, Lits, list[NameSet]]
"""The names, the constraint on their values, and the name sets of the shape that contain them."""


def slot_names(shape: ObjectShape) -> list[str]:
    """Returns the names with slots.

    Declared names come first, in order, then names that are only required, then other names that are
    mentioned.
    """
    mentioned = {w.key for clause in shape.clauses for w in clause if isinstance(w.key, str)}
    out = dict.fromkeys(name for name, _ in shape.properties)
    out |= dict.fromkeys(name for name in shape.required_order if name in mentioned)
    out |= dict.fromkeys(sorted(mentioned))
    out |= dict.fromkeys(sorted(name for keys, _ in shape.name_sets for name in keys.names))
    return list(out)


def sort_key(key: str | NameSet) -> str:
    """Returns a text by which names and name sets have the same order in every process."""
    if isinstance(key, str):
        return repr(key)
    return f"NameSet({_listed(key.names)}, {_listed(key.langs)}, {key.others})"


def _listed(parts: frozenset[str] | frozenset[Lang]) -> str:
    return f"({{{', '.join(map(repr, sorted(parts)))}}})" if parts else "()"


def name_classes(algebra: Algebra, shape: ObjectShape, names: list[str]) -> list[NameClass]:
    """Returns the classes of names without a slot.

    Raises:
        Inexact: there are too many classes, or they need too many states.
    """
    witnesses = {w.key for clause in shape.clauses for w in clause if isinstance(w.key, NameSet)}
    name_sets = sorted((keys for keys, _ in shape.name_sets), key=sort_key) + sorted(witnesses, key=sort_key)
    langs = list(dict.fromkeys(lang for keys in name_sets for lang in sorted(keys.langs)))
    free = algebra.negate(algebra.from_dfa(automaton.from_strings(names))) if names else ALL
    out = []
    for within, lang in _cells(algebra, langs, free):
        inside = [keys for keys in name_sets if any(each in within for each in keys.langs) != keys.others]
        lits = all_of(*(lits for keys, lits in shape.name_sets if keys in inside))
        if lits != FALSE:
            out.append((lang, lits, inside))
    return out


def _cells(algebra: Algebra, langs: list[Lang], free: Lang) -> list[tuple[frozenset[Lang], Lang]]:
    """Returns every combination of languages that contains a name.

    Each comes with the names of exactly that combination.
    """
    cells: list[tuple[frozenset[Lang], Lang]] = [(frozenset(), free)]
    for lang in langs:
        fresh = []
        for within, cell in cells:
            inside = algebra.both([cell, lang])
            outside = algebra.both([cell, algebra.negate(lang)])
            fresh += [(within | {lang}, inside)] if has_names(algebra, inside) else []
            fresh += [(within, outside)] if has_names(algebra, outside) else []
        cells = fresh
        if len(cells) > MAX_CLASSES:
            raise Inexact("", "the patterns of member names overlap in too many ways")
    return cells


def has_names(algebra: Algebra, lang: Lang) -> bool:
    """Returns True if a language has a name. Raises `Inexact` if that takes too many states."""
    try:
        return lang != VOID and not automaton.is_void(algebra, lang)
    except TooLarge:
        raise Inexact("", "the patterns of member names need too many states") from None
