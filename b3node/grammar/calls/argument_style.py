"""Arguments that are not one JSON object: as tags, keywords, elements, or JSON with other quotes.

Members are written in the order of their declaration, required ones always, others or not; each once. What members
need of each other beyond that (dependencies, counts, many alternatives) is not written but noted, because what a model
makes of these spellings is read and judged when it is finished anyway. Members that are not declared are not
written, except where none is declared at all: a model that keeps to a dialect's tags should not invent names.

A string stands bare: any text of its language without the marker that ends it and without control characters, which
stand for special tokens in the engine. A number, true, false, null is JSON, or Python's words; behind tags and
keywords lists and objects are so too, compiled as everywhere. Where nested values have a spelling of their own, they are
written here, lists with one schema for all items.

Invariants: the rule of a value is made before it is filled, so that recursive schemas end. Notes are pointers into
the schema; what is neither exact nor noted is a refusal (`Inexact`) with a place, as in the compiler.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from typing import Final

from b3node.dialects.kinds import ALL as ALL_KINDS, JsonType, Kinds, kinds
from b3node.grammar.constraints.literals import FALSE, TRUE, Lits, lit
from b3node.grammar.constraints.name_classes import name_classes, slot_names
from b3node.grammar.constraints.object_shape import MemberWitness, ObjectShape, names_required
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import TOP
from b3node.grammar.emit.compiler import Compiler
from b3node.grammar.emit.unquoted import UnquotedTexts
from b3node.grammar.gbnf.rules import Row, Rules
from b3node.grammar.gbnf.special_tokens import Marks
from b3node.grammar.inexact import Unsatisfiable, child
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import ALL, Algebra, Lang, Table
from b3node.grammar.languages.charset import Charset, union

MAX_SHAPES: Final = 8
"""Alternatives of an object that are written one beside the other; more are written as what they have in common."""
_TYING: Final = (
    "allOf", "anyOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "dependencies", "minProperties",
    "maxProperties", "propertyNames", "patternProperties", "enum", "const", "$ref",
)  # fmt: skip
"""Keywords by which members need each other, or an object as a whole is told from others."""

_LOOKALIKES: Final[tuple[JsonType, ...]] = ("number", "boolean", "null", "array", "object")
_WORDS: Final = ("true", "false", "null", "True", "False", "None")
_SPACES: Final[Charset] = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))
_BEGINNINGS: Final[Charset] = union(
    _SPACES,
    ((0x22, 0x22), (0x27, 0x27), (0x2B, 0x2B), (0x2D, 0x2E), (0x30, 0x39), (0x5B, 0x5B), (0x7B, 0x7B)),
)
"""What a number, a quoted text, a list or an object begins with in JSON or in Python, and white space before any value."""


class Spelled(ABC):
    """The writer of one schema's arguments; what a member and a value look like is for subclasses to say.

    Args:
        obligations: the schema, resolved.
        compiler: writes the JSON in it.
        marks: the special tokens of the markers.
    """

    around: tuple[Row, Row] = ((), ())
    """What stands before and behind the members of the arguments."""
    separator: Row = ()
    """What stands between two members."""

    def __init__(self, resolver: SchemaResolver, compiler: Compiler, marks: Marks) -> None:
        self.resolver = resolver
        self.compiler = compiler
        self.marks = marks
        self.rules: Rules = compiler.rules
        self.notes: dict[str, None] = {}
        self.bare = UnquotedTexts(resolver.algebra, compiler.rules)

    def whole(self) -> Row:
        """All arguments. Raises `Unsatisfiable` where no object conforms."""
        lits = lit(self.resolver.document.root)
        if not self.resolver.shapes(lits, "object"):
            raise Unsatisfiable("", "no value can satisfy this schema")
        before, behind = self.around
        return (*before, *self.members(lits, behind))

    # ---------------------------------------------------------------------------- for subclasses
    @abstractmethod
    def named(self, name: str, lits: Lits) -> Row:
        """One member under its name."""

    @abstractmethod
    def other(self, lang: Lang, lits: Lits) -> Row:
        """One member under any name of a language."""

    # ---------------------------------------------------------------------------------- members
    def members(self, lits: Lits, end: Row) -> Row:
        """The members of the objects that meet an obligation, and `end`."""
        shapes = [shape for shape in self.resolver.shapes(lits, "object") if isinstance(shape, ObjectShape)]
        if len(shapes) > MAX_SHAPES:
            self.note(lits, tying=True)
            shapes = [self._common(shapes)]
        return (self.rules.of(*(self._shape(shape, lits, end) for shape in shapes)),)

    def _shape(self, shape: ObjectShape, lits: Lits, end: Row) -> Row:
        required = names_required(shape.clauses)
        names = [] if shape.values is not None else slot_names(shape)
        if shape.values is not None or shape.high >= 0 or not _is_simple(shape, required):
            self.note(lits, tying=True)
        placed = [(name, self.resolver.member_lits(shape, name)) for name in names]
        # A member that no value can be is left out; where it is required, nothing that follows comes to an end.
        declared = [(name, at) for name, at in placed if name in required or not self.resolver.is_void(at, 1)]
        if unwritten := {name for name, _ in declared if any(char < " " for char in name)}:
            self.note(lits, "properties")
            declared = [(name, at) for name, at in declared if name not in unwritten]
        # Where a member is asked for, whatever it is, nothing ends before there is one.
        without = self.rules.of() if shape.low else None
        last = self._others(shape, end) if not names else (without, self.rules.of(end))
        return (self._slots(declared, required, last),)

    def _slots(
        self, members: list[tuple[str, Lits]], required: set[str], last: tuple[int | None, int]
    ) -> int:
        """The rule of the members from the first on; `last` is what follows all, without and with a member before."""
        first, later = last
        first = later if first is None else first
        for name, lits in reversed(members):
            member = self.named(name, lits)
            skips = name not in required
            first, later = (
                self.rules.of((*member, later), *([(first,)] if skips else [])),
                self.rules.of((*self.separator, *member, later), *([(later,)] if skips else [])),
            )
        return first

    def _others(self, shape: ObjectShape, end: Row) -> tuple[int, int]:
        """Any number of members that are not declared: the rules of them without and with a member before."""
        classes = name_classes(self.resolver.algebra, shape, []) if shape.high != 0 else []
        rows = [self.other(lang, lits) for lang, lits, _ in classes if not self.resolver.is_void(lits, 1)]
        later = self.rules.new()
        for row in rows:
            self.rules.add(later, (*self.separator, *row, later))
        self.rules.add(later, end)
        first = [(*row, later) for row in rows]
        return self.rules.of(*(first if shape.low else [*first, end])), later

    def _common(self, shapes: list[ObjectShape]) -> ObjectShape:
        """What the alternatives of an object have in common, and all the names that they have."""
        names = dict.fromkeys(name for shape in shapes for name in slot_names(shape))
        at = {name: {self.resolver.member_lits(shape, name) for shape in shapes} - {FALSE} for name in names}
        required = set.intersection(*(names_required(shape.clauses) for shape in shapes))
        return ObjectShape(
            properties=tuple(
                (name, next(iter(every)) if len(every) == 1 else TRUE) for name, every in at.items()
            ),
            clauses=frozenset(frozenset({MemberWitness(name)}) for name in required),
        )

    # ------------------------------------------------------------------------------------ notes
    def note(self, lits: Lits, *keywords: str, tying: bool = False) -> None:
        """Takes down that an obligation is not written as it is: its keywords, else all of it."""
        nodes = [self.resolver.document[number >> 1] for number in sorted(lits)]
        found = [
            child(node.pointer, keyword)
            for node in nodes
            if isinstance(node.value, dict)
            for keyword in (_TYING if tying else keywords)
            if keyword in node.value
        ]
        places = found or [max((node.pointer for node in nodes), key=len, default="")]
        self.notes.update(dict.fromkeys(f"#{place}" for place in places))

    def string(
        self, lits: Lits, until: str, tail: Row, *, alike: bool = True, blank: bool = True
    ) -> Iterator[Row]:
        """The strings of an obligation as bare text that `until` ends, each followed by `tail`; none if there are none.

        Where they stand like other values (`alike`), a text that reads like one is read as one. If that would not
        conform, such texts are not written; nor are blank ones, unless they may be (`blank`).
        """
        lang, algebra = self.resolver.string_language(lits), self.resolver.algebra
        if alike and self.confusable(lits):
            lang = algebra.both([lang, algebra.table(texts_alone())])
        if not blank:
            lang = algebra.both([lang, algebra.table(texts_with_something())])
        row, exact = self.bare.text(lang, until, tail)
        if not exact:
            self.note(lits, "pattern", "format", "minLength", "maxLength", "enum", "const")
        yield from [row] if row is not None else []

    def confusable(self, lits: Lits) -> bool:
        """Whether a value may be something else than a string, but not anything: a text could be read as what it may not.

        Who reads the call takes of a schema only what `kinds` sees: where that leaves a kind open, a text that is
        spelled like it is read as one, whatever else the schema says of it.
        """
        read = self.read(lits)
        return any(
            shapes != (TOP[kind],) and (shapes or kind in read)
            for kind in _LOOKALIKES
            for shapes in [self.resolver.shapes(lits, kind)]
        )

    def read(self, lits: Lits) -> Kinds:
        """The kinds that a value may be of, for all that whoever reads it sees."""
        document = self.resolver.document
        said = [document[number >> 1].value for number in lits if not number & 1]
        root = document[document.root].value
        return frozenset[str]().union(*(kinds(schema, root) for schema in said)) if said else ALL_KINDS


@cache
def texts_alone() -> Table:
    """The texts that no value but a string could be spelled as."""
    algebra = Algebra()
    words = [algebra.cat(algebra.text(word), algebra.repeat(algebra.chars(_SPACES), 0)) for word in _WORDS]
    alike = algebra.either([algebra.cat(algebra.chars(_BEGINNINGS), ALL), *words])
    return automaton.build(algebra, algebra.negate(alike))


@cache
def texts_with_something() -> Table:
    """The texts that are not blank."""
    algebra = Algebra()
    return automaton.build(algebra, algebra.negate(algebra.repeat(algebra.chars(_SPACES), 0)))


def _is_simple(shape: ObjectShape, required: set[str]) -> bool:
    """Whether members need nothing of each other."""
    return len(shape.clauses) == len(required) and shape.low <= max(len(required), 1)
