"""Obligations resolved: a set of literals becomes, type by type, the list of shapes that meet it.

This is the boolean heart of the compiler. Everything that applies to a value in place is worked out here:
`allOf`, `anyOf`, `oneOf`, `not`, `if`, `$ref`, `dependent*`, `enum`, `const`, `type`, and `unevaluated*` by
following, for each way a value can conform, which members or items were evaluated on that way. A subschema
that refers to itself in place says nothing by that, as a validator would never come back from it.

It must not know how a shape is written. Invariants: results depend on the obligation alone and are
memoized; the number of shapes per obligation is bounded, and passing the bound is a refusal with a place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Final

import msgspec

from b3node.grammar import automaton, keywords
from b3node.grammar.document import Document
from b3node.grammar.keywords import Table, decimal
from b3node.grammar.refusal import Inexact, child
from b3node.grammar.regular import VOID, Algebra, Lang, TooLarge
from b3node.grammar.shapes import (
    FALSE,
    TOP,
    TRUE,
    TYPES,
    Array,
    Clause,
    Dnf,
    Keys,
    Lits,
    Number,
    Object,
    Shape,
    Spot,
    Text,
    Type,
    Witness,
    Words,
    all_of,
    lit,
    meet,
    tidy_object,
)

MAX_SHAPES: Final = 400
"""Ways in which a value of one type may meet one obligation."""
MAX_CLAUSES: Final = 12
"""Clauses that a disjunction may become, before it stays a list of shapes."""
MAX_SUBSETS: Final = 8
"""Branches under an `unevaluated*` keyword, each subset of which is a way to conform."""
_TYPE_NAMES: Final = frozenset({*TYPES, "integer"})
_EMPTINESS_DEPTH: Final = 4


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
                out = self._conj(out, self.expand(number, type_))
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
        type_ = type_of(value)
        return any(self._has(value, shape) for shape in self.shapes(lits, type_))

    # --------------------------------------------------------------------------- boolean algebra
    def _conj(self, a: Dnf, b: Dnf) -> Dnf:
        if len(a) * len(b) > 20 * MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        self._spend(len(a) * len(b))
        met = (meet(self.algebra, x, y) for x in a for y in b)
        out = tuple(dict.fromkeys(shape for shape in met if shape is not None))
        if len(out) > MAX_SHAPES:
            raise Inexact("", "the alternatives multiply beyond what can be written")
        return out

    def _disj(self, type_: Type, options: Iterable[Dnf]) -> Dnf:
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
            return _one_clause_array(out)
        return self._one_clause_object(out) if type_ == "object" else out

    def _one_clause_object(self, shapes: Dnf) -> Dnf:
        """Alternatives that are all made of clauses are one conjunction of clauses, when they are few."""
        clausal: list[list[Clause]] = []
        for shape in shapes:
            clauses = _as_clauses(shape) if isinstance(shape, Object) else None
            if clauses is None:
                return shapes
            clausal.append(clauses)
        product: list[Clause] = [frozenset()]
        for clauses in clausal:
            product = list(dict.fromkeys(a | b for a in product for b in clauses))
            if len(product) > MAX_CLAUSES:
                return shapes
        order = dict.fromkeys(n for s in shapes if isinstance(s, Object) for n in (*dict(s.named), *s.order))
        met = tidy_object(self.algebra, Object(clauses=frozenset(product), order=tuple(order)))
        return (met,) if met is not None else ()

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
            out = self._typed(node, table["type"], type_)
        if "enum" in table or "const" in table:
            out = self._conj(out, self._enumerated(node, table, type_))
        if (out and "$ref" not in table) or not self.document.legacy:
            own = keywords.holds(self, node, type_) if out else None
            out = self._conj(out, (own,)) if own is not None else out
        for key in table:
            if not out:
                return ()
            reader = _IN_PLACE.get(key)
            if reader is not None:
                out = self._conj(out, reader(self, node, table, type_))
        return self._unevaluated(node, table, type_, out) if self.tracking else out

    def _failing(self, node: int, type_: Type) -> Dnf:
        if self.document[node].value is False:
            return (TOP[type_],)
        table = self._table(node)
        options: list[Dnf] = []
        if "type" in table:
            options.append(self._mistyped(node, table["type"], type_))
        if "enum" in table or "const" in table:
            options.append(self._unlisted(node, table, type_))
        if (TOP[type_],) in options:
            return (TOP[type_],)
        if "$ref" not in table or not self.document.legacy:
            options.append(keywords.fails(self, node, type_))
        for key in table:
            reader = _IN_PLACE_FAILS.get(key)
            if reader is not None:
                options.append(reader(self, node, table, type_))
        if self.tracking:
            options.append(self._unevaluated_fails(node, table, type_))
        return tuple(_unseen(shape) for shape in self._disj(type_, options))

    # ------------------------------------------------------------------------------ type and enum
    def _types(self, node: int, value: object) -> set[str]:
        names = value if isinstance(value, list) else [value]
        pointer = child(self.document[node].pointer, "type")
        for name in names:
            if not isinstance(name, str) or name not in _TYPE_NAMES:
                raise Inexact(pointer, "an unknown type is named")
        return set(names)

    def _typed(self, node: int, value: object, type_: Type) -> Dnf:
        names = self._types(node, value)
        if type_ in names:
            return (TOP[type_],)
        return (Number(integer=True),) if type_ == "number" and "integer" in names else ()

    def _mistyped(self, node: int, value: object, type_: Type) -> Dnf:
        names = self._types(node, value)
        if type_ in names:
            return ()
        return (Number(integer=False),) if type_ == "number" and "integer" in names else (TOP[type_],)

    def _listed_values(self, node: int, table: Table, type_: Type) -> list[object]:
        """The values of a type that `enum` and `const` leave."""
        out = table.get("enum", [table.get("const")])
        if not isinstance(out, list):
            raise Inexact(child(self.document[node].pointer, "enum"), "enum is an array")
        if "enum" in table and "const" in table:
            wanted = canonical(table["const"])
            out = [value for value in out if canonical(value) == wanted]
        return [value for value in out if type_of(value) == type_]

    def _enumerated(self, node: int, table: Table, type_: Type) -> Dnf:
        values = self._listed_values(node, table, type_)
        if not values:
            return ()
        if type_ == "string":
            return (Text(self._words(values)),)
        if type_ == "number":
            return (Number(values=frozenset(d for v in values if (d := decimal(v)) is not None)),)
        texts = {canonical(value): value for value in values}
        if type_ in {"null", "boolean"}:
            return (Words(frozenset(texts)),)
        self.listed |= {key: value for key, value in texts.items() if key not in self.listed}
        seen = frozenset(texts)
        return (Array(values=seen),) if type_ == "array" else (Object(values=seen),)

    def _words(self, values: list[object]) -> Lang:
        return self.algebra.table(automaton.words([value for value in values if isinstance(value, str)]))

    def _unlisted(self, node: int, table: Table, type_: Type) -> Dnf:
        values = self._listed_values(node, table, type_)
        if not values:
            return (TOP[type_],)
        if type_ == "string":
            return (Text(self.algebra.negate(self._words(values))),)
        if type_ == "number":
            return (Number(without=frozenset(d for v in values if (d := decimal(v)) is not None)),)
        if type_ in {"null", "boolean"}:
            top = TOP[type_]
            left = top.texts - {canonical(v) for v in values} if isinstance(top, Words) else frozenset()
            return (Words(left),) if left else ()
        out: Dnf = (TOP[type_],)
        for value in values:
            exact = self._synthetic(node, _exactly(value))
            out = self._conj(out, self.expand(2 * exact + 1, type_))
        return out

    def _synthetic(self, node: int, value: dict[str, object]) -> int:
        place = self.document[node]
        return self.document.intern(value, place.pointer, place.base, place.scope)

    # ---------------------------------------------------------------------------------- in place
    def _branches(self, node: int, table: Table, key: str) -> list[int]:
        row = table[key]
        if not isinstance(row, list) or not row:
            raise Inexact(child(self.document[node].pointer, key), f"{key} is an array of schemas")
        return [self.document.below(node, value, key, i) for i, value in enumerate(row)]

    def all_hold(self, node: int, table: Table, type_: Type) -> Dnf:
        """`allOf`."""
        out: Dnf = (TOP[type_],)
        for branch in self._branches(node, table, "allOf"):
            out = self._conj(out, self.expand(2 * branch, type_))
        return out

    def some_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        """That `allOf` fails."""
        return self._disj(
            type_, [self.expand(2 * b + 1, type_) for b in self._branches(node, table, "allOf")]
        )

    def any_holds(self, node: int, table: Table, type_: Type) -> Dnf:
        """`anyOf`; where evaluated members count, every set of branches is a way of its own."""
        branches = list(dict.fromkeys(self._branches(node, table, "anyOf")))
        single = [self.expand(2 * branch, type_) for branch in branches]
        if not self.tracking or len(branches) == 1 or type_ not in {"array", "object"}:
            return self._disj(type_, single)
        alive = [dnf for dnf in single if dnf]
        if len(alive) > MAX_SUBSETS:
            raise Inexact(child(self.document[node].pointer, "anyOf"), "too many branches under unevaluated")
        ways = []
        for size in range(1, len(alive) + 1):
            for chosen in combinations(alive, size):
                out: Dnf = (TOP[type_],)
                for dnf in chosen:
                    out = self._conj(out, dnf)
                ways.append(out)
        return self._disj(type_, ways)

    def none_holds(self, node: int, table: Table, type_: Type) -> Dnf:
        """That `anyOf` fails."""
        return self._none(self._branches(node, table, "anyOf"), type_)

    def _none(self, branches: list[int], type_: Type) -> Dnf:
        out: Dnf = (TOP[type_],)
        for branch in branches:
            out = self._conj(out, self.expand(2 * branch + 1, type_))
        return out

    def one_holds(self, node: int, table: Table, type_: Type) -> Dnf:
        """`oneOf`: a branch, and of the others only those negated that could hold with it."""
        branches = self._branches(node, table, "oneOf")
        alive = [b for b in branches if self.expand(2 * b, type_)]
        out = []
        for i, branch in enumerate(alive):
            way = self.expand(2 * branch, type_)
            for j, other in enumerate(alive):
                if i != j and not self._apart(branch, other, type_):
                    way = self._conj(way, self.expand(2 * other + 1, type_)) if way else way
            out.append(way)
        return self._disj(type_, out)

    def not_one_holds(self, node: int, table: Table, type_: Type) -> Dnf:
        """That `oneOf` fails: no branch holds, or two do."""
        branches = self._branches(node, table, "oneOf")
        two = [
            self._conj(self.expand(2 * a, type_), self.expand(2 * b, type_))
            for a, b in combinations(branches, 2)
        ]
        return self._disj(type_, [self._none(branches, type_), *two])

    def _apart(self, a: int, b: int, type_: Type) -> bool:
        """Whether two subschemas provably share no value of a type."""
        met = self._conj(self.expand(2 * a, type_), self.expand(2 * b, type_))
        return all(self._is_void(shape, _EMPTINESS_DEPTH) for shape in met)

    def inner_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        """`not`."""
        inner = self.document.below(node, table["not"], "not")
        return tuple(_unseen(shape) for shape in self.expand(2 * inner + 1, type_))

    def inner_holds(self, node: int, table: Table, type_: Type) -> Dnf:
        """That `not` fails."""
        inner = self.document.below(node, table["not"], "not")
        return self.expand(2 * inner, type_)

    def reference(self, node: int, table: Table, type_: Type) -> Dnf:
        """`$ref`, `$dynamicRef`."""
        out: Dnf = (TOP[type_],)
        for target in self._targets(node, table):
            out = self._conj(out, self.expand(2 * target, type_))
        return out

    def reference_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        """That a reference's target fails."""
        return self._disj(type_, [self.expand(2 * t + 1, type_) for t in self._targets(node, table)])

    def _targets(self, node: int, table: Table) -> Iterator[int]:
        for key in ("$ref", "$recursiveRef", "$dynamicRef"):
            if key in table:
                yield self.document.resolve(node, table[key], dynamic=key == "$dynamicRef")

    def condition(self, node: int, table: Table, type_: Type) -> Dnf:
        """`if`, `then`, `else`."""
        test, then, other = self._condition(node, table)
        return self._disj(
            type_,
            [
                self._conj(self.expand(2 * test, type_), self.expand(2 * then, type_)),
                self._conj(self.expand(2 * test + 1, type_), self.expand(2 * other, type_)),
            ],
        )

    def condition_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        """That `if`, `then`, `else` fail."""
        test, then, other = self._condition(node, table)
        return self._disj(
            type_,
            [
                self._conj(self.expand(2 * test, type_), self.expand(2 * then + 1, type_)),
                self._conj(self.expand(2 * test + 1, type_), self.expand(2 * other + 1, type_)),
            ],
        )

    def _condition(self, node: int, table: Table) -> tuple[int, int, int]:
        below = self.document.below
        return (
            below(node, table["if"], "if"),
            below(node, table.get("then", True), "then"),
            below(node, table.get("else", True), "else"),
        )

    def dependent(self, node: int, table: Table, type_: Type) -> Dnf:
        """`dependentSchemas`, and the schemas among `dependencies`."""
        out: Dnf = (TOP[type_],)
        for name, schema in self._dependents(node, table) if type_ == "object" else ():
            absent = Object(clauses=frozenset({frozenset({Witness(name, None)})}))
            present = Object(clauses=frozenset({frozenset({Witness(name)})}))
            met = self._conj((present,), self.expand(2 * schema, type_))
            tidy = tidy_object(self.algebra, absent)
            out = self._conj(out, self._disj(type_, [(tidy,) if tidy is not None else (), met]))
        return out

    def dependent_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        """That a dependent schema fails."""
        options: list[Dnf] = []
        for name, schema in self._dependents(node, table) if type_ == "object" else ():
            present = Object(clauses=frozenset({frozenset({Witness(name)})}))
            options.append(self._conj((present,), self.expand(2 * schema + 1, type_)))
        return self._disj(type_, options)

    def _dependents(self, node: int, table: Table) -> Iterator[tuple[str, int]]:
        for key in ("dependentSchemas", "dependencies"):
            for name, value in keywords.mapping(table, self.document[node], key).items():
                if not isinstance(value, list | str):
                    yield name, self.document.below(node, value, key, name)

    # -------------------------------------------------------------------------------- unevaluated
    def _unevaluated(self, node: int, table: Table, type_: Type, dnf: Dnf) -> Dnf:
        if type_ == "object" and "unevaluatedProperties" in table:
            lits = lit(self.document.below(node, table["unevaluatedProperties"], "unevaluatedProperties"))
            rest = (_rest_of(shape, lits) for shape in dnf if isinstance(shape, Object))
            return tuple(s for shape in rest if (s := tidy_object(self.algebra, shape)) is not None)
        if type_ == "array" and "unevaluatedItems" in table:
            value = table["unevaluatedItems"]
            lits = lit(self.document.below(node, value, "unevaluatedItems"))
            return self._conj_each(dnf, lambda shape: self._rest_items(node, shape, lits))
        return dnf

    def _conj_each(self, dnf: Dnf, more: Callable[[Array], Shape]) -> Dnf:
        met = (meet(self.algebra, shape, more(shape)) for shape in dnf if isinstance(shape, Array))
        return tuple(shape for shape in met if shape is not None)

    def _rest_items(self, node: int, shape: Array, lits: Lits) -> Shape:
        """What all items meet that no keyword has evaluated on this way; then all are evaluated."""
        if shape.seen < 0:
            return shape
        for other in shape.seen_if:
            if TRUE in (other, lits):
                lits = TRUE
                break
            options: list[object] = [self._value(n) for n in (*other, *lits)]
            lits = lit(self._synthetic(node, {"anyOf": options}))
        return Array((TRUE,) * shape.seen, lits, seen=-1)

    def _value(self, number: int) -> object:
        """A literal as a schema."""
        value = self.document[number >> 1].value
        return {"not": value} if number & 1 else value

    def _unevaluated_fails(self, node: int, table: Table, type_: Type) -> Dnf:
        key = {"object": "unevaluatedProperties", "array": "unevaluatedItems"}.get(type_)
        if key is None or key not in table:
            return ()
        if any(
            other in table for other in ("anyOf", "oneOf", "if", "$ref", "$dynamicRef", "allOf", "contains")
        ):
            raise Inexact(child(self.document[node].pointer, key), f"{key} cannot be demanded to fail here")
        lits = keywords.negated(lit(self.document.below(node, table[key], key)))
        own = keywords.holds(self, node, type_)
        if isinstance(own, Object) or type_ == "object":
            seen = own.seen if isinstance(own, Object) else frozenset[Keys]()
            rest = _others_than(seen)
            return () if rest is None else (Object(clauses=frozenset({frozenset({Witness(rest, lits)})})),)
        start = own.seen if isinstance(own, Array) else 0
        return () if start < 0 else (Array(clauses=frozenset({frozenset({Spot(start, -1, lits)})})),)

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
            needed = [c for c in shape.clauses if len(c) == 1]
            return any(self.void(self.member(shape, w), depth - 1) for c in needed for w in c)
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

    # --------------------------------------------------------------------------------- membership
    def _kept(self, dnf: Dnf) -> Dnf:
        """Listed arrays and objects are tried against the rest of their shape; then only the list is left."""
        out: list[Shape] = []
        for shape in dnf:
            if not isinstance(shape, Array | Object) or shape.values is None:
                out.append(shape)
                continue
            rest = msgspec.structs.replace(shape, values=None)
            kept = frozenset(text for text in shape.values if self._has(self.listed[text], rest))
            if kept:
                out.append(Array(values=kept) if isinstance(shape, Array) else Object(values=kept))
        return tuple(dict.fromkeys(out))

    def _has(self, value: object, shape: Shape) -> bool:
        if isinstance(shape, Words):
            return canonical(value) in shape.texts
        if isinstance(shape, Text):
            return isinstance(value, str) and self.algebra.matches(shape.lang, value)
        if isinstance(shape, Number):
            number = decimal(value)
            return number is not None and shape.admits(number)
        if shape.values is not None:
            return canonical(value) in shape.values
        if isinstance(shape, Array):
            return isinstance(value, list) and self._has_items(value, shape)
        return isinstance(value, dict) and self._has_members(value, shape)

    def _has_items(self, row: list[object], shape: Array) -> bool:
        if len(row) < shape.low or 0 <= shape.high < len(row):
            return False
        if shape.unique and len({canonical(item) for item in row}) < len(row):
            return False
        for count in shape.counts:
            found = sum(self.meets(item, count.lits) for item in row)
            if found < count.low or 0 <= count.high < found:
                return False
        if not all(self.meets(item, shape.at(i)) for i, item in enumerate(row)):
            return False
        return all(any(self._spotted(row, spot) for spot in clause) for clause in shape.clauses)

    def _spotted(self, row: list[object], spot: Spot) -> bool:
        items = row[spot.low :] if spot.high < 0 else row[spot.low : spot.high + 1]
        return any(self.meets(item, spot.lits) for item in items)

    def _has_members(self, table: dict[str, object], shape: Object) -> bool:
        if len(table) < shape.low or 0 <= shape.high < len(table):
            return False
        if not all(self.meets(value, self.at(shape, name)) for name, value in table.items()):
            return False
        return all(any(self._witnessed(table, witness) for witness in clause) for clause in shape.clauses)

    def _witnessed(self, table: dict[str, object], witness: Witness) -> bool:
        key, lits = witness.key, witness.lits
        if isinstance(key, str):
            return key not in table if lits is None else key in table and self.meets(table[key], lits)
        return any(key.covers(self.algebra, n) and self.meets(v, lits or TRUE) for n, v in table.items())


