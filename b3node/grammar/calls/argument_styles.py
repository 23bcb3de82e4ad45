"""The spellings of arguments: what a member and a value look like in each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Final

from b3node.dialects.dialect import NestedArguments, QuotedArguments, TaggedArguments
from b3node.dialects.kinds import JsonType
from b3node.grammar.calls.argument_style import Spelled
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.literals import Lits, lit
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import TOP, TYPES
from b3node.grammar.emit.compiler import Compiler
from b3node.grammar.gbnf.rules import Row, Times
from b3node.grammar.gbnf.special_tokens import Marks
from b3node.grammar.gbnf.strings import literal
from b3node.grammar.languages.algebra import ALL, Lang

_REST: Final[tuple[JsonType, ...]] = tuple(kind for kind in TYPES if kind != "string")
_SCALARS: Final[tuple[JsonType, ...]] = ("number", "boolean", "null")
MAX_ITEMS: Final = 256
"""Items of a list that are counted."""


class Tagged(Spelled):
    """`TaggedArguments`."""

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: Marks, spelling: TaggedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._spelling = spelling
        self._until = spelling.close.strip() or spelling.close

    def named(self, name: str, lits: Lits) -> Row:
        """`open` NAME `named` VALUE `close`."""
        named = self.marks.row(self._spelling.named)
        return (*self.marks.row(self._spelling.open), literal(name), *named, *self._value(lits))

    def other(self, lang: Lang, lits: Lits) -> Row:
        """The same under a name of a language."""
        tail = (*self.marks.row(self._spelling.named), *self._value(lits))
        return (*self.marks.row(self._spelling.open), *self.bare.name(lang, tail))

    def _value(self, lits: Lits) -> Row:
        """A value and what ends it."""
        return (self.rules.of(*self._rows(lits)),)

    def _rows(self, lits: Lits) -> Iterator[Row]:
        close = self.marks.row(self._spelling.close)
        told = bool(self._spelling.kind)
        yield from (
            self._kind("string", row) for row in self.string(lits, self._until, close, alike=not told)
        )
        if self._spelling.kind == "type":
            yield from (self._kind(kind, (*self.compiler.value(lits, (kind,)), *close)) for kind in _REST)
        elif told or self.resolver.string_language(lits) != ALL or self.confusable(lits):
            yield self._kind("", (*self.compiler.value(lits, _REST), *close))

    def _kind(self, kind: str, value: Row) -> Row:
        """A value with its kind before it, where the spelling tells kinds."""
        if not self._spelling.kind:
            return value
        told = kind if self._spelling.kind == "type" else "true" if kind == "string" else "false"
        return (literal(told), *self.marks.row(self._spelling.kind_close), *value)


class Keyword(Spelled):
    """`KeywordArguments`."""

    around = (('"("',), ('")"',))
    separator = ('","', "ws")

    def named(self, name: str, lits: Lits) -> Row:
        """NAME`=`VALUE."""
        return (literal(f"{name}="), *self.compiler.value(lits))

    def other(self, lang: Lang, lits: Lits) -> Row:
        """The same under a name of a language."""
        return self.bare.name(lang, ('"="', *self.compiler.value(lits)))


class Deep(Spelled):
    """Spellings in which nested values are written as well; a value's rule is made once and filled later."""

    def __init__(self, resolver: SchemaResolver, compiler: Compiler, marks: Marks) -> None:
        super().__init__(resolver, compiler, marks)
        self._known: dict[Lits, int] = {}
        self._todo: list[Lits] = []

    def whole(self) -> Row:
        """All arguments."""
        row = super().whole()
        while self._todo:
            lits = self._todo.pop()
            for each in self._rows(lits):
                self.rules.add(self._known[lits], each)
        return row

    def value(self, lits: Lits) -> int:
        """The rule of a value."""
        if lits not in self._known:
            self._known[lits] = self.rules.new()
            self._todo.append(lits)
        return self._known[lits]

    def _rows(self, lits: Lits) -> Iterator[Row]:
        yield from self.texts(lits)
        yield self.compiler.value(lits, _SCALARS)
        if self.resolver.shapes(lits, "object"):
            before, behind = self.around
            yield (*before, *self.members(lits, behind))
        for shape in self.resolver.shapes(lits, "array"):
            if isinstance(shape, ArrayShape):
                yield self.items(self._item(shape, lits), shape.low, self._high(shape, lits))

    def _item(self, shape: ArrayShape, lits: Lits) -> int:
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

    def _high(self, shape: ArrayShape, lits: Lits) -> int:
        if max(shape.high, shape.low) <= MAX_ITEMS:
            return shape.high
        self.note(lits, "maxItems", "minItems")
        return -1

    @abstractmethod
    def texts(self, lits: Lits) -> Iterator[Row]:
        """The strings of an obligation."""

    @abstractmethod
    def items(self, item: int, low: int, high: int) -> Row:
        """A list of `low` to `high` items (-1: any number)."""


