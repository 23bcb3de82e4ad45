"""Arguments that are not one JSON object: written as tags, keywords, elements, or JSON with other quotes.

Members are written in the order of their declaration, each at most once; required ones always, others
optionally. The grammar does not hold relations between members (dependencies, counts, many alternatives).
They are noted instead, because the finished arguments are parsed and judged anyway. Members that are not
declared are not written, except where none is declared at all: a model that keeps to the tags of a dialect
should not invent names.

A string is unquoted: any text of its language without the marker that ends it and without control characters,
which stand for special tokens in the engine. Numbers, true, false and null are JSON, or Python's words. After
tags and keywords lists and objects are so too, compiled as everywhere. Styles that write nested values in
their own way are written here; their lists have one schema for all items.

Invariants: the rule of a value is made before it is filled, so that recursive schemas end. Notes are pointers
into the schema; a part of it that is neither exact nor noted is a refusal (`Inexact`) with a place, as in the
compiler.
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
from b3node.grammar.gbnf.rules import Rules, Symbols
from b3node.grammar.gbnf.special_tokens import SpecialTokens
from b3node.grammar.inexact import Unsatisfiable, child
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import ALL, Algebra, Dfa, Lang
from b3node.grammar.languages.charset import Charset, union

MAX_ALTERNATIVES: Final = 8
"""Alternatives of an object that are written one by one; of more only the common part is written."""
_RELATING_KEYWORDS: Final = (
    "allOf", "anyOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "dependencies",
    "minProperties", "maxProperties", "propertyNames", "patternProperties", "enum", "const", "$ref",
)  # fmt: skip
"""Keywords that relate members to each other, or that constrain an object as a whole."""

_OTHER_TYPES: Final[tuple[JsonType, ...]] = ("number", "boolean", "null", "array", "object")
"""JSON types whose values an unquoted text may be mistaken for."""
_LITERAL_WORDS: Final = ("true", "false", "null", "True", "False", "None")
_SPACES: Final[Charset] = ((0x9, 0xA), (0xD, 0xD), (0x20, 0x20))
_FIRST_CHARS: Final[Charset] = union(
    _SPACES,
    ((0x22, 0x22), (0x27, 0x27), (0x2B, 0x2B), (0x2D, 0x2E), (0x30, 0x39), (0x5B, 0x5B), (0x7B, 0x7B)),
)
"""First characters of a number, a quoted text, a list or an object in JSON or in Python.

