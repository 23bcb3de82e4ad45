"""Builders of JSON Schema 2020-12 for the published schema of requests."""

from __future__ import annotations

PublishedSchema = dict[str, object]
"""One schema as JSON values."""

IGNORED = "Accepted and ignored."
"""Description of fields that are held to their type and have no effect."""


def nullable(schema: PublishedSchema) -> PublishedSchema:
    """Returns a schema that also takes null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if schema["type"] == "null":
        return schema
    null: PublishedSchema = {"type": [schema["type"], "null"]}
    values = schema.get("enum")
    if isinstance(values, list):
        null["enum"] = [*values, None]
    return {**schema, **null}


def reference(name: str, kind: str = "schemas") -> PublishedSchema:
    """Returns a reference to the component `name` of the OpenAPI document; a schema by default."""
    return {"$ref": f"#/components/{kind}/{name}"}


def string(**more: object) -> PublishedSchema:
    """Returns the schema of a string, with the keywords `more`."""
    return {"type": "string", **more}


def boolean(**more: object) -> PublishedSchema:
    """Returns the schema of a boolean, with the keywords `more`."""
    return {"type": "boolean", **more}


def choice(*values: str, **more: object) -> PublishedSchema:
    """Returns the schema of a string that is one of `values`."""
    return {"type": "string", "enum": list(values), **more}


def array(items: PublishedSchema, **more: object) -> PublishedSchema:
    """Returns the schema of an array whose elements match `items`."""
    return {"type": "array", "items": items, **more}


def any_of(*schemas: PublishedSchema) -> PublishedSchema:
    """Returns a schema that takes a value if one of `schemas` does."""
    return {"anyOf": list(schemas)}


def record(properties: dict[str, PublishedSchema], *required: str, **more: object) -> PublishedSchema:
    """Returns the schema of an object.

    Members outside `required` may be null; members without a name here are ignored.
    """
    members = {name: schema if name in required else nullable(schema) for name, schema in properties.items()}
    return {"type": "object", "properties": members, "required": list(required), **more}
