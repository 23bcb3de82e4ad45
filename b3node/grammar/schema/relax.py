"""The loosened grammar: the keywords that cannot be enforced are left out, and named.

What is left out must make the schema wider, never narrower. A keyword that stands where its removal would
narrow (inside `not`, `if`, a branch of `oneOf`) takes the outermost such keyword with it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Final, NamedTuple

from b3node.grammar.inexact import Inexact, Unsatisfiable, child
from b3node.grammar.schema.document import LISTS, MAPS, ONES

MAX_ROUNDS: Final = 8
"""Places that are left out one by one before everything of their kind is."""
MAX_KINDS: Final = 8
"""Kinds of keyword that are then left out; after them nothing but "an object" is enforced."""
_CONTRARY: Final = frozenset(
    {"not", "if", "oneOf", "contains", "dependencies", "dependentSchemas", "propertyNames"}
)
_DEAR: Final = (
    "unevaluatedProperties", "unevaluatedItems", "pattern", "format", "uniqueItems", "patternProperties", "not", "if", "oneOf", "contains", "multipleOf",
    "minProperties", "maxProperties", "propertyNames",
    "dependentSchemas", "dependentRequired", "dependencies", "minLength", "maxLength", "minItems", "maxItems",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", "$ref", "additionalProperties",
    "items", "properties",
)  # fmt: skip
"""What is given up first, where a schema says only that it is too much."""


_MEMBERS: Final = ("additionalProperties", "unevaluatedProperties")
_ITEMS: Final = ("additionalItems", "unevaluatedItems")
_MEANS_MORE: Final = {
    "properties": _MEMBERS,
    "patternProperties": _MEMBERS,
    "prefixItems": ("items", *_ITEMS),
    "items": _ITEMS,
    "contains": _ITEMS,
    "if": ("then", "else"),
}
"""Keywords that speak of what another one leaves: without the other they would forbid more."""


class Loose(NamedTuple):
    """A grammar and the places that it does not enforce."""

    gbnf: str
    loosened: tuple[str, ...]


def loosened(schema: object, compile_exactly: Callable[[object], str]) -> Loose:
    """The grammar of the schema without what cannot be enforced.

    Args:
        schema: parsed JSON; it is not changed.
        compile_exactly: gives the grammar of a schema or raises `Inexact`.

    Raises:
        Unsatisfiable: no value conforms.
    """
    current, out = deepcopy(schema), list[str]()
    for _ in range(MAX_ROUNDS + MAX_KINDS):
        try:
            return Loose(compile_exactly(current), tuple(_as_written(out)))
        except Unsatisfiable:
            raise
        except Inexact as error:
            place = _give_up(current, error, one_by_one=len(out) < MAX_ROUNDS)
            if place is None:
                break
            out += place
    return Loose(compile_exactly({"type": "object"} if isinstance(schema, dict) else True), ("#",))


def _as_written(places: list[str]) -> list[str]:
    """The places in the schema as it was given: a `oneOf` that became an `anyOf` is named as it was."""
    softened = [place.removesuffix("oneOf") for place in places if place.endswith("/oneOf")]
    out = []
    for place in places:
        base = next((each for each in softened if place.startswith(f"{each}anyOf/")), None)
        out.append(place if base is None else f"{base}oneOf/{place[len(base) + 6 :]}")
    return out


def _give_up(schema: object, error: Inexact, *, one_by_one: bool) -> list[str] | None:
    """Leaves one thing out of the schema; the places of it, or None when there is nothing to leave out."""
    path = [part.replace("~1", "/").replace("~0", "~") for part in error.pointer.split("/")[1:] if part]
    if path and one_by_one:
        place = _cut(schema, path)
        if place is not None:
            return [place]
    for keyword in _DEAR:
        places = _everywhere(schema, keyword, "")
        if places:
            return places
    return None


def _cut(schema: object, path: list[str]) -> str | None:
    """Removes the keyword that a pointer leads to, or the dearest one of the subschema there."""
    holder, pointer, last = schema, "", None
    names_next = False
    for part in path:
        below = _down(holder, part)
        if isinstance(holder, dict) and part in holder and not names_next:
            last = (holder, part, pointer)
            if part in _CONTRARY:
                return _drop(*last)
            names_next = isinstance(below, list) or (part in MAPS and isinstance(below, dict))
        else:
            names_next = False
            last = None if isinstance(below, dict) else last
        holder, pointer = below, child(pointer, part)
    if isinstance(holder, dict) and (last is None or last[1] in ONES):
        for keyword in _DEAR:
            if keyword in holder:
                return _drop(holder, keyword, pointer)
    return _drop(*last) if last is not None else None


def _down(value: object, part: str) -> object:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return None


def _drop(holder: dict[str, object], keyword: str, pointer: str) -> str:
    """Leaves a keyword out, and with it those that would then mean more than before."""
    value = holder.pop(keyword)
    if keyword == "oneOf" and "anyOf" not in holder:
        holder["anyOf"] = value
    for dependent in _MEANS_MORE.get(keyword, ()):
        holder.pop(dependent, None)
    return "#" + child(pointer, keyword)


def _everywhere(value: object, keyword: str, pointer: str) -> list[str]:
    """Removes a keyword wherever a schema has it; the places."""
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in _everywhere(item, keyword, child(pointer, i))]
    if not isinstance(value, dict):
        return []
    out = [_drop(value, keyword, pointer)] if keyword in value else []
    for key in (*MAPS, *ONES, *LISTS):
        below = value.get(key)
        if key in MAPS and isinstance(below, dict):
            for name, item in below.items():
                out += _everywhere(item, keyword, child(pointer, key, name))
        elif isinstance(below, dict | list):
            out += _everywhere(below, keyword, child(pointer, key))
    return out
