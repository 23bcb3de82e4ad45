"""JSON values: their type, a text that equal ones share, a schema that one alone satisfies."""

from __future__ import annotations

import msgspec

from b3node.grammar.constraints.shapes import Type


def type_of(value: object) -> Type:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def canonical(value: object) -> str:
    """A text that equal JSON values share: members sorted, 1.0 as 1."""
    return msgspec.json.encode(_plain(value), order="sorted").decode()


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def exactly(value: object) -> dict[str, object]:
    """A schema of structure only that an array or object alone satisfies."""
    if isinstance(value, list):
        row: list[object] = [{"const": item} for item in value]
        size = len(row)
        return {"type": "array", "prefixItems": row, "items": False, "minItems": size, "maxItems": size}
    table = value if isinstance(value, dict) else {}
    return {
        "type": "object",
        "properties": {name: {"const": item} for name, item in table.items()},
        "required": list(table),
        "additionalProperties": False,
    }
