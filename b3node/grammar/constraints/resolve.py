"""Obligations resolved: a set of literals becomes, type by type, the list of shapes that meet it.

This is the boolean heart of the compiler. Everything that applies to a value in place is worked out here:
`allOf`, `anyOf`, `oneOf`, `not`, `if`, `$ref`, `dependent*`, `enum`, `const`, `type`, and `unevaluated*` by
following, for each way a value can conform, which members or items were evaluated on that way. A subschema
that refers to itself in place says nothing by that, as a validator would never come back from it.

It must not know how a shape is written. Invariants: results depend on the obligation alone and are
memoized; the number of shapes per obligation is bounded, and passing the bound is a refusal with a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from b3node.grammar.constraints import applicators, disjunction, enums, instance_check, keywords, unevaluated
from b3node.grammar.constraints.name_classes import order_of
from b3node.grammar.constraints.resolver import Table
from b3node.grammar.constraints.shapes import (
    FALSE,
    TOP,
    TRUE,
    TYPES,
    Array,
    Dnf,
    Lits,
    Object,
    Shape,
    Text,
    Type,
    Witness,
    Words,
    all_of,
    meet,
)
from b3node.grammar.constraints.values import type_of
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import VOID, Algebra, Lang, TooLarge
from b3node.grammar.schema.document import Document

MAX_SHAPES: Final = 400
"""Ways in which a value of one type may meet one obligation."""
_EMPTINESS_DEPTH: Final = 4


def _weight(shape: Shape) -> int:
    """The work of meeting a shape, in steps."""
    if isinstance(shape, Object):
        return 5 + len(shape.named) // 4 + len(shape.clauses)
    return 1


class _Unknown(Exception):  # noqa: N818 - a look ahead met what is still being worked out
    """What a member must be depends on what is being worked out."""


class Obligations:
    """The obligations of one document.

    Args:
        document: the schema.
        algebra: where languages of patterns live.
        spend: told the steps of work; may raise to keep a bound.
    """

    def __init__(self, document: Document, algebra: Algebra, spend: Callable[[int], None]) -> None:
        self.document = document
        self.algebra = algebra
        self.tracking = bool(document.keywords & {"unevaluatedProperties", "unevaluatedItems"})
        self.listed: dict[str, object] = {}
        self._spend = spend
        self._expanded: dict[tuple[int, Type], Dnf] = {}
        self._open: dict[tuple[int, Type], int] = {}
        self._level = 0
        self._cuts: set[tuple[int, Type]] = set()
        self._dnf: dict[tuple[Lits, Type], Dnf] = {}
        self._patterns: dict[str, Lang] = {}
        self._void: dict[tuple[Lits, int], bool] = {}

    # -------------------------------------------------------------------------------- interface
    def shapes(self, lits: Lits, type_: Type) -> Dnf:
        """The shapes of the values of a type that meet `lits`; none when no value of the type can."""
        key = (lits, type_)
        found = self._dnf.get(key)
        if found is None:
            self._spend(1)
            out: Dnf = (TOP[type_],)
            for number in sorted(lits):
                met = self.expand(number, type_)
                # What holds is said shortly already; what fails may still be to be tidied.
                out = met if out == (TOP[type_],) and not number & 1 else self.conj(out, met)
            found = self._kept(out)
            if not self._cuts:
                self._dnf[key] = found
        return found

    def string_language(self, lits: Lits) -> Lang:
        """The strings that meet an obligation."""
        return self.algebra.either(s.lang for s in self.shapes(lits, "string") if isinstance(s, Text))

    def pattern_language(self, source: str, pointer: str) -> Lang:
        """The strings that a pattern finds something in."""
        if source not in self._patterns:
            self._patterns[source] = keywords.pattern_of(self, source, pointer)
        return self._patterns[source]

    def meets(self, value: object, lits: Lits) -> bool:
        """Whether a JSON value meets an obligation."""
        return any(instance_check.has(self, value, shape) for shape in self.shapes(lits, type_of(value)))

    def _kept(self, dnf: Dnf) -> Dnf:
        """Listed arrays and objects are tried against the rest of their shape; then only the list is left."""
        out: list[Shape] = []
        for shape in dnf:
            if not isinstance(shape, Array | Object) or shape.values is None:
                out.append(shape)
                continue
            rest = msgspec.structs.replace(shape, values=None)
            kept = frozenset(
                text for text in shape.values if instance_check.has(self, self.listed[text], rest)
            )
            if kept:
                out.append(Array(values=kept) if isinstance(shape, Array) else Object(values=kept))
        return tuple(dict.fromkeys(out))

    # --------------------------------------------------------------------------- boolean algebra
    def conj(self, a: Dnf, b: Dnf) -> Dnf:
        """The shapes that have one of `a` and one of `b`. Raises `Inexact` when they are too many."""
        if len(a) * len(b) > 20 * MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        self._spend(len(a) * len(b) * (_weight(a[0]) + _weight(b[0]) if a and b else 0))
        met = (meet(self.algebra, x, y) for x in a for y in b)
        out = tuple(dict.fromkeys(shape for shape in met if shape is not None))
        if len(out) > MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        return out

    def disj(self, type_: Type, options: Iterable[Dnf]) -> Dnf:
        """The shapes of any of the lists, as few as they can be said with."""
        out = tuple(dict.fromkeys(shape for option in options for shape in option))
        if len(out) < 2:
            return out
        if not self.tracking and TOP[type_] in out:
            return (TOP[type_],)
        if type_ == "string":
            lang = self.algebra.either(shape.lang for shape in out if isinstance(shape, Text))
            return (Text(lang),) if lang != VOID else ()
        if type_ in {"null", "boolean"}:
            return (Words(frozenset().union(*(s.texts for s in out if isinstance(s, Words)))),)
        if type_ == "array":
            return disjunction.of_arrays(out)
        return disjunction.of_objects(self.algebra, out) if type_ == "object" else out

    # --------------------------------------------------------------------------------- literals
    def expand(self, number: int, type_: Type) -> Dnf:
        """The shapes of a type for which one literal is met."""
        key = (number, type_)
        if key in self._expanded:
            return self._expanded[key]
        if key in self._open:
            return self._cut(key)
        self._open[key] = self._level
        try:
            node = number >> 1
            out = self._failing(node, type_) if number & 1 else self._holding(node, type_)
        except Inexact as error:
            if not error.pointer:
                raise Inexact(self.document[node].pointer or "/", error.why) from None
            raise
        finally:
            del self._open[key]
        self._cuts.discard(key)
        if not self._cuts:  # else it holds only within the cycle that is being followed
            self._expanded[key] = out
        return out

    def _cut(self, key: tuple[int, Type]) -> Dnf:
        """A literal met again while it is worked out: in place it says nothing; in a member nothing is known yet."""
        if self._open[key] < self._level:
            raise _Unknown
        self._cuts.add(key)
        return () if key[0] & 1 else (TOP[key[1]],)

    def _table(self, node: int) -> Table:
        value = self.document[node].value
        if not isinstance(value, dict):
            return {}
        if self.document.legacy and "$ref" in value:
            return {"$ref": value["$ref"]}
        return value

    def _holding(self, node: int, type_: Type) -> Dnf:
        if self.document[node].value is False:
            return ()
        table = self._table(node)
        out: Dnf = (TOP[type_],)
        if "type" in table:
            out = enums.typed(self, node, table["type"], type_)
        if "enum" in table or "const" in table:
            out = self.conj(out, enums.enumerated(self, node, table, type_))
        if (out and "$ref" not in table) or not self.document.legacy:
            own = keywords.holds(self, node, type_) if out else None
            out = self.conj(out, (own,)) if own is not None else out
        for key in table:
            if not out:
                return ()
            reader = applicators.HOLDS.get(key)
            if reader is not None:
                met = reader(self, node, table, type_)
                # What is referred to alone is said shortly already.
                out = met if key == "$ref" and out == (TOP[type_],) else self.conj(out, met)
        return unevaluated.holding(self, node, table, type_, out) if self.tracking else out

    def _failing(self, node: int, type_: Type) -> Dnf:
        if self.document[node].value is False:
            return (TOP[type_],)
        table = self._table(node)
        options: list[Dnf] = []
        if "type" in table:
            options.append(enums.mistyped(self, node, table["type"], type_))
        if "enum" in table or "const" in table:
            options.append(enums.unlisted(self, node, table, type_))
        if (TOP[type_],) in options:
            return (TOP[type_],)
        if "$ref" not in table or not self.document.legacy:
            options.append(keywords.fails(self, node, type_))
        for key in table:
            reader = applicators.FAILS.get(key)
            if reader is not None:
                options.append(reader(self, node, table, type_))
        if self.tracking:
            options.append(unevaluated.failing(self, node, table, type_))
        return tuple(unevaluated.unseen(shape) for shape in self.disj(type_, options))

    def apart(self, a: int, b: int, type_: Type) -> bool:
        """Whether two subschemas provably share no value of a type."""
        met = self.conj(self.expand(2 * a, type_), self.expand(2 * b, type_))
        return all(self._is_void(shape, _EMPTINESS_DEPTH) for shape in met)

    # ---------------------------------------------------------------------------------- emptiness
    def _is_void(self, shape: Shape, depth: int) -> bool:
        """Whether a shape provably has no value; False when a look of `depth` levels does not show it."""
        self._spend(1)
        if isinstance(shape, Text):
            try:
                return automaton.is_void(self.algebra, shape.lang, 500)
            except TooLarge:
                return False
        if isinstance(shape, Object) and depth:
            needed = [w for c in shape.clauses if len(c) == 1 for w in c]
            needed.sort(key=lambda w: order_of(w.key))  # the same steps in every process
            return any(self.void(self.member(shape, w), depth - 1) for w in needed)
        if isinstance(shape, Array) and depth:
            return any(
                self.void(shape.at(i), depth - 1) for i in range(min(shape.low, len(shape.prefix) + 1))
            )
        return False

    def member(self, shape: Object, witness: Witness) -> Lits:
        """The obligation of a member that is to be a witness."""
        own = TRUE if witness.lits is None else witness.lits
        return all_of(own, self.at(shape, witness.key)) if isinstance(witness.key, str) else own

    def at(self, shape: Object, name: str) -> Lits:
        """The obligation of the member `name`."""
        wide = (lits for keys, lits in shape.wide if keys.covers(self.algebra, name))
        return all_of(*(lits for known, lits in shape.named if known == name), *wide)

    def void(self, lits: Lits, depth: int) -> bool:
        """Whether an obligation provably has no value."""
        if lits == FALSE:
            return True
        key = (lits, depth)
        if key not in self._void:
            self._void[key] = False  # a recursive schema is not proved empty by itself
            self._level += 1
            cuts, self._cuts = self._cuts, set()
            try:
                self._void[key] = all(
                    self._is_void(shape, depth) for type_ in TYPES for shape in self.shapes(lits, type_)
                )
            except _Unknown:
                del self._void[key]
                return False
            finally:
                self._level -= 1
                self._cuts = cuts
        return self._void[key]
