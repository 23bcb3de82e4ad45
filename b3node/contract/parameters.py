"""Table of all request parameters: one row defines how a parameter is read, refused and published.

`decode` reads requests with it, `refused` finds refused entries with it, and `api.request_schema` publishes
it. Rows of numeric parameters are made from the annotations of their fields in `request.Request`. The rows
are in the order of the OpenAPI document. `READ_ORDER` is the order in which values are judged, so that a body
with several faults always gets the same answer.

A value that fails its reader is `invalid_request`. A reader's bounds and the row's schema are made from the
same constants; a test compares both.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, Final, get_args, get_type_hints

import msgspec

from b3node.contract import unsupported
from b3node.contract.fields import NAME_PATTERN, Fields, invalid, mistyped, needed
from b3node.contract.items import MAX_ITEMS, read_input
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
from b3node.contract.path import element, member
from b3node.contract.request import Bounds, Effort, FormatType, Request, Summary, TextFormat, Verbosity
from b3node.contract.tools import MAX_TOOLS, SCHEMA, read_schema, read_tool_choice, read_tools
from b3node.contract.unsupported import RefusedEntry

MAX_MODEL_CHARS: Final = 256
"""Characters of `model` (contract page)."""

MAX_LABEL_CHARS: Final = 256
"""Characters of `user`, `safety_identifier`, `prompt_cache_key`, `service_tier`: a bound of this node."""

MAX_METADATA_PAIRS: Final = 16
"""Pairs in `metadata` (OpenAI's bound)."""

MAX_METADATA_KEY_CHARS: Final = 64
"""Characters of a key of `metadata` (the same)."""

MAX_METADATA_VALUE_CHARS: Final = 512
"""Characters of a value of `metadata` (the same)."""

ITEM_COMPONENTS: Final = (
    "UserMessage",
    "SystemMessage",
    "AssistantMessage",
    "FunctionCall",
    "FunctionCallOutput",
    "PastReasoning",
)
"""Schemas of the items of `input`, by their names in the OpenAPI document."""

_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
_VERBOSITIES: Final[tuple[Verbosity, ...]] = get_args(Verbosity)
_FORMATS: Final[tuple[FormatType, ...]] = get_args(FormatType)
_SUMMARIES: Final[tuple[Summary, ...]] = get_args(Summary)

RequestFields = dict[str, Any]
"""Fields of `Request` by name; None where the parameter is unset."""
Reader = Callable[[Fields, RequestFields], RequestFields]
"""Reads one parameter. Takes the whole request and the fields read so far; returns the fields it adds."""
Finder = Callable[[object, str], Iterator[RefusedEntry]]
"""Finds the refused entries of one parameter. Takes a value other than null, and its path."""


class Support(enum.IntEnum):
    """Use of a parameter by the node, in the order in which the parameters are judged."""

    EFFECTIVE = 0
    """It shapes the answer."""

    IGNORED = 1
    """It is held to its type, then forgotten."""

    LABEL = 2
    """It is kept with the request and shapes no answer."""

    REFUSED = 3
    """Only null is accepted."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of a request."""

    name: str
    doc: str
    """One line for readers of this table; it is not published."""

    support: Support
    schema: PublishedSchema
    """JSON Schema of a value that is not null."""

    read: Reader
    """Called only if the parameter is set or required."""

    find_refused: Finder = unsupported.nothing
    is_required: bool = False
    """Whether absence and null are refused."""


# --------------------------------------------------------------------------------------- readers


def _into(name: str, read: Callable[[Fields], object]) -> Reader:
    """Returns a reader that puts one value into the field `name`."""
    return lambda request, _: {name: read(request)}


def _read_model(request: Fields) -> str:
    return needed(request.text("model", least=1, most=MAX_MODEL_CHARS), request, "model")


def _read_text(request: Fields, _read: RequestFields) -> RequestFields:
    text = request.record("text")
    if text is None:
        return {}
    described = text.record("format")
    text_format = None if described is None else _read_format(described)
    return {"text_format": text_format, "verbosity": text.choice("verbosity", _VERBOSITIES)}


def _read_format(fields: Fields) -> TextFormat:
    """Reads `text.format`; members of another format type are held to their own type and left out."""
    kind: FormatType = needed(fields.choice("type", _FORMATS), fields, "type")
    name, description, strict = fields.identifier("name"), fields.text("description"), fields.flag("strict")
    if kind != "json_schema":
        fields.mapping("schema")
        return TextFormat(kind)
    return TextFormat(
        kind,
        needed(name, fields, "name"),
        needed(read_schema(fields, "schema"), fields, "schema"),
        description,
        strict,
    )


def _read_reasoning(request: Fields, _read: RequestFields) -> RequestFields:
    """Reads the effort, and the summary from either of its two names."""
    reasoning = request.record("reasoning")
    if reasoning is None:
        return {}
    effort = reasoning.choice("effort", _EFFORTS)
    summary = reasoning.choice("summary", _SUMMARIES)
    former = reasoning.choice("generate_summary", _SUMMARIES)
    return {"effort": effort, "summary": summary or former}


def _read_metadata(request: Fields) -> dict[str, str]:
    pairs = request.mapping("metadata") or {}
    if len(pairs) > MAX_METADATA_PAIRS:
        raise invalid("metadata", f"may have at most {MAX_METADATA_PAIRS} pairs, not {len(pairs)}.")
    return {key: _metadata_value(key, value) for key, value in pairs.items()}


def _metadata_value(key: str, value: object) -> str:
    if len(key) > MAX_METADATA_KEY_CHARS:
        raise invalid(
            "metadata", f"has a key of {len(key)} characters; at most {MAX_METADATA_KEY_CHARS} are taken."
        )
    path = member("metadata", key)
    if not isinstance(value, str):
        raise mistyped(path, "a string", value)
    if len(value) > MAX_METADATA_VALUE_CHARS:
        raise invalid(path, f"may have at most {MAX_METADATA_VALUE_CHARS} characters, not {len(value)}.")
    return value


def _check_stream_options(request: Fields) -> None:
    options = request.record("stream_options")
    if options:
        options.flag("include_obfuscation")


def _check_include(request: Fields) -> None:
    for index, word in enumerate(request.array("include") or []):
        if not isinstance(word, str):
            raise mistyped(element("include", index), "a string", word)


# ------------------------------------------------------------------------------------------ rows


def numbers(request: type[msgspec.Struct]) -> Iterator[Parameter]:
    """Yields the row of each field of a request type that is annotated with `Bounds`, in order."""
    for name, hint in get_type_hints(request, include_extras=True).items():
        for bounds in getattr(hint, "__metadata__", ()):
            if isinstance(bounds, Bounds):
                is_integer = int in get_args(hint.__origin__)
                yield _number(name, bounds, is_integer=is_integer)


def _number(name: str, bounds: Bounds, *, is_integer: bool) -> Parameter:
    """Returns the row of a number within `bounds`."""
    least, most = bounds.least, bounds.most

    def read(request: Fields) -> float | None:
        if is_integer:
            return request.whole(name, int(least), int(most))
        return request.number(name, least, most)

    return Parameter(
        name=name,
        doc=bounds.doc,
        support=Support.EFFECTIVE,
        schema={"type": "integer" if is_integer else "number", "minimum": least, "maximum": most},
        read=_into(name, read),
    )


def _flag(name: str, *, doc: str) -> Parameter:
    """Returns the row of a boolean."""
    return Parameter(
        name=name,
        doc=doc,
        support=Support.EFFECTIVE,
        schema=boolean(),
        read=_into(name, lambda request: request.flag(name)),
    )


def _label(name: str, *, doc: str) -> Parameter:
    """Returns the row of a client's own label."""
    return Parameter(
        name=name,
        doc=doc,
        support=Support.LABEL,
        schema=string(maxLength=MAX_LABEL_CHARS),
        read=_into(name, lambda request: request.text(name, most=MAX_LABEL_CHARS)),
    )


def _ignored(
    name: str,
    schema: PublishedSchema,
    check: Callable[[Fields], object],
    *,
    doc: str,
    find_refused: Finder = unsupported.nothing,
) -> Parameter:
    """Returns the row of a parameter that `check` holds to its type and nothing uses."""

    def read(request: Fields, _read: RequestFields) -> RequestFields:
        check(request)
        return {}

    support = Support.IGNORED
    return Parameter(name=name, doc=doc, support=support, schema=schema, read=read, find_refused=find_refused)


def _refused(name: str, find_refused: Finder, *, doc: str) -> Parameter:
    """Returns the row of a parameter of which the node accepts null alone."""
    return Parameter(
        name=name,
        doc=doc,
        support=Support.REFUSED,
        schema={"type": "null", "description": "Only null: nothing is kept between requests."},
        read=lambda _request, _read: {},
        find_refused=find_refused,
    )


_FORMAT: Final = record(
    {
        "type": choice(*_FORMATS),
        "name": string(pattern=NAME_PATTERN, description="Required with json_schema."),
        "schema": SCHEMA,
        "description": string(),
        "strict": boolean(),
    },
    "type",
)
_SUMMARY: Final = choice(*_SUMMARIES, description=IGNORED)

PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        name="model",
        doc="Served model.",
        support=Support.EFFECTIVE,
        schema=string(minLength=1, maxLength=MAX_MODEL_CHARS),
        read=_into("model", _read_model),
        is_required=True,
    ),
    Parameter(
        name="input",
        doc="Conversation: items in order; a string is one user message.",
        support=Support.EFFECTIVE,
        schema=any_of(string(), array(any_of(*map(reference, ITEM_COMPONENTS)), maxItems=MAX_ITEMS)),
        read=_into("input", read_input),
        find_refused=unsupported.conversation,
        is_required=True,
    ),
    Parameter(
        name="instructions",
        doc="System text before the conversation.",
        support=Support.EFFECTIVE,
        schema=string(),
        read=_into("instructions", lambda request: request.text("instructions")),
    ),
    *numbers(Request),
    Parameter(
        name="tools",
        doc="Functions that the model may call.",
        support=Support.EFFECTIVE,
        schema=array(reference("FunctionTool"), maxItems=MAX_TOOLS),
        read=_into("tools", read_tools),
        find_refused=unsupported.tools,
    ),
    Parameter(
        name="tool_choice",
        doc="Whether the model may, must or must not call, or the one function it must call.",
        support=Support.EFFECTIVE,
        schema=any_of(
            choice("none", "auto", "required"),
            record({"type": choice("function"), "name": string()}, "type", "name"),
        ),
        read=lambda request, read: {"tool_choice": read_tool_choice(request, read.get("tools", ()))},
        find_refused=unsupported.tool_choice,
    ),
    _flag("parallel_tool_calls", doc="Whether one answer may have several calls."),
    Parameter(
        name="text",
        doc="Format of the answer's text, and its verbosity, which is ignored.",
        support=Support.EFFECTIVE,
        schema=record({"format": _FORMAT, "verbosity": choice(*_VERBOSITIES, description=IGNORED)}),
        read=_read_text,
    ),
    Parameter(
        name="reasoning",
        doc="Effort of reasoning; summaries are ignored.",
        support=Support.EFFECTIVE,
        schema=record({"effort": choice(*_EFFORTS), "summary": _SUMMARY, "generate_summary": _SUMMARY}),
        read=_read_reasoning,
        find_refused=unsupported.reasoning,
    ),
    _flag("stream", doc="Whether the answer is a stream of events."),
    _ignored(
        "stream_options",
        record({"include_obfuscation": boolean(description=IGNORED)}),
        _check_stream_options,
        doc="Obfuscation of streams; there is none.",
    ),
    _ignored(
        "store",
        boolean(description=IGNORED),
        lambda request: request.flag("store"),
        doc="Storage of the response; nothing is stored.",
    ),
    Parameter(
        name="metadata",
        doc="Pairs that are echoed in the response.",
        support=Support.LABEL,
        schema={
            "type": "object",
            "maxProperties": MAX_METADATA_PAIRS,
            "propertyNames": {"maxLength": MAX_METADATA_KEY_CHARS},
            "additionalProperties": string(maxLength=MAX_METADATA_VALUE_CHARS),
        },
        read=_into("metadata", _read_metadata),
    ),
    _label("user", doc="End user, as the client names it."),
    _label("safety_identifier", doc="End user, hashed by the client."),
    _label("prompt_cache_key", doc="Requests with a common prefix, as the client groups them."),
    _label("service_tier", doc="Wished service tier; there is one."),
    _ignored(
        "truncation",
        choice("disabled"),
        lambda request: request.choice("truncation", ("disabled",)),
        doc="Cutting of a long input; it is never cut.",
        find_refused=unsupported.truncation,
    ),
    _ignored(
        "background",
        {"type": "boolean", "enum": [False]},
        lambda request: request.flag("background"),
        doc="Answering later; every answer comes at once.",
        find_refused=unsupported.background,
    ),
    _ignored(
        "include",
        array(choice(unsupported.ENCRYPTED_REASONING)),
        _check_include,
        doc="Additional output; encrypted reasoning is accepted and never sent.",
        find_refused=unsupported.include,
    ),
    _refused("previous_response_id", unsupported.stateful, doc="Stored response to continue."),
    _refused("conversation", unsupported.stateful, doc="Stored conversation to continue."),
    _refused("prompt", unsupported.stateful, doc="Stored prompt template."),
    _refused("top_logprobs", unsupported.null_only, doc="Log probabilities of alternative tokens."),
    _refused("max_tool_calls", unsupported.null_only, doc="Calls of built-in tools at most."),
)
"""Every parameter of the contract page, in the order of the OpenAPI document."""

BY_NAME: Final = {parameter.name: parameter for parameter in PARAMETERS}

READ_ORDER: Final = tuple(sorted(PARAMETERS, key=lambda parameter: parameter.support))
"""The rows in the order in which values are judged; rows of equal support keep the table's order."""
