"""JSON types that a schema plainly allows for a value: they separate text from numbers where both look alike.

Resolved are `$ref` within the schema, `anyOf`, `oneOf`, `allOf`, lists of types, `enum` and `const`;
everything else leaves a value free, and so does a schema that takes more than `MAX_SUBSCHEMAS` steps.
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
MAX_SUBSCHEMAS: Final = 200
"""Subschemas that are resolved for one value."""


def kinds(schema: object, root: object) -> Kinds:
    """Returns the types of the instances of `schema`; its references point into `root`."""
    return _Resolution(root).kinds(schema)


def member(schema: object, root: object, name: str) -> object:
    """Returns the schema of an object's member; True if there is none."""
    resolution = _Resolution(root)
    properties = [_mapping(part, "properties") for part in resolution.parts(schema)]
    found = [members[name] for members in properties if name in members]
    if not found:
        resolution = _Resolution(root)
        found = [
            part["additionalProperties"]
            for part in resolution.parts(schema)
            if "additionalProperties" in part
        ]
    return _either(found)


def element(schema: object, root: object) -> object:
    """Returns the schema of an array's elements; True if there is none for all of them."""
    parts = list(_Resolution(root).parts(schema))
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


class _Resolution:
    """Resolves a schema in at most `MAX_SUBSCHEMAS` steps."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = MAX_SUBSCHEMAS

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
        """Yields the subschemas that apply to an instance, all alternatives together."""
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
    """Returns the types that `type`, `enum` and `const` allow."""
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
