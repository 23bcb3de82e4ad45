"""Shape of objects: constraints on members by name, witnesses and counts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from b3node.grammar.constraints.literals import FALSE, TRUE, Lits, all_of, common_values
from b3node.grammar.counts import exceeds, tighter_bound
from b3node.grammar.languages.algebra import Algebra, Lang


class NameSet(msgspec.Struct, frozen=True):
    """Set of member names."""

    names: frozenset[str] = frozenset()
    """Names in the set."""
    langs: frozenset[Lang] = frozenset()
    """Languages whose names are in the set."""
    others: bool = False
    """Whether the set is the complement: all names but those."""

    def covers(self, algebra: Algebra, name: str) -> bool:
        """Returns True if a name is in the set."""
        return (name in self.names or any(algebra.matches(lang, name) for lang in self.langs)) != self.others


class MemberWitness(msgspec.Struct, frozen=True):
    """Witness in an object: a member that meets a constraint, or the absence of one."""

    key: str | NameSet
    """The name of the member, or a set of names."""
    lits: Lits | None = TRUE
    """The constraint on the member; None if the witness is that no such member exists."""


Clause = frozenset[MemberWitness]
"""Set of witnesses, of which at least one must exist."""


class ObjectShape(msgspec.Struct, frozen=True):
    """Objects by the constraints on their members and the number of members."""

    properties: tuple[tuple[str, Lits], ...] = ()
    """Constraints by name, in the order of writing."""
    name_sets: frozenset[tuple[NameSet, Lits]] = frozenset()
    """Constraints on all members of a set of names."""
    clauses: frozenset[Clause] = frozenset()
    """Sets of witnesses; of each set at least one must exist."""
    low: int = 0
    """The least number of members."""
    high: int | None = None
    """The greatest number of members; None is no bound."""
    values: frozenset[str] | None = None
    """Canonical texts of the only objects allowed, where they are listed."""
    evaluated: frozenset[NameSet] = frozenset()
    """The names that some subschema has evaluated, for `unevaluatedProperties`."""
    required_order: tuple[str, ...] = ()
    """Names that are only required, in the order of writing."""


def meet_objects(algebra: Algebra, a: ObjectShape, b: ObjectShape) -> ObjectShape | None:
    """Returns the shape of objects that have both, or None if they exclude each other."""
    named = dict(a.properties)
    for name, lits in b.properties:
        named[name] = all_of(named[name], lits) if name in named else lits
    out = ObjectShape(
        tuple(named.items()),
        a.name_sets | b.name_sets,
        a.clauses | b.clauses,
        max(a.low, b.low),
        tighter_bound(a.high, b.high),
        common_values(a.values, b.values),
        a.evaluated | b.evaluated,
        a.required_order
        if not b.required_order
        else tuple(dict.fromkeys(a.required_order + b.required_order)),
    )
    return simplify_object(algebra, out)


def simplify_object(algebra: Algebra, shape: ObjectShape) -> ObjectShape | None:
    """Returns an equal shape with every clause of one witness resolved, or None if it has no value.

    A clause "member p meets L" alone makes p required and L a constraint on it; "no member p" alone forbids
    p. Each required or forbidden name settles other clauses.
    """
    named, clauses = dict(shape.properties), set(shape.clauses)
    closed = [keys for keys, lits in shape.name_sets if lits == FALSE]
    while True:
        required = names_required(clauses)
        fresh: set[Clause] = set()
        for clause in clauses:
            settled = _settle(algebra, clause, required, named, closed)
            if settled is None:
                continue
            if not settled:
                return None
            fresh.add(settled)
        if fresh == clauses:
            break
        clauses = fresh
    low = shape.low if shape.low > len(required) else 0
    if exceeds(max(shape.low, len(required)), shape.high) or shape.values == frozenset():
        return None
    if any(_lits_at(algebra, named, shape.name_sets, name) == FALSE for name in required):
        return None
    members, size = list(named.items()), len(shape.properties)
    members[size:] = sorted(members[size:])  # these come from clauses, which have no order
    return msgspec.structs.replace(shape, properties=tuple(members), clauses=_minimal(clauses), low=low)


def names_required(clauses: Iterable[Clause]) -> set[str]:
    """Returns the names that a member must have."""
    single = (witness for clause in clauses if len(clause) == 1 for witness in clause)
    return {w.key for w in single if w.lits == TRUE and isinstance(w.key, str)}


def _lits_at(
    algebra: Algebra, named: dict[str, Lits], name_sets: frozenset[tuple[NameSet, Lits]], name: str
) -> Lits:
    """Returns the constraint on the member `name`."""
    return all_of(named.get(name, TRUE), *(lits for keys, lits in name_sets if keys.covers(algebra, name)))


def _settle(
    algebra: Algebra, clause: Clause, required: set[str], named: dict[str, Lits], closed: list[NameSet]
) -> Clause | None:
    """Returns the clause without its impossible witnesses, or None if it always holds.

    A clause of one witness moves into `named`, which is changed.
    """
    if len(clause) == 1:
        (only,) = clause
        if isinstance(only.key, str) and only.lits != TRUE:
            demanded = FALSE if only.lits is None else only.lits
            named[only.key] = all_of(named.get(only.key, TRUE), demanded)
            return None if only.lits is None else frozenset({MemberWitness(only.key)})
        return clause
    out = set()
    absent = {w.key for w in clause if w.lits is None}
    for witness in clause:
        key, lits = witness.key, witness.lits
        if not isinstance(key, str):
            out.add(witness)
            continue
        forbidden = named.get(key) == FALSE or any(keys.covers(algebra, key) for keys in closed)
        if lits is None and forbidden:
            return None
        if lits == TRUE and (key in required or key in absent):
            return None
        if not (forbidden or (lits is None and key in required) or lits == FALSE):
            out.add(witness)
    return frozenset(out)


def _minimal(clauses: set[Clause]) -> frozenset[Clause]:
    """Returns the clauses that no other one implies."""
    if len(clauses) > 40:
        return frozenset(clauses)
    return frozenset(c for c in clauses if not any(other < c for other in clauses))
