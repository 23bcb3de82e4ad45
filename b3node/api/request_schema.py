"""The request body as JSON Schema 2020-12, for the OpenAPI document.

Parameters come from the table of `contract.parameters`; the components that they refer to are written here.
`contract.decode` judges requests, by hand and with paths; a test holds both against each other. null is unset
for every optional parameter, so each of those is nullable. Rules between parts (outputs that belong to calls,
a choice that names a tool) are beyond it.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.fields import NAME_PATTERN
from b3node.contract.image import IMAGE_URL_PATTERN
from b3node.contract.items import DETAILS, MAX_PARTS, REASONING_PARTS
from b3node.contract.json_schema import (
    IGNORED,
    PublishedSchema,
    any_of,
    array,
    boolean,
    choice,
    record,
    reference,
    string,
)
from b3node.contract.parameters import PARAMETERS
from b3node.contract.tools import SCHEMA

_ANY_OBJECT: Final[PublishedSchema] = {"type": "object"}

_BREAKPOINT: Final = record({"mode": choice("explicit")}, description=IGNORED)

_PARTS: Final[dict[str, PublishedSchema]] = {
    "InputText": record(
        {"type": choice("input_text"), "text": string(), "prompt_cache_breakpoint": _BREAKPOINT},
        "type",
        "text",
    ),
    "InputImage": record(
        {
            "type": choice("input_image"),
            "image_url": string(pattern=IMAGE_URL_PATTERN),
            "detail": choice(*DETAILS, description=IGNORED),
            "file_id": {"type": "null"},
            "prompt_cache_breakpoint": _BREAKPOINT,
        },
        "type",
        "image_url",
    ),
    "PastText": record(
        {
            "type": choice("output_text"),
            "text": string(),
            "annotations": array(_ANY_OBJECT),
            "logprobs": array(_ANY_OBJECT),
        },
        "type",
        "text",
    ),
    "PastRefusal": record({"type": choice("refusal"), "refusal": string()}, "type", "refusal"),
    "PastThought": record({"type": choice(*REASONING_PARTS), "text": string()}, "type", "text"),
}


def _text_or(*parts: str) -> PublishedSchema:
    return any_of(string(), array(any_of(*map(reference, parts)), maxItems=MAX_PARTS))


def _message(roles: tuple[str, ...], *parts: str) -> PublishedSchema:
    return record(
        {
            "type": choice("message"),
            "role": choice(*roles),
            "content": _text_or(*parts),
            "id": string(),
            "status": string(),
            "phase": string(),
        },
        "role",
        "content",
    )


_ITEMS: Final[dict[str, PublishedSchema]] = {
    "UserMessage": _message(("user",), "InputText", "InputImage"),
    "SystemMessage": _message(("system", "developer"), "InputText"),
    "AssistantMessage": _message(("assistant",), "PastText", "PastRefusal"),
    "FunctionCall": record(
        {
            "type": choice("function_call"),
            "call_id": string(minLength=1),
            "name": string(minLength=1),
            "arguments": string(),
            "id": string(),
            "status": string(),
            "caller": _ANY_OBJECT,
            "namespace": string(),
            "async": boolean(description=IGNORED),
        },
        "type",
        "call_id",
        "name",
        "arguments",
    ),
    "FunctionCallOutput": record(
        {
            "type": choice("function_call_output"),
            "call_id": string(description="That of an earlier function_call in input."),
            "output": _text_or("InputText", "InputImage"),
            "id": string(),
            "status": string(),
            "caller": _ANY_OBJECT,
            "name": string(),
            "namespace": string(),
        },
        "type",
        "call_id",
        "output",
    ),
    "PastReasoning": record(
        {
            "type": choice("reasoning"),
            "id": string(),
            "summary": array(reference("PastThought"), maxItems=MAX_PARTS),
            "content": array(reference("PastThought"), maxItems=MAX_PARTS),
            "encrypted_content": string(description=IGNORED),
            "status": string(),
        },
        "type",
    ),
}

_TOOL: Final = record(
    {
        "type": choice("function"),
        "name": string(pattern=NAME_PATTERN),
        "description": string(),
        "parameters": SCHEMA,
        "strict": boolean(),
        "allowed_callers": array(choice("direct")),
        "defer_loading": boolean(),
        "output_schema": _ANY_OBJECT,
    },
    "type",
    "name",
)

_REQUEST: Final = record(
    {parameter.name: parameter.schema for parameter in PARAMETERS},
    *(parameter.name for parameter in PARAMETERS if parameter.is_required),
    additionalProperties=False,
)

REQUEST_SCHEMAS: Final[dict[str, PublishedSchema]] = {
    "CreateResponse": _REQUEST,
    "FunctionTool": _TOOL,
    **_ITEMS,
    **_PARTS,
}
"""The components of the request, by name; `CreateResponse` is the body."""
