"""The arguments of one function as a grammar: exact where that is possible, loosened and said so where not.

A call's arguments are a JSON object, whatever the schema allows beside it. A schema that nothing can satisfy, or that is
none, takes no request down: then any object may be written, and whoever judges the finished arguments says no.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final

import msgspec

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import Calls
from b3node.grammar import library
from b3node.grammar.budget import Budget
from b3node.grammar.front import Limits, exact, refusal, repeats
from b3node.grammar.loosening import Loose, loosened
from b3node.grammar.marks import Marks
from b3node.grammar.refusal import Inexact

NO_ARGUMENTS: Final[dict[str, object]] = {"type": "object", "additionalProperties": False}
"""What a function takes that declares no parameters."""
ANY: Final[dict[str, object]] = {"type": "object"}
SHARE: Final = 4
"""One function may take this part of the steps of a compilation, and all of a request's functions this many times it."""
NOT_ENFORCED: Final = "this is not enforced while a call is written"
TOO_LARGE: Final = "together with the other functions it is too large, so any arguments may be written"


class Spelling(msgspec.Struct, frozen=True):
    """How the calls of a dialect are written, and the special tokens that this takes."""

    calls: Calls
    marks: Marks

    @property
    def library(self) -> dict[str, str]:
        """The rules that all grammars of arguments share, by name."""
        return library.json_rules()


class Loosened(msgspec.Struct, frozen=True):
    """A place of a function's schema that the grammar does not enforce.

    `param` is the request's path of the schema (`tools[1].parameters`), `place` a JSON pointer in it
    (`#/properties/to/pattern`, its last part the keyword; `#` for all of it), `why` words for people.
    """

    param: str
    place: str
    why: str = NOT_ENFORCED

    def __str__(self) -> str:
        return f"{self.param}{self.place}: {self.why}"


class Function(msgspec.Struct, frozen=True):
    """A function that may be called: its place in the request, its name, the grammar of its arguments."""

    index: int
    name: str
    arguments: Loose
    why: str = NOT_ENFORCED

    @property
    def loosened(self) -> list[Loosened]:
        """What its grammar does not enforce."""
        return [
            Loosened(f"tools[{self.index}].parameters", place, self.why) for place in self.arguments.loosened
        ]

    def given_up(self, plain: Loose) -> Function:
        """The function with any arguments, because the whole would be too large."""
        return Function(self.index, self.name, plain, TOO_LARGE)


def weight(gbnf: str, limits: Limits) -> float:
    """How much of the bounds of a grammar a text takes."""
    shares = (
        len(gbnf.encode()) / limits.grammar_bytes,
        gbnf.count("\n") / limits.printed_rules,
        repeats(gbnf) / limits.repeats,
    )
    return max(shares)


class Compilation:
    """The compilation of the functions of one request, under one budget of steps.

    Args:
        spelling: how arguments are written.
        known: results of earlier requests.
        limits: bounds of each schema, and of the steps.
    """

    def __init__(self, spelling: Spelling, known: MutableMapping[bytes, Loose], limits: Limits) -> None:
        self._spelling = spelling
        self._known = known
        self._limits = limits
        self._left = limits.steps

    def function(self, index: int, tool: FunctionTool) -> Function:
        """A function of the request, ready to be called.

        Raises:
            Refusal: `invalid_request` at `tools[i].parameters`: it is `strict`, and cannot be enforced exactly.
        """
        # Members in the client's order: it is the order in which a call's are written.
        key = msgspec.json.encode((tool.parameters, tool.strict, self._spelling.calls))
        found = self._known.get(key)
        if found is None:
            left = self._left
            found = self._compiled(index, tool)
            if left >= self._limits.steps // SHARE:
                self._known[key] = found
        return Function(index, tool.name, found)

    def _compiled(self, index: int, tool: FunctionTool) -> Loose:
        schema = as_object(tool.parameters)
        try:
            return Loose(self._written(schema), ()) if tool.strict else loosened(schema, self._written)
        except Inexact as error:
            if tool.strict:
                raise refusal(error, f"tools[{index}].parameters") from None
            return Loose(anything(self._limits), ("#",))

    def _written(self, schema: object) -> str:
        """The grammar of a schema, on account of all steps. Raises `Inexact`."""
        budget = Budget(min(self._left, self._limits.steps // SHARE))
        before = budget.left
        try:
            return written(schema, self._limits, budget)
        finally:
            self._left -= before - max(budget.left, 0)


def written(schema: object, limits: Limits, budget: Budget) -> str:
    """The grammar of the arguments that conform to a schema. Raises `Inexact`."""
    return exact(schema, limits, budget)


def anything(limits: Limits) -> str:
    """The grammar of any arguments."""
    return written(ANY, limits, Budget(limits.steps))


def as_object(schema: dict[str, object] | None) -> dict[str, object]:
    """The schema of a function's arguments, which are an object in any case."""
    if schema is None:
        return NO_ARGUMENTS
    kinds = schema.get("type", "object")
    if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
        return {**schema, "type": "object"}
    return schema
