"""A request's bytes to a `Request`, or to the one refusal that says what to change.

Order of judgement, so that a body always gets the same answer:

1. the body is not sound JSON, or not an object: `invalid_request` (see `strict_json`);
2. anything in it is refused by design: one `unsupported_parameter` for all of it (see `refused`);
3. a value has the wrong type, is out of range or missing: `invalid_request` for the first one, parameters in the
   order of the contract page, items and tools by position;
4. the parts do not fit together: a tool choice without its tool, an output without its call, nothing to answer.

What the contract accepts and ignores is still held to its type, then forgotten. Model names, images' bytes and
the meaning of schemas are for others to judge.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from b3node.contract.fields import Fields, invalid, mistyped, needed
from b3node.contract.items import check_history, read_input
from b3node.contract.path import element, member
from b3node.contract.refused import refusal_of, survey
from b3node.contract.request import Effort, Request, TextFormat, Verbosity
from b3node.contract.strict_json import loads
from b3node.contract.tools import read_schema, read_tool_choice, read_tools
from b3node.errors import Refusal

MAX_MODEL: Final = 256
"""Characters of `model` (contract page)."""

MAX_LABEL: Final = 256
"""Characters of `user`, `safety_identifier`, `prompt_cache_key`: a bound of this node."""

MAX_METADATA: Final = 16
MAX_METADATA_KEY: Final = 64
MAX_METADATA_VALUE: Final = 512
"""Pairs of `metadata` and the characters of each, as OpenAI bounds them."""

MAX_OUTPUT_TOKENS: Final = 2**31 - 1
"""Token counts are 32-bit in the engine."""

_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
_VERBOSITIES: Final[tuple[Verbosity, ...]] = get_args(Verbosity)
FormatType = Literal["text", "json_object", "json_schema"]
_FORMATS: Final[tuple[FormatType, ...]] = get_args(FormatType)
_SUMMARIES: Final = ("auto", "concise", "detailed")


def decode_request(body: bytes) -> Request:
    """The request that `body` holds, checked against the whole contract.

    Raises `Refusal`, `invalid_request` or `unsupported_parameter`, with the path of what is wrong as `param`.
    Nothing else is raised, whatever the bytes.
    """
    document = loads(body)
    if not isinstance(document, dict):
        raise Refusal("invalid_request", "The request body must be a JSON object.")
    refused = survey(document)
    if refused:
        raise refusal_of(refused)
    request = _read_request(Fields(document))
    check_history(request.input)
    return request


def _read_request(fields: Fields) -> Request:
    """Every parameter, in the order of the contract page."""
    model = needed(fields.text("model", least=1, most=MAX_MODEL), fields, "model")
    items = read_input(fields)
    instructions = fields.text("instructions")
    max_output_tokens = fields.whole("max_output_tokens", 1, MAX_OUTPUT_TOKENS)
    temperature = fields.number("temperature", 0, 2)
    top_p = fields.number("top_p", 0, 1)
    tools = read_tools(fields)
    tool_choice = read_tool_choice(fields, tools)
    parallel = fields.flag("parallel_tool_calls")
    text_format, verbosity = _read_text(fields)
    effort, summary = _read_reasoning(fields)
    stream = fields.flag("stream")
    _check_ignored(fields)
    return Request(
        model=model,
        input=items,
        instructions=instructions,
        max_output_tokens=max_output_tokens,
        temperature=temperature,
        top_p=top_p,
        tools=tools,
        tool_choice=tool_choice,
        parallel_tool_calls=parallel is not False,
        text_format=text_format,
        verbosity=verbosity,
        effort=effort,
        summary=summary,
        stream=stream is True,
        metadata=_read_metadata(fields),
        user=fields.text("user", most=MAX_LABEL),
        safety_identifier=fields.text("safety_identifier", most=MAX_LABEL),
        prompt_cache_key=fields.text("prompt_cache_key", most=MAX_LABEL),
        service_tier=fields.text("service_tier", most=MAX_LABEL),
    )


def _read_text(request: Fields) -> tuple[TextFormat, Verbosity | None]:
    text = request.record("text")
    if text is None:
        return TextFormat(), None
    described = text.record("format")
    text_format = TextFormat() if described is None else _read_format(described)
    return text_format, text.choice("verbosity", _VERBOSITIES)


def _read_format(fields: Fields) -> TextFormat:
    """`text.format`; what belongs to another type is held to its own type and left out."""
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


def _read_reasoning(request: Fields) -> tuple[Effort | None, str | None]:
    """The effort, and the one summary wish of its two spellings."""
    reasoning = request.record("reasoning")
    if reasoning is None:
        return None, None
    effort = reasoning.choice("effort", _EFFORTS)
    summary = reasoning.choice("summary", _SUMMARIES)
    former = reasoning.choice("generate_summary", _SUMMARIES)
    return effort, summary or former


def _check_ignored(request: Fields) -> None:
    """Holds to its type what the node accepts and has no use for."""
    options = request.record("stream_options")
    if options:
        options.flag("include_obfuscation")
    request.flag("store")
    request.choice("truncation", ("disabled",))
    request.flag("background")
    for index, word in enumerate(request.array("include") or []):
        if not isinstance(word, str):
            raise mistyped(element("include", index), "a string", word)


def _read_metadata(request: Fields) -> dict[str, str]:
    pairs = request.mapping("metadata") or {}
    if len(pairs) > MAX_METADATA:
        raise invalid("metadata", f"may have at most {MAX_METADATA} pairs, not {len(pairs)}.")
    return {key: _metadata_value(key, value) for key, value in pairs.items()}


def _metadata_value(key: str, value: object) -> str:
    if len(key) > MAX_METADATA_KEY:
        raise invalid(
            "metadata", f"has a key of {len(key)} characters; at most {MAX_METADATA_KEY} are taken."
        )
    path = member("metadata", key)
    if not isinstance(value, str):
        raise mistyped(path, "a string", value)
    if len(value) > MAX_METADATA_VALUE:
        raise invalid(path, f"may have at most {MAX_METADATA_VALUE} characters, not {len(value)}.")
    return value
