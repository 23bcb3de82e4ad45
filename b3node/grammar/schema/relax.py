"""Loosened grammars: keywords that cannot be enforced are removed from the schema, and listed.

Invariant: each removal makes the schema wider, never narrower. Where the removal of a keyword would narrow
the schema (inside `not`, `if`, a branch of `oneOf`), the outermost such keyword is removed instead.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Final, NamedTuple

from b3node.grammar.inexact import Inexact, Unsatisfiable, child
from b3node.grammar.schema.document import LISTS, MAPS, ONES

MAX_ROUNDS: Final = 8
"""Keywords that are removed one by one, before all of a kind are."""
MAX_KINDS: Final = 8
"""Kinds of keyword that are then removed; after them only the type `object` is enforced."""
_CONTRAVARIANT: Final = frozenset(
    {"not", "if", "oneOf", "contains", "dependencies", "dependentSchemas", "propertyNames"}
)
"""Keywords in which a removal would narrow the schema, so that they are removed whole."""
_RELAX_ORDER: Final = (
    "unevaluatedProperties", "unevaluatedItems", "pattern", "format", "uniqueItems", "patternProperties",
    "not", "if", "oneOf", "contains", "multipleOf", "minProperties", "maxProperties", "propertyNames",
    "dependentSchemas", "dependentRequired", "dependencies", "minLength", "maxLength", "minItems", "maxItems",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", "$ref",
    "additionalProperties", "items", "properties",
)  # fmt: skip
"""Keywords in the order of their removal, where the error names no place, such as a bound that is passed."""


_MEMBERS: Final = ("additionalProperties", "unevaluatedProperties")
_ITEMS: Final = ("additionalItems", "unevaluatedItems")
_DEPENDENTS: Final = {
    "properties": _MEMBERS,
    "patternProperties": _MEMBERS,
    "prefixItems": ("items", *_ITEMS),
    "items": _ITEMS,
    "contains": _ITEMS,
    "if": ("then", "else"),
}
"""Keywords that constrain only what another one leaves: without the other they would forbid more."""


class Loose(NamedTuple):
    """A grammar and the places in the schema that it does not enforce."""

    gbnf: str
    loosened: tuple[str, ...]
    """URI fragments with JSON pointers, such as `#/properties/a/pattern`."""


def loosened(schema: object, compile_exactly: Callable[[object], str]) -> Loose:
    """Compiles a schema without the keywords that cannot be enforced.

    Args:
        schema: parsed JSON; it is not changed.
        compile_exactly: returns the grammar of a schema or raises `Inexact`.

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
            place = _relax_once(current, error, one_by_one=len(out) < MAX_ROUNDS)
            if place is None:
                break
            out += place
    return Loose(compile_exactly({"type": "object"} if isinstance(schema, dict) else True), ("#",))


def _as_written(places: list[str]) -> list[str]:
    """Returns the places in the original schema: a `oneOf` that became an `anyOf` has its old name."""
    softened = [place.removesuffix("oneOf") for place in places if place.endswith("/oneOf")]
    out = []
    for place in places:
        base = next((each for each in softened if place.startswith(f"{each}anyOf/")), None)
        out.append(place if base is None else f"{base}oneOf/{place[len(base) + 6 :]}")
    return out


def _relax_once(schema: object, error: Inexact, *, one_by_one: bool) -> list[str] | None:
    """Removes one keyword, or all of one kind; returns their places, None if there is none to remove."""
    path = [part.replace("~1", "/").replace("~0", "~") for part in error.pointer.split("/")[1:] if part]
    if path and one_by_one:
        place = _drop_at(schema, path)
        if place is not None:
            return [place]
    for keyword in _RELAX_ORDER:
        places = _drop_all(schema, keyword, "")
        if places:
            return places
    return None


def _drop_at(schema: object, path: list[str]) -> str | None:
    """Removes the keyword at a pointer, or the first of `_RELAX_ORDER` of the subschema there."""
    holder, pointer, last = schema, "", None
    names_next = False
    for part in path:
        below = _descend(holder, part)
        if isinstance(holder, dict) and part in holder and not names_next:
            last = (holder, part, pointer)
            if part in _CONTRAVARIANT:
                return _drop(*last)
            names_next = isinstance(below, list) or (part in MAPS and isinstance(below, dict))
        else:
            names_next = False
            last = None if isinstance(below, dict) else last
        holder, pointer = below, child(pointer, part)
    if isinstance(holder, dict) and (last is None or last[1] in ONES):
        for keyword in _RELAX_ORDER:
            if keyword in holder:
                return _drop(holder, keyword, pointer)
    return _drop(*last) if last is not None else None


def _descend(value: object, part: str) -> object:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return None


def _drop(holder: dict[str, object], keyword: str, pointer: str) -> str:
    """Removes a keyword, and those that would forbid more without it; returns its place."""
    value = holder.pop(keyword)
    if keyword == "oneOf" and "anyOf" not in holder:
        holder["anyOf"] = value
    for dependent in _DEPENDENTS.get(keyword, ()):
        holder.pop(dependent, None)
    return "#" + child(pointer, keyword)


def _drop_all(value: object, keyword: str, pointer: str) -> list[str]:
    """Removes a keyword everywhere in a schema; returns the places."""
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in _drop_all(item, keyword, child(pointer, i))]
    if not isinstance(value, dict):
        return []
    out = [_drop(value, keyword, pointer)] if keyword in value else []
    for key in (*MAPS, *ONES, *LISTS):
        below = value.get(key)
        if key in MAPS and isinstance(below, dict):
            for name, item in below.items():
                out += _drop_all(item, keyword, child(pointer, key, name))
        elif isinstance(below, dict | list):
            out += _drop_all(below, keyword, child(pointer, key))
    return out