def type_of(value: object) -> Type:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def canonical(value: object) -> str:
    """A text that equal JSON values share: members sorted, 1.0 as 1."""
    return msgspec.json.encode(_plain(value), order="sorted").decode()


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _exactly(value: object) -> dict[str, object]:
    """A schema of structure only that an array or object alone satisfies."""
    if isinstance(value, list):
        row: list[object] = [{"const": item} for item in value]
        size = len(row)
        return {"type": "array", "prefixItems": row, "items": False, "minItems": size, "maxItems": size}
    table = value if isinstance(value, dict) else {}
    return {
        "type": "object",
        "properties": {name: {"const": item} for name, item in table.items()},
        "required": list(table),
        "additionalProperties": False,
    }


def _unseen(shape: Shape) -> Shape:
    """The shape without what was evaluated: a subschema that fails evaluates nothing."""
    if isinstance(shape, Array) and (shape.seen or shape.seen_if):
        return msgspec.structs.replace(shape, seen=0, seen_if=frozenset())
    if isinstance(shape, Object) and shape.seen:
        return msgspec.structs.replace(shape, seen=frozenset())
    return shape


def _others_than(seen: frozenset[Keys]) -> Keys | None:
    """The names that no evaluated class has, or None when there are none."""
    names = frozenset[str]().union(*(keys.names for keys in seen if not keys.others))
    langs = frozenset[Lang]().union(*(keys.langs for keys in seen if not keys.others))
    return None if any(keys.others for keys in seen) else Keys(names, langs, others=True)