class Quoted(Deep):
    """`QuotedArguments`."""

    around = (('"{"',), ('"}"',))
    separator = ('","',)

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: Marks, spelling: QuotedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._quote = spelling.quote

    def named(self, name: str, lits: Lits) -> Row:
        """NAME`:`VALUE."""
        return (literal(f"{name}:"), self.value(lits))

    def other(self, lang: Lang, lits: Lits) -> Row:
        """The same under a name of a language."""
        return self.bare.name(lang, ('":"', self.value(lits)))

    def texts(self, lits: Lits) -> Iterator[Row]:
        """Strings between quotes."""
        quote = self.marks.row(self._quote)
        yield from ((*quote, *row) for row in self.string(lits, self._quote, quote, alike=False))

    def items(self, item: int, low: int, high: int) -> Row:
        """`[`VALUE`,`VALUE`]`."""
        if high == 0:
            return ('"[]"',)
        more = Times(self.rules.of(('","', item)), max(low - 1, 0), high - 1 if high > 0 else -1)
        some: Row = ('"["', item, more, '"]"')
        return some if low else (self.rules.of(('"[]"',), some),)


class Nested(Deep):
    """`NestedArguments`."""

    def __init__(
        self, resolver: SchemaResolver, compiler: Compiler, marks: Marks, spelling: NestedArguments
    ) -> None:
        super().__init__(resolver, compiler, marks)
        self._lead, self._item_name = spelling.lead, spelling.item

    def named(self, name: str, lits: Lits) -> Row:
        """`lead`<NAME>VALUE`lead`</NAME>."""
        return (*self._tag(f"<{name}>"), self.value(lits), *self._tag(f"</{name}>"))

    def other(self, lang: Lang, lits: Lits) -> Row:
        """The same under a name of a language; a grammar does not know that its end says the same name."""
        self.notes["#"] = None
        end = (*self._tag("</"), *self.bare.name(ALL, ('">"',)))
        return (*self._tag("<"), *self.bare.name(lang, ('">"', self.value(lits), *end)))

    def texts(self, lits: Lits) -> Iterator[Row]:
        """Strings as they are."""
        yield from self.string(lits, self._lead or "<", (), blank=self._may_be_blank(lits))

    def _may_be_blank(self, lits: Lits) -> bool:
        """Whether an element with nothing in it conforms: it is read as null, or as an empty string where none may be."""
        null = self.resolver.shapes(lits, "null")
        if null or "null" in self.read(lits):
            return null == (TOP["null"],)
        return self.resolver.algebra.matches(self.resolver.string_language(lits), "")

    def items(self, item: int, low: int, high: int) -> Row:
        """An element for each item."""
        one = (*self._tag(f"<{self._item_name}>"), item, *self._tag(f"</{self._item_name}>"))
        return (Times(self.rules.of(one), low, high),)

    def _tag(self, tag: str) -> Row:
        return (*self.marks.row(self._lead), literal(tag))
