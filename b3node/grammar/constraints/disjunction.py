"""Disjunctions of shapes as one shape, where one shape can describe them."""

from __future__ import annotations

from typing import Final

from b3node.grammar.constraints.array_shape import ArrayShape, ItemWitness
from b3node.grammar.constraints.literals import FALSE, TRUE
from b3node.grammar.constraints.object_shape import Clause, MemberWitness, ObjectShape, simplify_object
from b3node.grammar.constraints.shapes import Dnf
from b3node.grammar.languages.algebra import Algebra

MAX_CLAUSES: Final = 12
"""Clauses that a disjunction may become; with more it stays a list of shapes."""


def _as_clauses(shape: ObjectShape) -> list[Clause] | None:
    """Returns the shape as clauses alone, or None if clauses cannot describe it."""
    if shape.name_sets or shape.low or shape.high is not None or shape.values is not None or shape.evaluated:
        return None
    out = list(shape.clauses)
    for name, lits in shape.properties:
        if lits == FALSE:
            out.append(frozenset({MemberWitness(name, None)}))
        elif lits != TRUE:
            out.append(frozenset({MemberWitness(name, None), MemberWitness(name, lits)}))
    return out


def of_arrays(shapes: Dnf) -> Dnf:
    """Merges alternatives that consist of clauses into one conjunction of clauses, if those are few."""
    clausal = [list(s.clauses) for s in shapes if isinstance(s, ArrayShape) and s.has_only_clauses()]
    if len(clausal) < len(shapes):
        return shapes
    product: list[frozenset[ItemWitness]] = [frozenset()]
    for clauses in clausal:
        product = list(dict.fromkeys(a | b for a in product for b in clauses))
        if len(product) > MAX_CLAUSES:
            return shapes
    return (ArrayShape(clauses=frozenset(product)),)


def of_objects(algebra: Algebra, shapes: Dnf) -> Dnf:
    """Merges alternatives that consist of clauses into one conjunction of clauses, if those are few."""
    clausal: list[list[Clause]] = []
    for shape in shapes:
        clauses = _as_clauses(shape) if isinstance(shape, ObjectShape) else None
        if clauses is None:
            return shapes
        clausal.append(clauses)
    product: list[Clause] = [frozenset()]
    for clauses in clausal:
        product = list(dict.fromkeys(a | b for a in product for b in clauses))
        if len(product) > MAX_CLAUSES:
            return shapes
    order = dict.fromkeys(
        n for s in shapes if isinstance(s, ObjectShape) for n in (*dict(s.properties), *s.required_order)
    )
    met = simplify_object(algebra, ObjectShape(clauses=frozenset(product), required_order=tuple(order)))
    return (met,) if met is not None else ()
