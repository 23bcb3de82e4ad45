"""Literals and the constraints that they form.

A *literal* is a subschema that must hold (an even number) or must fail (an odd one). A set of literals is the
*constraint* on a value: all of them are met together. A grammar has one rule for each constraint.
"""

from __future__ import annotations

from typing import Final

Lits = frozenset[int]
TRUE: Final[Lits] = frozenset()
FALSE: Final[Lits] = frozenset({1})
"""Subschema 0 is `true`; the literal that it must fail is the constraint that no value meets."""


def lit(node: int, *, holds: bool = True) -> Lits:
    """Returns the constraint that a subschema holds, or that it fails."""
    number = 2 * node + (not holds)
    return TRUE if number == 0 else frozenset({number})


def all_of(*sets: Lits) -> Lits:
    """Returns all constraints together: `FALSE` if a literal and its negation are among them."""
    out = TRUE.union(*sets)
    return out if 1 not in out and out.isdisjoint([number ^ 1 for number in out]) else FALSE


def common_values(a: frozenset[str] | None, b: frozenset[str] | None) -> frozenset[str] | None:
    """Returns the values that both lists allow; None is no list, which allows every value."""
    if a is None or b is None:
        return b if a is None else a
    return a & b
