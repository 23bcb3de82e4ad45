"""Argument styles: members and values as each style writes them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Final

from b3node.dialects.dialect import NestedArguments, QuotedArguments, TaggedArguments
from b3node.dialects.kinds import JsonType
from b3node.grammar.calls.argument_style import ArgumentWriter
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.literals import Lits, lit
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import TOP, TYPES
from b3node.grammar.counts import lowered
from b3node.grammar.emit.compiler import Compiler
from b3node.grammar.gbnf.rules import Symbols, Times
from b3node.grammar.gbnf.special_tokens import SpecialTokens
from b3node.grammar.gbnf.strings import literal
from b3node.grammar.languages.algebra import ALL, Lang

_NON_STRINGS: Final[tuple[JsonType, ...]] = tuple(kind for kind in TYPES if kind != "string")
_SCALARS: Final[tuple[JsonType, ...]] = ("number", "boolean", "null")
MAX_ITEMS: Final = 256
"""Items of a list that are counted."""


class TaggedWriter(ArgumentWriter):
    """Writer of `TaggedArguments`."""

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: SpecialTokens, style: TaggedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._style = style
        self._until = style.close.strip() or style.close

    def named(self, name: str, lits: Lits) -> Symbols:
        """Returns `open` NAME `named` VALUE `close`."""
        named = self.marks.row(self._style.named)
        return (*self.marks.row(self._style.open), literal(name), *named, *self._value(lits))

    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the same under a name of a language."""
        tail = (*self.marks.row(self._style.named), *self._value(lits))
        return (*self.marks.row(self._style.open), *self.unquoted.name(lang, tail))

    def _value(self, lits: Lits) -> Symbols:
        """Returns a value and the marker that ends it."""
        return (self.rules.of(*self._rows(lits)),)

    def _rows(self, lits: Lits) -> Iterator[Symbols]:
        close = self.marks.row(self._style.close)
        is_typed = bool(self._style.kind)
        yield from (
            self._kind("string", row) for row in self.string(lits, self._until, close, untyped=not is_typed)
        )
        if self._style.kind == "type":
            yield from (
                self._kind(kind, (*self.compiler.value(lits, (kind,)), *close)) for kind in _NON_STRINGS
            )
        elif is_typed or self.resolver.string_language(lits) != ALL or self.is_ambiguous(lits):
            yield self._kind("", (*self.compiler.value(lits, _NON_STRINGS), *close))

    def _kind(self, kind: str, value: Symbols) -> Symbols:
        """Returns a value with its type before it, where the style writes types."""
        if not self._style.kind:
            return value
        written = kind if self._style.kind == "type" else "true" if kind == "string" else "false"
        return (literal(written), *self.marks.row(self._style.kind_close), *value)


class KeywordWriter(ArgumentWriter):
    """Writer of `KeywordArguments`."""

    delimiters = (('"("',), ('")"',))
    separator = ('","', "ws")

    def named(self, name: str, lits: Lits) -> Symbols:
        """Returns NAME`=`VALUE."""
        return (literal(f"{name}="), *self.compiler.value(lits))

    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the same under a name of a language."""
        return self.unquoted.name(lang, ('"="', *self.compiler.value(lits)))


class NestingWriter(ArgumentWriter):
    """Writer of a style that also covers nested values; a value's rule is made once and filled later."""

    def __init__(self, resolver: SchemaResolver, compiler: Compiler, marks: SpecialTokens) -> None:
        super().__init__(resolver, compiler, marks)
        self._known: dict[Lits, int] = {}
        self._todo: list[Lits] = []

    def write(self) -> Symbols:
        """Returns the row of all arguments. Raises `Unsatisfiable` if no object conforms."""
        row = super().write()
        while self._todo:
            lits = self._todo.pop()
            for each in self._rows(lits):
                self.rules.add(self._known[lits], each)
        return row

    def value(self, lits: Lits) -> int:
        """Returns the rule of a value."""
        if lits not in self._known:
            self._known[lits] = self.rules.new()
            self._todo.append(lits)
        return self._known[lits]

    def _rows(self, lits: Lits) -> Iterator[Symbols]:
        yield from self.texts(lits)
        yield self.compiler.value(lits, _SCALARS)
        if self.resolver.shapes(lits, "object"):
            before, after = self.delimiters
            yield (*before, *self.members(lits, after))
        for shape in self.resolver.shapes(lits, "array"):
            if isinstance(shape, ArrayShape):
                yield self.items(self._item(shape, lits), shape.low, self._high(shape, lits))

    def _item(self, shape: ArrayShape, lits: Lits) -> int:
        """Returns the rule of the items of an array; notes the constraints that one rule cannot hold."""
        plain = ArrayShape(
            rest=shape.rest,
            low=shape.low,
            high=shape.high,
            evaluated=shape.evaluated,
            evaluated_if=shape.evaluated_if,
        )
        if shape != plain:
            self.note(lits, "prefixItems", "items", "contains", "uniqueItems", "enum", "const")
        return self.value(lit(0) if shape.prefix else shape.rest)

    def _high(self, shape: ArrayShape, lits: Lits) -> int | None:
        """Returns the greatest number of items, None for no bound; notes one that is too large to count."""
        if max(shape.high or 0, shape.low) <= MAX_ITEMS:
            return shape.high
        self.note(lits, "maxItems", "minItems")
        return None

    @abstractmethod
    def texts(self, lits: Lits) -> Iterator[Symbols]:
        """Yields the row of the strings of a constraint."""

    @abstractmethod
    def items(self, item: int, low: int, high: int | None) -> Symbols:
        """Returns the row of a list of `low` to `high` items (None: any number)."""


