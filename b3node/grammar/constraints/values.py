"""JSON values: a canonical text that equal values share, and a schema that one value alone satisfies."""

from __future__ import annotations

import msgspec


def canonical(value: object) -> str:
    """Returns a text that equal JSON values share: members sorted, 1.0 as 1."""
    return msgspec.json.encode(_plain(value), order="sorted").decode()


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def schema_of(value: object) -> dict[str, object]:
    """Returns a schema that an array or object alone satisfies.

    It constrains the outer structure; items and members are listed as `const`.
    """
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
