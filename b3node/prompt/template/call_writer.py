"""Writer of calls in a dialect's spelling: the inverse of the parser, and of the probe of templates.

It serves histories for templates that drop calls, and the example call in a prompt that explains calls.
Literals are the dialect's own; a client's words come in the alphabet that `provenance` has for them, and stay
in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from b3node.dialects.dialect import (
    Arguments,
    Calls,
    JsonArguments,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    Pattern,
    QuotedArguments,
    TaggedArguments,
)
from b3node.dialects.kinds import json_type
from b3node.prompt.template.conversation import ToolCall
from b3node.prompt.template.sandbox import to_json


def write_calls(calls: Sequence[ToolCall], how: Calls) -> str:
    """Writes the calls of one turn, one after the other, even where a family makes `alone` calls only."""
    written = (_call(call, place, how) for place, call in enumerate(calls))
    return f"{how.section.open}{how.between.join(written)}{how.section.close}" if calls else ""


def _call(call: ToolCall, place: int, how: Calls) -> str:
    return _filled(how.open, call, place) + _body(call, place, how) + how.close


def _filled(pattern: Pattern, call: ToolCall, place: int) -> str:
    return "".join(
        part if isinstance(part, str) else call.id if part.kind == "id" else str(part.first + place)
        for part in pattern
    )


def _body(call: ToolCall, place: int, how: Calls) -> str:
    body = how.body
    if isinstance(body, NamedBody):
        return call.name + _filled(body.between, call, place) + _arguments(call.arguments, body.arguments)
    arguments = _json(call.arguments)
    if isinstance(body, KeyedBody):
        return f"{{{to_json(call.name)}: {arguments}}}"
    return _object(call, arguments, body)


def _object(call: ToolCall, arguments: str, body: ObjectBody) -> str:
    members = [f'"{body.name}": {to_json(call.name)}', f'"{body.arguments}": {arguments}']
    if body.before:
        members.insert(0, f'"{body.before}": {to_json(call.id)}')
    if body.after:
        members.append(f'"{body.after}": {to_json(call.id)}')
    return f"{{{', '.join(members)}}}"


def _json(arguments: dict[str, object] | str) -> str:
    return arguments if isinstance(arguments, str) else to_json(arguments)


def _arguments(arguments: dict[str, object] | str, how: Arguments) -> str:
    if isinstance(how, JsonArguments):
        return _json(arguments)
    named: Mapping[str, object] = {"arguments": arguments} if isinstance(arguments, str) else arguments
    if isinstance(how, KeywordArguments):
        return f"({', '.join(f'{name}={python_literal(value)}' for name, value in named.items())})"
    if isinstance(how, QuotedArguments):
        return _quoted(named, how.quote)
    if isinstance(how, NestedArguments):
        return "".join(_element(name, value, how) for name, value in named.items())
    return "".join(
        f"{how.open}{name}{how.named}{_kind(value, how)}{_bare(value, how)}{how.close}"
        for name, value in named.items()
    )


def _bare(value: object, how: TaggedArguments) -> str:
    if isinstance(value, str):
        return value
    return python_literal(value) if how.python else to_json(value)


def _kind(value: object, how: TaggedArguments) -> str:
    if not how.kind:
        return ""
    if how.kind == "flag":
        return ("true" if isinstance(value, str) else "false") + how.kind_close
    return json_type(value) + how.kind_close


def _quoted(value: object, quote: str) -> str:
    if isinstance(value, str):
        return quote + value + quote
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_quoted(member, quote)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_quoted(element, quote) for element in value) + "]"
    return to_json(value)


def _element(name: str, value: object, how: NestedArguments) -> str:
    if isinstance(value, Mapping):
        inner = "".join(_element(key, member, how) for key, member in value.items())
    elif isinstance(value, list):
        inner = "".join(_element(how.item, element, how) for element in value)
    else:
        inner = value if isinstance(value, str) else "" if value is None else to_json(value)
    return f"{how.lead}<{name}>{inner}{how.lead}</{name}>"


def python_literal(value: object) -> str:
    """Returns a JSON value as a Python literal, strings in single quotes and beyond ASCII as they are."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + "'"
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{python_literal(name)}: {python_literal(member)}" for name, member in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(python_literal, value)) + "]"
    return str(value) if value is None or isinstance(value, bool) else to_json(value)
