"""Alternatives said as one shape, where one shape can say them."""

from __future__ import annotations

from typing import Final

from b3node.grammar.constraints.shapes import (
    FALSE,
    TRUE,
    Array,
    Clause,
    Dnf,
    Object,
    Spot,
    Witness,
    tidy_object,
)
from b3node.grammar.languages.algebra import Algebra

MAX_CLAUSES: Final = 12
"""Clauses that a disjunction may become, before it stays a list of shapes."""


def _as_clauses(shape: Object) -> list[Clause] | None:
    """The shape as clauses alone, when it can be said so."""
    if shape.wide or shape.low or shape.high >= 0 or shape.values is not None or shape.seen:
        return None
    out = list(shape.clauses)
    for name, lits in shape.named:
        if lits == FALSE:
            out.append(frozenset({Witness(name, None)}))
        elif lits != TRUE:
            out.append(frozenset({Witness(name, None), Witness(name, lits)}))
    return out


def of_arrays(shapes: Dnf) -> Dnf:
    """Alternatives that are all made of clauses are one conjunction of clauses, when they are few."""
    clausal = [list(s.clauses) for s in shapes if isinstance(s, Array) and s.only_clauses()]
    if len(clausal) < len(shapes):
        return shapes
    product: list[frozenset[Spot]] = [frozenset()]
    for clauses in clausal:
        product = list(dict.fromkeys(a | b for a in product for b in clauses))
        if len(product) > MAX_CLAUSES:
            return shapes
    return (Array(clauses=frozenset(product)),)


def of_objects(algebra: Algebra, shapes: Dnf) -> Dnf:
    """Alternatives that are all made of clauses are one conjunction of clauses, when they are few."""
    clausal: list[list[Clause]] = []
    for shape in shapes:
        clauses = _as_clauses(shape) if isinstance(shape, Object) else None
        if clauses is None:
            return shapes
        clausal.append(clauses)
    product: list[Clause] = [frozenset()]
    for clauses in clausal:
        product = list(dict.fromkeys(a | b for a in product for b in clauses))
        if len(product) > MAX_CLAUSES:
            return shapes
    order = dict.fromkeys(n for s in shapes if isinstance(s, Object) for n in (*dict(s.named), *s.order))
    met = tidy_object(algebra, Object(clauses=frozenset(product), order=tuple(order)))
    return (met,) if met is not None else ()
