"""Resolution of constraints: a set of literals becomes, type by type, the list of shapes that meet it.

This is the boolean heart of the compiler. It resolves every keyword that applies to a value in place:
`allOf`, `anyOf`, `oneOf`, `not`, `if`, `$ref`, `dependent*`, `enum`, `const` and `type`. For `unevaluated*`
it tracks, for each way in which a value can conform, the members or items that were evaluated on that way. A
subschema that refers to itself in place constrains nothing by that, as a validator would never return from
it.

It must not know how a shape is written. Invariants: results depend on the constraint alone and are memoized;
the number of shapes of a constraint is bounded, and a schema that passes the bound is refused with a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from b3node.dialects.kinds import JsonType, json_type
from b3node.grammar.constraints import applicators, disjunction, enums, instance_check, keywords, unevaluated
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.literals import FALSE, TRUE, Lits, all_of
from b3node.grammar.constraints.name_classes import sort_key
from b3node.grammar.constraints.object_shape import MemberWitness, ObjectShape
from b3node.grammar.constraints.resolver import SchemaObject
from b3node.grammar.constraints.shapes import TOP, TYPES, ConstantShape, Dnf, Shape, StringShape, meet
from b3node.grammar.inexact import Inexact
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import VOID, Algebra, Lang, TooLarge
from b3node.grammar.schema.document import Document

MAX_SHAPES: Final = 400
"""Ways in which a value of one type may meet one constraint."""
MAX_VOID_DEPTH: Final = 4
"""Levels of members and items that are searched for a proof that two branches share no value."""


def _meet_steps(shape: Shape) -> int:
    """Returns the work of intersecting a shape, in steps."""
    if isinstance(shape, ObjectShape):
        return 5 + len(shape.properties) // 4 + len(shape.clauses)
    return 1


class _UnresolvedCycle(Exception):  # noqa: N818 - a signal within a search, always caught
    """A constraint on a member depends on a literal that is still being resolved."""


class SchemaResolver:
    """Resolver of the constraints of one document.

    Args:
        document: the schema.
        algebra: the languages of patterns.
        spend: called with the steps of work; may raise to keep a bound.
    """

    def __init__(self, document: Document, algebra: Algebra, spend: Callable[[int], None]) -> None:
        self.document = document
        self.algebra = algebra
        self.tracks_evaluated = bool(document.keywords & {"unevaluatedProperties", "unevaluatedItems"})
        self.enum_values: dict[str, object] = {}
        self._spend = spend
        self._expanded: dict[tuple[int, JsonType], Dnf] = {}
        self._in_progress: dict[tuple[int, JsonType], int] = {}
        self._level = 0
        self._open_cycles: set[tuple[int, JsonType]] = set()
        self._known: dict[tuple[Lits, JsonType], Dnf] = {}
        self._patterns: dict[str, Lang] = {}
        self._known_void: dict[tuple[Lits, int], bool] = {}

    # -------------------------------------------------------------------------------- interface
    def shapes(self, lits: Lits, type_: JsonType) -> Dnf:
        """Returns the shapes of the values of a type that meet `lits`; none if no value of the type can."""
        key = (lits, type_)
        found = self._known.get(key)
        if found is None:
            self._spend(1)
            out: Dnf = (TOP[type_],)
            for number in sorted(lits):
                met = self.expand(number, type_)
                # Shapes of a literal that holds are simplified already; those of one that fails may not be.
                out = met if out == (TOP[type_],) and not number & 1 else self.conj(out, met)
            found = self._filter_enums(out)
            if not self._open_cycles:
                self._known[key] = found
        return found

    def string_language(self, lits: Lits) -> Lang:
        """Returns the strings that meet a constraint."""
        return self.algebra.either(s.lang for s in self.shapes(lits, "string") if isinstance(s, StringShape))

    def pattern_language(self, source: str, pointer: str) -> Lang:
        """Returns the strings in which a pattern finds a match."""
        if source not in self._patterns:
            self._patterns[source] = keywords.compile_pattern(self, source, pointer)
        return self._patterns[source]

    def meets(self, value: object, lits: Lits) -> bool:
        """Returns True if a JSON value meets a constraint."""
        return any(
            instance_check.has_shape(self, value, shape) for shape in self.shapes(lits, json_type(value))
        )

    def _filter_enums(self, dnf: Dnf) -> Dnf:
        """Reduces shapes with listed arrays or objects to the listed values that have the rest of the shape.

        Only the list is left of such a shape then.
        """
        out: list[Shape] = []
        for shape in dnf:
            if not isinstance(shape, ArrayShape | ObjectShape) or shape.values is None:
                out.append(shape)
                continue
            rest = msgspec.structs.replace(shape, values=None)
            kept = frozenset(
                text for text in shape.values if instance_check.has_shape(self, self.enum_values[text], rest)
            )
            if kept:
                out.append(
                    ArrayShape(values=kept) if isinstance(shape, ArrayShape) else ObjectShape(values=kept)
                )
        return tuple(dict.fromkeys(out))

    # --------------------------------------------------------------------------- boolean algebra
    def conj(self, a: Dnf, b: Dnf) -> Dnf:
        """Returns the shapes that have one of `a` and one of `b`. Raises `Inexact` if there are too many."""
        if len(a) * len(b) > 20 * MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        self._spend(len(a) * len(b) * (_meet_steps(a[0]) + _meet_steps(b[0]) if a and b else 0))
        met = (meet(self.algebra, x, y) for x in a for y in b)
        out = tuple(dict.fromkeys(shape for shape in met if shape is not None))
        if len(out) > MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        return out

    def disj(self, type_: JsonType, options: Iterable[Dnf]) -> Dnf:
        """Returns the shapes of any of the lists, merged where one shape can describe several."""
        out = tuple(dict.fromkeys(shape for option in options for shape in option))
        if len(out) < 2:
            return out
        if not self.tracks_evaluated and TOP[type_] in out:
            return (TOP[type_],)
        if type_ == "string":
            lang = self.algebra.either(shape.lang for shape in out if isinstance(shape, StringShape))
            return (StringShape(lang),) if lang != VOID else ()
        if type_ in {"null", "boolean"}:
            return (
                ConstantShape(frozenset().union(*(s.texts for s in out if isinstance(s, ConstantShape)))),
            )
        if type_ == "array":
            return disjunction.of_arrays(out)
        return disjunction.of_objects(self.algebra, out) if type_ == "object" else out

    # --------------------------------------------------------------------------------- literals
    def expand(self, number: int, type_: JsonType) -> Dnf:
        """Returns the shapes of the values of a type that meet one literal."""
        key = (number, type_)
        if key in self._expanded:
            return self._expanded[key]
        if key in self._in_progress:
            return self._resolve_cycle(key)
        self._in_progress[key] = self._level
        try:
            node = number >> 1
            out = self._fails(node, type_) if number & 1 else self._holds(node, type_)
        except Inexact as error:
            if not error.pointer:
                raise Inexact(self.document[node].pointer or "/", error.why) from None
            raise
        finally:
            del self._in_progress[key]
        self._open_cycles.discard(key)
        if not self._open_cycles:  # else it holds only within the cycle that is being resolved
            self._expanded[key] = out
        return out

    def _resolve_cycle(self, key: tuple[int, JsonType]) -> Dnf:
        """Returns the shapes of a literal that is met again while it is being resolved.

        In place the reference constrains nothing. Raises `_UnresolvedCycle` in a member, whose constraint is
        not known yet.
        """
        if self._in_progress[key] < self._level:
            raise _UnresolvedCycle
        self._open_cycles.add(key)
        return () if key[0] & 1 else (TOP[key[1]],)

    def _keywords_of(self, node: int) -> SchemaObject:
        value = self.document[node].value
        if not isinstance(value, dict):
            return {}
        if self.document.legacy and "$ref" in value:
            return {"$ref": value["$ref"]}
        return value

    def _holds(self, node: int, type_: JsonType) -> Dnf:
        if self.document[node].value is False:
            return ()
        schema = self._keywords_of(node)
        out: Dnf = (TOP[type_],)
        if "type" in schema:
            out = enums.type_holds(self, node, schema["type"], type_)
        if "enum" in schema or "const" in schema:
            out = self.conj(out, enums.enum_holds(self, node, schema, type_))
        if (out and "$ref" not in schema) or not self.document.legacy:
            own = keywords.holds(self, node, type_) if out else None
            out = self.conj(out, (own,)) if own is not None else out
        for key in schema:
            if not out:
                return ()
            applicator = applicators.HOLDS.get(key)
            if applicator is not None:
                met = applicator(self, node, schema, type_)
                # The shapes of a reference alone are simplified already.
                out = met if key == "$ref" and out == (TOP[type_],) else self.conj(out, met)
        return unevaluated.holds(self, node, schema, type_, out) if self.tracks_evaluated else out

    def _fails(self, node: int, type_: JsonType) -> Dnf:
        if self.document[node].value is False:
            return (TOP[type_],)
        schema = self._keywords_of(node)
        options: list[Dnf] = []
        if "type" in schema:
            options.append(enums.type_fails(self, node, schema["type"], type_))
        if "enum" in schema or "const" in schema:
            options.append(enums.enum_fails(self, node, schema, type_))
        if (TOP[type_],) in options:
            return (TOP[type_],)
        if "$ref" not in schema or not self.document.legacy:
            options.append(keywords.fails(self, node, type_))
        for key in schema:
            applicator = applicators.FAILS.get(key)
            if applicator is not None:
                options.append(applicator(self, node, schema, type_))
        if self.tracks_evaluated:
            options.append(unevaluated.fails(self, node, schema, type_))
        return tuple(unevaluated.without_evaluated(shape) for shape in self.disj(type_, options))

    def are_disjoint(self, a: int, b: int, type_: JsonType) -> bool:
        """Returns True if two subschemas provably share no value of a type."""
        met = self.conj(self.expand(2 * a, type_), self.expand(2 * b, type_))
        return all(self._is_void_shape(shape, MAX_VOID_DEPTH) for shape in met)

    # ---------------------------------------------------------------------------------- emptiness
    def _is_void_shape(self, shape: Shape, depth: int) -> bool:
        """Returns True if a shape provably has no value.

        False means that a search of `depth` levels found no proof.
        """
        self._spend(1)
        if isinstance(shape, StringShape):
            try:
                return automaton.is_void(self.algebra, shape.lang, 500)
            except TooLarge:
                return False
        if isinstance(shape, ObjectShape) and depth:
            needed = [w for c in shape.clauses if len(c) == 1 for w in c]
            needed.sort(key=lambda w: sort_key(w.key))  # so that every process takes the same steps
            return any(self.is_void(self.witness_lits(shape, w), depth - 1) for w in needed)
        if isinstance(shape, ArrayShape) and depth:
            return any(
                self.is_void(shape.item_lits(i), depth - 1)
                for i in range(min(shape.low, len(shape.prefix) + 1))
            )
        return False

    def witness_lits(self, shape: ObjectShape, witness: MemberWitness) -> Lits:
        """Returns the constraint on a member that is to be a witness."""
        own = TRUE if witness.lits is None else witness.lits
        return all_of(own, self.member_lits(shape, witness.key)) if isinstance(witness.key, str) else own

    def member_lits(self, shape: ObjectShape, name: str) -> Lits:
        """Returns the constraint on the member `name` of an object of the shape."""
        by_set = (lits for keys, lits in shape.name_sets if keys.covers(self.algebra, name))
        return all_of(*(lits for known, lits in shape.properties if known == name), *by_set)

    def is_void(self, lits: Lits, depth: int) -> bool:
        """Returns True if a constraint provably has no value; `depth` is as in `_is_void_shape`."""
        if lits == FALSE:
            return True
        key = (lits, depth)
        if key not in self._known_void:
            self._known_void[key] = False  # so that a recursive schema is not proved empty by itself
            self._level += 1
            outer, self._open_cycles = self._open_cycles, set()
            try:
                self._known_void[key] = all(
                    self._is_void_shape(shape, depth) for type_ in TYPES for shape in self.shapes(lits, type_)
                )
            except _UnresolvedCycle:
                del self._known_void[key]
                return False
            finally:
                self._level -= 1
                self._open_cycles = outer
        return self._known_void[key]
