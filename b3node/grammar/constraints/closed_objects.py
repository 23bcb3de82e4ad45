"""Resolver whose objects have declared members only, unless the schema asks for others.

JSON Schema allows any member that the schema does not mention. The arguments of a function are the values of
its parameters, so a member that a model adds to them is invented. Where a schema declares members and does
not mention others, none are written. Patterns of names and schemas for additional members are kept as they
are, and so is every object of a schema that sets one of those keywords to `true` (`allows_undeclared`). This
narrows the texts that a grammar accepts, and makes most grammars a third as large. Values are never judged by
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from b3node.dialects.kinds import JsonType, json_type
from b3node.grammar.constraints import instance_check
from b3node.grammar.constraints.literals import FALSE, Lits
from b3node.grammar.constraints.name_classes import slot_names
from b3node.grammar.constraints.object_shape import NameSet, ObjectShape, simplify_object
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import Dnf
from b3node.grammar.languages.algebra import Algebra
from b3node.grammar.schema.document import Document

_UNDECLARED_KEYWORDS: Final = ("additionalProperties", "unevaluatedProperties")
_ANNOTATIONS: Final = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "examples", "default", "$defs"}
)
"""Keywords that constrain no value."""


def allows_undeclared(schema: object) -> bool:
    """Returns True if some part of a schema explicitly allows undeclared members."""
    todo = [schema]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if any(value.get(keyword) in (True, {}) for keyword in _UNDECLARED_KEYWORDS):
                return True
            todo += value.values()
        elif isinstance(value, list):
            todo += value
    return False


def declares_no_members(schema: dict[str, object]) -> bool:
    """Returns True if a schema declares that it has no members in the way agents do: empty `properties`.

    Without `properties`, or with a keyword about other members, an object may have any.
    """
    says = schema.keys() - _ANNOTATIONS
    return (
        schema.get("properties") == {}
        and not schema.get("required")
        and schema.get("type", "object") == "object"
        and says <= {"type", "properties", "required"}
    )


class ClosedObjectResolver(SchemaResolver):
    """Resolver that allows no undeclared members where the schema does not mention them.

    Args:
        document: the schema.
        algebra: the languages of patterns.
        spend: called with the steps of work; may raise to keep a bound.
    """

    def __init__(self, document: Document, algebra: Algebra, spend: Callable[[int], None]) -> None:
        super().__init__(document, algebra, spend)
        self._closed: dict[Lits, Dnf] = {}

    def shapes(self, lits: Lits, type_: JsonType) -> Dnf:
        """Returns the shapes of the values of a type that meet `lits`, without undeclared members."""
        found = super().shapes(lits, type_)
        if type_ != "object":
            return found
        if lits not in self._closed:
            shapes = (self._close(shape) for shape in found if isinstance(shape, ObjectShape))
            self._closed[lits] = tuple(dict.fromkeys(shape for shape in shapes if shape is not None))
        return self._closed[lits]

    def meets(self, value: object, lits: Lits) -> bool:
        """Returns True if a JSON value meets a constraint; undeclared members are ignored."""
        kind = json_type(value)
        return any(instance_check.has_shape(self, value, shape) for shape in super().shapes(lits, kind))

    def _close(self, shape: ObjectShape) -> ObjectShape | None:
        """Returns the shape without undeclared members, or None if it has no value then."""
        if not shape.properties or shape.name_sets or shape.values is not None:
            return shape
        others = NameSet(names=frozenset(slot_names(shape)), others=True)
        return simplify_object(self.algebra, replace(shape, name_sets=frozenset({(others, FALSE)})))
