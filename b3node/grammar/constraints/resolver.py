"""What the readers of keywords may ask of the obligations around them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from b3node.grammar.constraints.shapes import Dnf, Lits, Object, Type
from b3node.grammar.languages.algebra import Algebra, Lang
from b3node.grammar.schema.document import Document

Table = dict[str, object]
"""A subschema that is an object."""


class Space(Protocol):
    """The obligations of one document while they are worked out.

    `tracking` tells whether any `unevaluated*` keyword asks what was evaluated; `listed` holds the arrays and
    objects that `enum` and `const` list, by canonical text.
    """

    algebra: Algebra
    document: Document
    tracking: bool
    listed: dict[str, object]

    def shapes(self, lits: Lits, type_: Type) -> Dnf:
        """The shapes of the values of a type that meet an obligation."""
        ...

    def expand(self, number: int, type_: Type) -> Dnf:
        """The shapes of a type for which one literal is met."""
        ...

    def conj(self, a: Dnf, b: Dnf) -> Dnf:
        """Both."""
        ...

    def disj(self, type_: Type, options: Iterable[Dnf]) -> Dnf:
        """Any of them."""
        ...

    def apart(self, a: int, b: int, type_: Type) -> bool:
        """Whether two subschemas provably share no value of a type."""
        ...

    def meets(self, value: object, lits: Lits) -> bool:
        """Whether a JSON value meets an obligation."""
        ...

    def at(self, shape: Object, name: str) -> Lits:
        """The obligation of the member `name` of an object's shape."""
        ...

    def string_language(self, lits: Lits) -> Lang:
        """The strings that meet an obligation."""
        ...

    def pattern_language(self, source: str, pointer: str) -> Lang:
        """The strings that a pattern finds something in."""
        ...