def _rest_of(shape: Object, lits: Lits) -> Object:
    rest = _others_than(shape.seen)
    if rest is None:
        return shape
    wide = shape.wide | {(rest, lits)} if lits != TRUE else shape.wide
    return msgspec.structs.replace(shape, wide=wide, seen=frozenset({Keys(others=True)}))


def _as_clauses(shape: Object) -> list[Clause] | None:
    """The shape as clauses alone, when it can be said so."""
    if shape.wide or shape.low or shape.high >= 0 or shape.values is not None or shape.seen:
        return None
    out = list(shape.clauses)
    for name, lits in shape.named:
        if lits == FALSE:
            out.append(frozenset({Witness(name, None)}))
        elif lits != TRUE:
            out.append(frozenset({Witness(name, None), Witness(name, lits)}))
    return out


def _one_clause_array(shapes: Dnf) -> Dnf:
    clausal = [list(s.clauses) for s in shapes if isinstance(s, Array) and s.only_clauses()]
    if len(clausal) < len(shapes):
        return shapes
    product: list[frozenset[Spot]] = [frozenset()]
    for clauses in clausal:
        product = list(dict.fromkeys(a | b for a in product for b in clauses))
        if len(product) > MAX_CLAUSES:
            return shapes
    return (Array(clauses=frozenset(product)),)


_Reader = Callable[[Obligations, int, Table, Type], Dnf]
_IN_PLACE: Final[dict[str, _Reader]] = {
    "$ref": Obligations.reference,
    "$dynamicRef": Obligations.reference,
    "$recursiveRef": Obligations.reference,
    "allOf": Obligations.all_hold,
    "anyOf": Obligations.any_holds,
    "oneOf": Obligations.one_holds,
    "not": Obligations.inner_fails,
    "if": Obligations.condition,
    "dependentSchemas": Obligations.dependent,
    "dependencies": Obligations.dependent,
}
_IN_PLACE_FAILS: Final[dict[str, _Reader]] = {
    "$ref": Obligations.reference_fails,
    "$dynamicRef": Obligations.reference_fails,
    "$recursiveRef": Obligations.reference_fails,
    "allOf": Obligations.some_fails,
    "anyOf": Obligations.none_holds,
    "oneOf": Obligations.not_one_holds,
    "not": Obligations.inner_holds,
    "if": Obligations.condition_fails,
    "dependentSchemas": Obligations.dependent_fails,
    "dependencies": Obligations.dependent_fails,
}
