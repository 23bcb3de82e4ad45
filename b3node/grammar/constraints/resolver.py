"""Interface of the resolver that the readers of keywords call back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints.literals import Lits
from b3node.grammar.constraints.object_shape import ObjectShape
from b3node.grammar.constraints.shapes import Dnf
from b3node.grammar.languages.algebra import Algebra, Lang
from b3node.grammar.schema.document import Document

SchemaObject = dict[str, object]
"""Subschema that is a JSON object."""


class Resolver(Protocol):
    """Constraints of one document while they are resolved."""

    algebra: Algebra
    """The languages of patterns."""
    document: Document
    """The schema."""
    tracks_evaluated: bool
    """Whether the document has an `unevaluated*` keyword, so that evaluated members are tracked."""
    enum_values: dict[str, object]
    """Arrays and objects that `enum` and `const` list, by canonical text."""

    def shapes(self, lits: Lits, type_: JsonType) -> Dnf:
        """Returns the shapes of the values of a type that meet a constraint."""
        ...

    def expand(self, number: int, type_: JsonType) -> Dnf:
        """Returns the shapes of the values of a type that meet one literal."""
        ...

    def conj(self, a: Dnf, b: Dnf) -> Dnf:
        """Returns the shapes of values that have one of each list."""
        ...

    def disj(self, type_: JsonType, options: Iterable[Dnf]) -> Dnf:
        """Returns the shapes of values that have one of any list."""
        ...

    def are_disjoint(self, a: int, b: int, type_: JsonType) -> bool:
        """Returns True if two subschemas provably share no value of a type."""
        ...

    def meets(self, value: object, lits: Lits) -> bool:
        """Returns True if a JSON value meets a constraint."""
        ...

    def member_lits(self, shape: ObjectShape, name: str) -> Lits:
        """Returns the constraint on the member `name` of an object of the shape."""
        ...

    def string_language(self, lits: Lits) -> Lang:
        """Returns the strings that meet a constraint."""
        ...

    def pattern_language(self, source: str, pointer: str) -> Lang:
        """Returns the strings in which a pattern finds a match."""
        ...
