"""Obligations whose objects have declared members alone, where the schema does not ask for others.

JSON Schema lets any member in that nobody speaks of. But a function's arguments are the values of its parameters: what
a model would add to them is invented. So where a schema declares members and says nothing of others, none are
written. Patterns of names and schemas for additional members are kept to as they are, and so is everything in a
schema that says `true` of them (`is_open`). This narrows what is written, and makes most grammars a third as large;
values are never judged by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from b3node.grammar.constraints import instance_check
from b3node.grammar.constraints.name_classes import names_of
from b3node.grammar.constraints.resolve import Obligations
from b3node.grammar.constraints.shapes import FALSE, Dnf, Keys, Lits, Object, Type, tidy_object
from b3node.grammar.constraints.values import type_of
from b3node.grammar.languages.algebra import Algebra
from b3node.grammar.schema.document import Document

_OTHERS: Final = ("additionalProperties", "unevaluatedProperties")
_SAYING_NOTHING: Final = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "examples", "default", "$defs"}
)
"""Keywords that ask nothing of a value."""


def is_open(schema: object) -> bool:
    """Whether some part of a schema lets other members in, in so many words."""
    todo = [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if any(value.get(keyword) in (True, {}) for keyword in _OTHERS):
                return True
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return False


def is_empty(schema: dict[str, object]) -> bool:
    """Whether a schema declares that it has no members, in the way that agents do: `properties` with nothing in it.

    Without `properties`, or with a word of other members, an object may have any.
    """
    says = schema.keys() - _SAYING_NOTHING
    return (
        schema.get("properties") == {}
        and not schema.get("required")
        and schema.get("type", "object") == "object"
        and says <= {"type", "properties", "required"}
    )


class Closed(Obligations):
    """As `Obligations`, but for members that nobody declares.

    Args:
        document: the schema.
        algebra: where languages of patterns live.
        spend: told the steps of work; may raise to keep a bound.
    """

    def __init__(self, document: Document, algebra: Algebra, spend: Callable[[int], None]) -> None:
        super().__init__(document, algebra, spend)
        self._closed: dict[Lits, Dnf] = {}

    def shapes(self, lits: Lits, type_: Type) -> Dnf:
        """The shapes of the values of a type that meet `lits` and have no members that are not declared."""
        found = super().shapes(lits, type_)
        if type_ != "object":
            return found
        if lits not in self._closed:
            shapes = (self._shut(shape) for shape in found if isinstance(shape, Object))
            self._closed[lits] = tuple(dict.fromkeys(shape for shape in shapes if shape is not None))
        return self._closed[lits]

    def meets(self, value: object, lits: Lits) -> bool:
        """Whether a JSON value meets an obligation, whatever other members it has."""
        kind = type_of(value)
        return any(instance_check.has(self, value, shape) for shape in super().shapes(lits, kind))

    def _shut(self, shape: Object) -> Object | None:
        if not shape.named or shape.wide or shape.values is not None:
            return shape
        others = Keys(names=frozenset(names_of(shape)), others=True)
        return tidy_object(self.algebra, replace(shape, wide=frozenset({(others, FALSE)})))
