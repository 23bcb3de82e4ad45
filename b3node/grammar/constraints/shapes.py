"""Shapes: conjunctions of demands on a value of one JSON type, with no choice left in them.

Within one JSON type a constraint (`literals`) becomes a list of shapes, a disjunctive normal form: a value
meets the constraint if it has any of them. For containers a shape can say that every member of a set meets a
constraint, that some member does (a *clause*: one of several such witnesses is enough), and how many members
there are. Shapes of a type are closed under intersection (`meet`), and the negation of a shape is again a
list of shapes. That is why `not`, `oneOf` and `if` are exact.
"""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints.array_shape import ArrayShape, meet_arrays
from b3node.grammar.constraints.number_shape import NumberShape, meet_numbers
from b3node.grammar.constraints.object_shape import ObjectShape, meet_objects
from b3node.grammar.languages.algebra import ALL, Algebra, Lang

TYPES: Final[tuple[JsonType, ...]] = ("object", "array", "string", "number", "boolean", "null")
"""The JSON types in the order in which a grammar lists their alternatives."""


class ConstantShape(msgspec.Struct, frozen=True):
    """Values of null or boolean."""

    texts: frozenset[str]
    """Their literal texts."""


class StringShape(msgspec.Struct, frozen=True):
    """Strings of a language."""

    lang: Lang = ALL
    """The language."""


Shape = ConstantShape | StringShape | NumberShape | ArrayShape | ObjectShape
Dnf = tuple[Shape, ...]
"""Shapes of one type, of which a value must have one."""

TOP: Final[dict[JsonType, Shape]] = {
    "null": ConstantShape(frozenset({"null"})),
    "boolean": ConstantShape(frozenset({"true", "false"})),
    "number": NumberShape(),
    "string": StringShape(),
    "array": ArrayShape(),
    "object": ObjectShape(),
}
"""By type, the shape that every value of the type has."""


def meet(algebra: Algebra, a: Shape, b: Shape) -> Shape | None:
    """Returns the shape of values that have both shapes, which are of one type.

    None means that no value has both; a shape that is returned may still have no value.
    """
    if isinstance(a, ConstantShape) and isinstance(b, ConstantShape):
        texts = a.texts & b.texts
        return ConstantShape(texts) if texts else None
    if isinstance(a, StringShape) and isinstance(b, StringShape):
        lang = algebra.both([a.lang, b.lang])
        return StringShape(lang) if lang else None
    if isinstance(a, NumberShape) and isinstance(b, NumberShape):
        return meet_numbers(a, b)
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape):
        return meet_arrays(a, b)
    if isinstance(a, ObjectShape) and isinstance(b, ObjectShape):
        return meet_objects(algebra, a, b)
    return None
