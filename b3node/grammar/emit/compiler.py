"""Compiler from constraints to rules: every reachable constraint is one rule, made once.

Recursion in the schema is recursion of rules. The order of alternatives is the order of `TYPES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from b3node.dialects.kinds import JsonType
from b3node.grammar.constraints.array_shape import ArrayShape
from b3node.grammar.constraints.literals import TRUE, Lits, lit
from b3node.grammar.constraints.number_shape import NumberShape
from b3node.grammar.constraints.object_shape import ObjectShape
from b3node.grammar.constraints.resolve import SchemaResolver
from b3node.grammar.constraints.shapes import TOP, TYPES, ConstantShape, Dnf, StringShape
from b3node.grammar.constraints.unevaluated import without_evaluated
from b3node.grammar.emit.arrays import ArrayWriter
from b3node.grammar.emit.numbers import NumberLanguages, decimal_text
from b3node.grammar.emit.objects import ObjectWriter
from b3node.grammar.gbnf import library
from b3node.grammar.gbnf.rules import Rules, Symbols, printed
from b3node.grammar.gbnf.strings import Strings, escaped, literal
from b3node.grammar.inexact import Inexact, Unsatisfiable
from b3node.grammar.languages import automaton
from b3node.grammar.languages.algebra import Lang, TooLarge

_UNCONSTRAINED: Final[dict[JsonType, str]] = {
    "object": "object",
    "array": "array",
    "string": "string",
    "number": "number",
}
"""By type, the rule of json.gbnf for all its values."""

JSON_WORDS: Final = {"true": "true", "false": "false", "null": "null"}
"""JSON's names of the literal values."""
PYTHON_WORDS: Final = {"true": "True", "false": "False", "null": "None"}
"""Python's names of the literal values."""


