"""Of what kinds a value may be, as far as its schema says so plainly: what tells text from a number where both look alike.

Looked through are `$ref` within the schema, `anyOf`, `oneOf`, `allOf`, lists of types, `enum` and `const`; everything
else leaves a value free, and so does a schema that takes more than `MOST` steps to look through.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal
from urllib.parse import unquote

JsonType = Literal["null", "boolean", "number", "string", "array", "object"]
"""The six types of JSON values; numbers are one type, with a fraction or without."""
Kinds = frozenset[str]
"""JSON Schema's names of types; "number" comes with "integer"."""

ALL: Final[Kinds] = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
STRING: Final[Kinds] = frozenset({"string"})
MOST: Final = 200
"""Subschemas that are looked at for one value."""


def kinds(schema: object, root: object) -> Kinds:
    """The kinds of `schema`'s instances; `root` is the schema that its references point into."""
    return _Look(root).kinds(schema)


def member(schema: object, root: object, name: str) -> object:
    """The schema of an object's member; True if nothing is said of it."""
    look = _Look(root)
    properties = [_mapping(part, "properties") for part in look.parts(schema)]
    found = [members[name] for members in properties if name in members]
    if not found:
        look = _Look(root)
        found = [
            part["additionalProperties"] for part in look.parts(schema) if "additionalProperties" in part
        ]
    return _either(found)


def element(schema: object, root: object) -> object:
    """The schema of an array's elements; True if nothing is said of all of them."""
    parts = list(_Look(root).parts(schema))
    if any("prefixItems" in part for part in parts):
        return True
    return _either([part["items"] for part in parts if "items" in part])


def json_type(value: object) -> JsonType:
    """Returns the JSON type of a value as a JSON parser gives it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def kind_of(value: object) -> str:
    """Returns the JSON type of a value, where an integer that is written as one is an "integer"."""
    kind = json_type(value)
    return "integer" if kind == "number" and isinstance(value, int) else kind


def _either(schemas: list[object]) -> object:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas} if schemas else True


def _mapping(part: dict[str, object], key: str) -> dict[str, object]:
    found = part.get(key)
    return found if isinstance(found, dict) else {}


class _Look:
    """One look through a schema, of at most `MOST` steps."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = MOST

    def kinds(self, schema: object) -> Kinds:
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0:
            return ALL
        found = ALL
        for key in ("anyOf", "oneOf"):
            if key in schema:
                found &= frozenset().union(*map(self.kinds, _list(schema[key])))
        for part in _list(schema.get("allOf")):
            found &= self.kinds(part)
        if "$ref" in schema:
            found &= self.kinds(self._refer(schema["$ref"]))
        found &= _named(schema)
        return found or ALL

    def parts(self, schema: object) -> Iterator[dict[str, object]]:
        """The schemas that say something of an instance, all alternatives together."""
        self._left -= 1
        if not isinstance(schema, dict) or self._left < 0:
            return
        yield schema
        if "$ref" in schema:
            yield from self.parts(self._refer(schema["$ref"]))
        for key in ("anyOf", "oneOf", "allOf"):
            for part in _list(schema.get(key)):
                yield from self.parts(part)

    def _refer(self, ref: object) -> object:
        if not isinstance(ref, str) or (ref != "#" and not ref.startswith("#/")):
            return True
        found = self._root
        for step in ref.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isascii() and key.isdigit() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, dict) and key in found:
                found = found[key]
            else:
                return True
        return found


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _named(schema: dict[str, object]) -> Kinds:
    """What `type`, `enum` and `const` say."""
    found = ALL
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        found &= frozenset(name for name in names if isinstance(name, str))
    if "number" in found:
        found |= {"integer"}
    if "enum" in schema:
        found &= frozenset(map(kind_of, _list(schema["enum"])))
    if "const" in schema:
        found &= {kind_of(schema["const"])}
    return found