class QuotedWriter(NestingWriter):
    """Writer of `QuotedArguments`."""

    delimiters = (('"{"',), ('"}"',))
    separator = ('","',)

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: SpecialTokens, style: QuotedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._quote = style.quote

    def named(self, name: str, lits: Lits) -> Symbols:
        """Returns NAME`:`VALUE."""
        return (literal(f"{name}:"), self.value(lits))

    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the same under a name of a language."""
        return self.unquoted.name(lang, ('":"', self.value(lits)))

    def texts(self, lits: Lits) -> Iterator[Symbols]:
        """Yields strings between quotes."""
        quote = self.marks.row(self._quote)
        yield from ((*quote, *row) for row in self.string(lits, self._quote, quote, untyped=False))

    def items(self, item: int, low: int, high: int | None) -> Symbols:
        """Returns `[`VALUE`,`VALUE`]`."""
        if high == 0:
            return ('"[]"',)
        more = Times(self.rules.of(('","', item)), max(low - 1, 0), lowered(high))
        some: Symbols = ('"["', item, more, '"]"')
        return some if low else (self.rules.of(('"[]"',), some),)


class NestedWriter(NestingWriter):
    """Writer of `NestedArguments`."""

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: SpecialTokens, style: NestedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._lead, self._item_name = style.lead, style.item

    def named(self, name: str, lits: Lits) -> Symbols:
        """Returns `lead`<NAME>VALUE`lead`</NAME>."""
        return (*self._tag(f"<{name}>"), self.value(lits), *self._tag(f"</{name}>"))

    def other(self, lang: Lang, lits: Lits) -> Symbols:
        """Returns the same under a name of a language.

        A grammar cannot demand that the closing tag repeats the name, so this is noted.
        """
        self.notes["#"] = None
        end = (*self._tag("</"), *self.unquoted.name(ALL, ('">"',)))
        return (*self._tag("<"), *self.unquoted.name(lang, ('">"', self.value(lits), *end)))

    def texts(self, lits: Lits) -> Iterator[Symbols]:
        """Yields strings without quotes."""
        yield from self.string(lits, self._lead or "<", (), blank=self._may_be_blank(lits))

    def _may_be_blank(self, lits: Lits) -> bool:
        """Returns True if an empty element conforms.

        It is parsed as null, or as an empty string where null is not allowed.
        """
        null = self.resolver.shapes(lits, "null")
        if null or "null" in self.parsed_kinds(lits):
            return null == (TOP["null"],)
        return self.resolver.algebra.matches(self.resolver.string_language(lits), "")

    def items(self, item: int, low: int, high: int | None) -> Symbols:
        """Returns an element for each item."""
        one = (*self._tag(f"<{self._item_name}>"), item, *self._tag(f"</{self._item_name}>"))
        return (Times(self.rules.of(one), low, high),)

    def _tag(self, tag: str) -> Symbols:
        """Returns a tag with its lead."""
        return (*self.marks.row(self._lead), literal(tag))