class Compiler:
    """Compiler of one schema.

    Args:
        resolver: the constraints of the schema.
        max_rules: rules that may be made.
        max_states: states that one automaton may have.
        words: how true, false and null are written.
    """

    def __init__(
        self,
        resolver: SchemaResolver,
        *,
        max_rules: int,
        max_states: int,
        words: Mapping[str, str] = JSON_WORDS,
    ) -> None:
        self._resolver = resolver
        self._words = words
        self.rules: Final = Rules(max_rules)
        self._strings = Strings(resolver.algebra, self.rules, max_states)
        self._objects = ObjectWriter(resolver, self.rules, self._strings, self.value)
        self._arrays = ArrayWriter(resolver, self.rules, self.value, self.few_values, self._literal)
        self._numbers: NumberLanguages | None = None
        self._known: dict[tuple[Lits, tuple[JsonType, ...]], Symbols] = {}
        self._todo: list[tuple[Lits, tuple[JsonType, ...], int]] = []
        self._number_rows: dict[Dnf, Symbols] = {}

    def grammar(self) -> str:
        """Returns the GBNF of the schema.

        Raises:
            Unsatisfiable: no value conforms.
            Inexact: the schema cannot be enforced exactly within the bounds.
        """
        return self.printed(self.value(lit(self._resolver.document.root)), library.json_rules())

    def printed(self, root: Symbols, shared: Mapping[str, str]) -> str:
        """Returns the GBNF that begins with a row of rules made here; the row may name `shared` rules.

        Raises:
            Unsatisfiable: the row has no text.
            Inexact: as `grammar`.
        """
        rule = self.rules.of(root)
        while self._todo:
            self._fill(*self._todo.pop())
        table = self.rules.simplified(rule)
        if table is None:
            raise Unsatisfiable("", "no value can satisfy this schema")
        return printed(table, shared)

    def value(self, lits: Lits, types: tuple[JsonType, ...] = TYPES) -> Symbols:
        """Returns the row of a constraint, for values of some types."""
        if lits == TRUE and types == TYPES:
            return ("value",)
        if (lits, types) not in self._known:
            rule = self.rules.new()
            self._known[lits, types] = (rule,)
            self._todo.append((lits, types, rule))
        return self._known[lits, types]

    def _fill(self, lits: Lits, types: tuple[JsonType, ...], rule: int) -> None:
        try:
            for type_ in types:
                dnf = self._resolver.shapes(lits, type_)
                for row in self._rows(type_, dnf):
                    self.rules.add(rule, row)
        except Inexact as error:
            if error.pointer:
                raise
            raise Inexact(self._pointer(lits), error.why) from None
        except TooLarge:
            raise Inexact(self._pointer(lits), "the patterns here need too many states") from None

    def _pointer(self, lits: Lits) -> str:
        """Returns the longest pointer among the literals of a constraint."""
        places = [self._resolver.document[number >> 1].pointer for number in lits]
        return max(places, key=len, default="") or "/"

    def _rows(self, type_: JsonType, dnf: Dnf) -> list[Symbols]:
        """Returns the rows of the shapes of one type."""
        if not dnf:
            return []
        if type_ in _UNCONSTRAINED and TOP[type_] in (without_evaluated(shape) for shape in dnf):
            return [(_UNCONSTRAINED[type_],)]
        if type_ == "number":
            return [self._number(dnf)]
        if type_ == "string":
            return [self._strings.value(shape.lang) for shape in dnf if isinstance(shape, StringShape)]
        rows: list[Symbols] = []
        bodies: list[Symbols] = []
        for shape in dnf:
            if isinstance(shape, ConstantShape):
                rows += [(literal(self._words[text]),) for text in sorted(shape.texts)]
            elif isinstance(shape, ArrayShape | ObjectShape) and shape.values is not None:
                rows += [self._literal(self._resolver.enum_values[text]) for text in sorted(shape.values)]
            elif isinstance(shape, ArrayShape):
                bodies.append(self._arrays.body(shape))
            elif isinstance(shape, ObjectShape):
                bodies.append(self._objects.body(shape))
        mark = '"{"' if type_ == "object" else '"["'
        return [*rows, (mark, self.rules.of(*bodies))] if bodies else rows

    def _number(self, dnf: Dnf) -> Symbols:
        shapes = [shape for shape in dnf if isinstance(shape, NumberShape)]
        if shapes == [NumberShape(integer=True)]:
            return ("integer",)
        if dnf not in self._number_rows:
            self._numbers = self._numbers or NumberLanguages(self._resolver.algebra)
            numbers = self._numbers
            lang = self._resolver.algebra.either(numbers.language(shape) for shape in shapes)
            self._number_rows[dnf] = self._strings.number(lang)
        return self._number_rows[dnf]

    def _literal(self, value: object) -> Symbols:
        """Returns the row of exactly one JSON value, in the style of all grammars."""
        if isinstance(value, str):
            return (literal('"' + escaped(value) + '"'),)
        if isinstance(value, bool) or value is None:
            return (literal(self._words[{True: "true", False: "false", None: "null"}[value]]),)
        if isinstance(value, int | float):
            return (
                literal(decimal_text(Decimal(value) if isinstance(value, int) else Decimal(repr(value)))),
            )
        row: list[str | int] = []
        if isinstance(value, dict):
            for name, item in value.items():
                row += ['","', "ws"] if row else []
                row += [literal('"' + escaped(name) + '":'), "ws", *_plain(self._literal(item))]
            return ('"{"', *row, '"}"')
        for item in value if isinstance(value, list) else []:
            row += ['","', "ws"] if row else []
            row += _plain(self._literal(item))
        return ('"["', *row, '"]"')

    # ------------------------------------------------------------------------------------- finite
    def few_values(self, lits: Lits, limit: int) -> list[object] | None:
        """Returns the values of a constraint, or None if they are more than `limit` or not enumerable."""
        out: list[object] = []
        for type_ in TYPES:
            for shape in self._resolver.shapes(lits, type_):
                values = self._values(shape, limit)
                if values is None or len(out) + len(values) > limit:
                    return None
                out += values
        return out

    def _values(self, shape: object, limit: int) -> list[object] | None:
        match shape:
            case ConstantShape(texts):
                names = {"null": None, "true": True, "false": False}
                return [names[text] for text in sorted(texts)]
            case StringShape(lang):
                return self._few_strings(lang, limit)
            case ArrayShape() | ObjectShape() if shape.values is not None:
                return [self._resolver.enum_values[text] for text in sorted(shape.values)]
            case NumberShape():
                return _few_numbers(shape, limit)
            case _:
                return None

    def _few_strings(self, lang: Lang, limit: int) -> list[object] | None:
        try:
            found = automaton.accepted_strings(automaton.build(self._resolver.algebra, lang), limit)
        except TooLarge:
            return None
        return None if found is None else list(found)


def _plain(row: Symbols) -> list[str | int]:
    return [symbol for symbol in row if isinstance(symbol, str | int)]


def _few_numbers(shape: NumberShape, limit: int) -> list[object] | None:
    if shape.values is not None:
        return [_number(value) for value in sorted(shape.values) if shape.admits(value)]
    if not shape.integer or shape.low is None or shape.high is None or shape.high - shape.low > 4 * limit:
        return None
    whole = range(int(shape.low) - 1, int(shape.high) + 2)
    return [value for value in whole if shape.admits(Decimal(value))]


def _number(value: Decimal) -> object:
    return int(value) if value == value.to_integral_value() else float(value)
