"""OpenAI's OpenAPI document as a validator, if the corpus with it is next to the repository."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

DOCUMENT = Path(__file__).parents[3] / "shared" / "corpora" / "openai-responses.openapi.json"

needs_document = pytest.mark.skipif(not DOCUMENT.exists(), reason="OpenAI's OpenAPI document is not here")


@functools.cache
def _components() -> dict[str, Any]:
    components: dict[str, Any] = _plain(json.loads(DOCUMENT.read_text()))["components"]
    # OpenAI's servers send null for these two, although their document does not say so.
    for properties, name in (
        (components["schemas"]["Response"]["allOf"][2]["properties"], "usage"),
        (components["schemas"]["ModelResponseProperties"]["properties"], "user"),
    ):
        properties[name] = {"anyOf": [properties[name], {"type": "null"}]}
    return components


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _plain(v) for k, v in node.items() if k not in {"discriminator", "example", "x-oaiMeta"}}
    return [_plain(each) for each in node] if isinstance(node, list) else node


@functools.cache
def _schema_names() -> dict[str, str]:
    names: dict[str, str] = {}
    for name, schema in _components()["schemas"].items():
        properties = schema.get("properties", {})
        if "sequence_number" in properties and not name.startswith("Beta"):
            for kind in properties.get("type", {}).get("enum", []):
                names.setdefault(kind, name)
    return names


@functools.cache
def _validator(name: str) -> jsonschema_rs.Validator:
    schema = {"components": _components(), "$ref": f"#/components/schemas/{name}"}
    return jsonschema_rs.Draft202012Validator(schema)


def response_problems(body: bytes) -> list[str]:
    """Returns the violations of the document by a body."""
    return [str(error) for error in _validator("Response").iter_errors(json.loads(body))]


def event_problems(frame: bytes) -> list[str]:
    """Returns the violations of the document by an event; an unlisted type is a KeyError."""
    data = json.loads(frame.split(b"\ndata: ", 1)[1])
    return [str(error) for error in _validator(_schema_names()[data["type"]]).iter_errors(data)]
