"""The request body as JSON Schema 2020-12, for the OpenAPI document.

`contract.decode` is what judges requests, by hand and with paths; this says the same declaratively, and a
test holds the two against each other. null is unset for every optional parameter, so each of those is
nullable. Bounds between parts (outputs that belong to calls, a choice that names a tool) are beyond it.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.decode import (
    MAX_LABEL,
    MAX_METADATA,
    MAX_METADATA_KEY,
    MAX_METADATA_VALUE,
    MAX_MODEL,
    MAX_OUTPUT_TOKENS,
)
from b3node.contract.items import MAX_ITEMS, MAX_PARTS
from b3node.contract.tools import MAX_TOOLS

Schema = dict[str, object]

_NAME: Final = "^[A-Za-z0-9_-]{1,64}$"
_IMAGE_URL: Final = "^(https://|data:image/(png|jpeg|jpg|webp|gif);base64,)"

_IGNORED: Final = "Accepted and ignored."


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if schema["type"] == "null":
        return schema
    null: Schema = {"type": [schema["type"], "null"]}
    values = schema.get("enum")
    if isinstance(values, list):
        null["enum"] = [*values, None]
    return {**schema, **null}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _string(**more: object) -> Schema:
    return {"type": "string", **more}


def _choice(*values: str, **more: object) -> Schema:
    return {"type": "string", "enum": list(values), **more}


def _array(items: Schema, **more: object) -> Schema:
    return {"type": "array", "items": items, **more}


def _any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _object(properties: dict[str, Schema], *required: str, **more: object) -> Schema:
    """An object: members outside `required` may be null, members that are not named are ignored."""
    members = {name: schema if name in required else nullable(schema) for name, schema in properties.items()}
    return {"type": "object", "properties": members, "required": list(required), **more}


_ANY_OBJECT: Final[Schema] = {"type": "object"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_IGNORED_FLAG: Final[Schema] = {"type": "boolean", "description": _IGNORED}
_NULL_ONLY: Final[Schema] = {"type": "null", "description": "Only null: nothing is kept between requests."}

_BREAKPOINT: Final = _object({"mode": _choice("explicit")}, description=_IGNORED)

_PARTS: Final[dict[str, Schema]] = {
    "InputText": _object(
        {"type": _choice("input_text"), "text": _string(), "prompt_cache_breakpoint": _BREAKPOINT},
        "type",
        "text",
    ),
    "InputImage": _object(
        {
            "type": _choice("input_image"),
            "image_url": _string(pattern=_IMAGE_URL),
            "detail": _choice("auto", "low", "high", "original", description=_IGNORED),
            "file_id": {"type": "null"},
            "prompt_cache_breakpoint": _BREAKPOINT,
        },
        "type",
        "image_url",
    ),
    "PastText": _object(
        {
            "type": _choice("output_text"),
            "text": _string(),
            "annotations": _array(_ANY_OBJECT),
            "logprobs": _array(_ANY_OBJECT),
        },
        "type",
        "text",
    ),
    "PastRefusal": _object({"type": _choice("refusal"), "refusal": _string()}, "type", "refusal"),
    "PastThought": _object(
        {"type": _choice("reasoning_text", "summary_text"), "text": _string()}, "type", "text"
    ),
}


def _text_or(*parts: str) -> Schema:
    return _any_of(_string(), _array(_any_of(*map(_ref, parts)), maxItems=MAX_PARTS))


def _message(roles: tuple[str, ...], *parts: str) -> Schema:
    return _object(
        {
            "type": _choice("message"),
            "role": _choice(*roles),
            "content": _text_or(*parts),
            "id": _string(),
            "status": _string(),
            "phase": _string(),
        },
        "role",
        "content",
    )


_ITEMS: Final[dict[str, Schema]] = {
    "UserMessage": _message(("user",), "InputText", "InputImage"),
    "SystemMessage": _message(("system", "developer"), "InputText"),
    "AssistantMessage": _message(("assistant",), "PastText", "PastRefusal"),
    "FunctionCall": _object(
        {
            "type": _choice("function_call"),
            "call_id": _string(minLength=1),
            "name": _string(minLength=1),
            "arguments": _string(),
            "id": _string(),
            "status": _string(),
            "caller": _ANY_OBJECT,
            "namespace": _string(),
            "async": _IGNORED_FLAG,
        },
        "type",
        "call_id",
        "name",
        "arguments",
    ),
    "FunctionCallOutput": _object(
        {
            "type": _choice("function_call_output"),
            "call_id": _string(description="That of an earlier function_call in input."),
            "output": _text_or("InputText", "InputImage"),
            "id": _string(),
            "status": _string(),
            "caller": _ANY_OBJECT,
            "name": _string(),
            "namespace": _string(),
        },
        "type",
        "call_id",
        "output",
    ),
    "PastReasoning": _object(
        {
            "type": _choice("reasoning"),
            "id": _string(),
            "summary": _array(_ref("PastThought"), maxItems=MAX_PARTS),
            "content": _array(_ref("PastThought"), maxItems=MAX_PARTS),
            "encrypted_content": _string(description=_IGNORED),
            "status": _string(),
        },
        "type",
    ),
}

_TOOL: Final = _object(
    {
        "type": _choice("function"),
        "name": _string(pattern=_NAME),
        "description": _string(),
        "parameters": {"type": "object", "description": "A JSON Schema of at most 64 KiB and 32 levels."},
        "strict": _BOOLEAN,
        "allowed_callers": _array(_choice("direct")),
        "defer_loading": _BOOLEAN,
        "output_schema": _ANY_OBJECT,
    },
    "type",
    "name",
)

_FORMAT: Final = _object(
    {
        "type": _choice("text", "json_object", "json_schema"),
        "name": _string(pattern=_NAME, description="Required with json_schema."),
        "schema": {"type": "object", "description": "A JSON Schema of at most 64 KiB and 32 levels."},
        "description": _string(),
        "strict": _BOOLEAN,
    },
    "type",
)

_SUMMARY: Final = _choice("auto", "concise", "detailed", description=_IGNORED)
_LABEL: Final = _string(maxLength=MAX_LABEL)

_REQUEST: Final = _object(
    {
        "model": _string(minLength=1, maxLength=MAX_MODEL),
        "input": _any_of(_string(), _array(_any_of(*map(_ref, _ITEMS)), maxItems=MAX_ITEMS)),
        "instructions": _string(),
        "max_output_tokens": {"type": "integer", "minimum": 1, "maximum": MAX_OUTPUT_TOKENS},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "tools": _array(_ref("FunctionTool"), maxItems=MAX_TOOLS),
        "tool_choice": _any_of(
            _choice("none", "auto", "required"),
            _object({"type": _choice("function"), "name": _string()}, "type", "name"),
        ),
        "parallel_tool_calls": _BOOLEAN,
        "text": _object(
            {
                "format": _FORMAT,
                "verbosity": _choice("low", "medium", "high", description=_IGNORED),
            }
        ),
        "reasoning": _object(
            {
                "effort": _choice("none", "minimal", "low", "medium", "high", "xhigh"),
                "summary": _SUMMARY,
                "generate_summary": _SUMMARY,
            }
        ),
        "stream": _BOOLEAN,
        "stream_options": _object({"include_obfuscation": _IGNORED_FLAG}),
        "store": _IGNORED_FLAG,
        "metadata": {
            "type": "object",
            "maxProperties": MAX_METADATA,
            "propertyNames": {"maxLength": MAX_METADATA_KEY},
            "additionalProperties": _string(maxLength=MAX_METADATA_VALUE),
        },
        "user": _LABEL,
        "safety_identifier": _LABEL,
        "prompt_cache_key": _LABEL,
        "service_tier": _LABEL,
        "truncation": _choice("disabled"),
        "background": {"type": "boolean", "enum": [False]},
        "include": _array(_choice("reasoning.encrypted_content")),
        "previous_response_id": _NULL_ONLY,
        "conversation": _NULL_ONLY,
        "prompt": _NULL_ONLY,
        "top_logprobs": _NULL_ONLY,
        "max_tool_calls": _NULL_ONLY,
    },
    "model",
    "input",
    additionalProperties=False,
)

REQUEST_SCHEMAS: Final[dict[str, Schema]] = {
    "CreateResponse": _REQUEST,
    "FunctionTool": _TOOL,
    **_ITEMS,
    **_PARTS,
}
"""The components of the request, by name; `CreateResponse` is the body."""