White space may come before any value.
"""


class ArgumentWriter(ABC):
    """Writer of the arguments of one schema; subclasses write a member and a value.

    Args:
        resolver: the constraints of the schema.
        compiler: writes the JSON in it.
        marks: the special tokens of the markers.
    """

    delimiters: tuple[Symbols, Symbols] = ((), ())
    """Rows before and after the members of the arguments."""
    separator: Symbols = ()
    """Row between two members."""

    def __init__(self, resolver: SchemaResolver, compiler: Compiler, marks: SpecialTokens) -> None:
        self.resolver = resolver
        self.compiler = compiler
        self.marks = marks
        self.rules: Rules = compiler.rules
        self.notes: dict[str, None] = {}
        self.unquoted = UnquotedTexts(resolver.algebra, compiler.rules)

    def write(self) -> Symbols:
        """Returns the row of all arguments. Raises `Unsatisfiable` if no object conforms."""
        lits = lit(self.resolver.document.root)
        if not self.resolver.shapes(lits, "object"):
            raise Unsatisfiable("", "no value can satisfy this schema")
        before, after = self.delimiters
        return (*before, *self.members(lits, after))

    # ---------------------------------------------------------------------------- for subclasses
    @abstractmethod
    def named(self, name: str, lits: Lits) -> Symbols:
        """Returns the row of one member under its name."""

    @abstractmethod
    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the row of one member under any name of a language."""

    # ---------------------------------------------------------------------------------- members
    def members(self, lits: Lits, end: Symbols) -> Symbols:
        """Returns the row of the members of the objects that meet a constraint, and `end`."""
        shapes = [shape for shape in self.resolver.shapes(lits, "object") if isinstance(shape, ObjectShape)]
        if len(shapes) > MAX_ALTERNATIVES:
            self.note(lits, relating=True)
            shapes = [self._common_shape(shapes)]
        return (self.rules.of(*(self._shape(shape, lits, end) for shape in shapes)),)

    def _shape(self, shape: ObjectShape, lits: Lits, end: Symbols) -> Symbols:
        """Returns the rule of the members of one shape, and `end`."""
        required = names_required(shape.clauses)
        names = [] if shape.values is not None else slot_names(shape)
        if (
            shape.values is not None
            or shape.high is not None
            or not _has_independent_members(shape, required)
        ):
            self.note(lits, relating=True)
        constrained = [(name, self.resolver.member_lits(shape, name)) for name in names]
        # A member without a possible value is left out; a required one stays, and makes its object void.
        declared = [
            (name, at) for name, at in constrained if name in required or not self.resolver.is_void(at, 1)
        ]
        if unwritten := {name for name, _ in declared if any(char < " " for char in name)}:
            self.note(lits, "properties")
            declared = [(name, at) for name, at in declared if name not in unwritten]
        # Where any one member is required, the object does not end before it.
        none_before = self.rules.of() if shape.low else None
        last = self._others(shape, end) if not names else (none_before, self.rules.of(end))
        return (self._slots(declared, required, last),)

    def _slots(
        self, members: list[tuple[str, Lits]], required: set[str], last: tuple[int | None, int]
    ) -> int:
        """Returns the rule of the members from the first on.

        `last` are the rules after all of them, without and with a member before.
        """
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

    def _others(self, shape: ObjectShape, end: Symbols) -> tuple[int, int]:
        """Returns the rules of any number of undeclared members, without and with a member before them."""
        classes = name_classes(self.resolver.algebra, shape, []) if shape.high != 0 else []
        rows = [self.other(lang, lits) for lang, lits, _ in classes if not self.resolver.is_void(lits, 1)]
        later = self.rules.new()
        for row in rows:
            self.rules.add(later, (*self.separator, *row, later))
        self.rules.add(later, end)
        first = [(*row, later) for row in rows]
        return self.rules.of(*(first if shape.low else [*first, end])), later

    def _common_shape(self, shapes: list[ObjectShape]) -> ObjectShape:
        """Returns the common part of the alternatives of an object, with all names of any of them."""
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
    def note(self, lits: Lits, *keywords: str, relating: bool = False) -> None:
        """Notes that a constraint is not written exactly: the keywords of it that are given, or all of it.

        With `relating` these are the keywords that relate members.
        """
        nodes = [self.resolver.document[number >> 1] for number in sorted(lits)]
        found = [
            child(node.pointer, keyword)
            for node in nodes
            if isinstance(node.value, dict)
            for keyword in (_RELATING_KEYWORDS if relating else keywords)
            if keyword in node.value
        ]
        places = found or [max((node.pointer for node in nodes), key=len, default="")]
        self.notes.update(dict.fromkeys(f"#{place}" for place in places))

    def string(
        self, lits: Lits, until: str, tail: Symbols, *, untyped: bool = True, blank: bool = True
    ) -> Iterator[Symbols]:
        """Yields the row of the strings of a constraint, unquoted; none if there are none.

        Args:
            lits: the constraint.
            until: the marker that ends the text and must not occur in it.
            tail: the row after each text.
            untyped: whether the style leaves the type of a value open, so that a text may be parsed as
                another value. If such a value would not conform, texts of that form are not written.
            blank: whether blank texts are written.
        """
        lang, algebra = self.resolver.string_language(lits), self.resolver.algebra
        if untyped and self.is_ambiguous(lits):
            lang = algebra.both([lang, algebra.from_dfa(unambiguous_texts())])
        if not blank:
            lang = algebra.both([lang, algebra.from_dfa(nonblank_texts())])
        row, exact = self.unquoted.text(lang, until, tail)
        if not exact:
            self.note(lits, "pattern", "format", "minLength", "maxLength", "enum", "const")
        yield from [row] if row is not None else []

    def is_ambiguous(self, lits: Lits) -> bool:
        """Returns True if a text could be parsed as a value that does not conform.

        That is so where a value may be something other than a string, but not anything. The parser sees no
        more of a schema than `kinds` does: where that leaves a type open, a text that looks like it is parsed
        as it, regardless of the rest of the schema.
        """
        parsed_kinds = self.parsed_kinds(lits)
        return any(
            shapes != (TOP[kind],) and (shapes or kind in parsed_kinds)
            for kind in _OTHER_TYPES
            for shapes in [self.resolver.shapes(lits, kind)]
        )

    def parsed_kinds(self, lits: Lits) -> Kinds:
        """Returns the JSON types that the parser would accept for this value."""
        document = self.resolver.document
        said = [document[number >> 1].value for number in lits if not number & 1]
        root = document[document.root].value
        return frozenset[str]().union(*(kinds(schema, root) for schema in said)) if said else ALL_KINDS


@cache
def unambiguous_texts() -> Dfa:
    """Returns the texts that can be parsed as nothing but a string."""
    algebra = Algebra()
    words = [
        algebra.cat(algebra.text(word), algebra.repeat(algebra.chars(_SPACES), 0)) for word in _LITERAL_WORDS
    ]
    other_values = algebra.either([algebra.cat(algebra.chars(_FIRST_CHARS), ALL), *words])
    return automaton.build(algebra, algebra.negate(other_values))


@cache
def nonblank_texts() -> Dfa:
    """Returns the texts that are not blank."""
    algebra = Algebra()
    return automaton.build(algebra, algebra.negate(algebra.repeat(algebra.chars(_SPACES), 0)))


def _has_independent_members(shape: ObjectShape, required: set[str]) -> bool:
    """Returns True if members do not depend on each other."""
    return len(shape.clauses) == len(required) and shape.low <= max(len(required), 1)
