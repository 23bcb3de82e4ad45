"""Families that write a call as one JSON object, its name inside or its only key."""

from __future__ import annotations

from b3node.dialects.dialect import (
    GENERIC,
    Calls,
    Dialect,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    ObjectBody,
    Span,
)
from tests.parse.families.family import ARGS, BOTH, OSLO, ROMAN, ROME, THINK, Family, Turn, call


def hermes() -> Family:
    calls = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGS}}}\n</tool_call>'
    roman = f'<tool_call>\n{{"name": "get_weather", "arguments": {ROMAN}}}\n</tool_call>'
    return Family(
        "hermes, qwen, smollm3, granite 4",
        Dialect(thinking=THINK, calls=GENERIC),
        ("<tool_call>", "</tool_call>", "<think>", "</think>"),
        (
            Turn(
                f"<think>\nI <b>may</b> write {{x}}.\n</think>\n\nLet me see:\n{calls}\n{roman}\nDone.",
                [("reasoning", "I <b>may</b> write {x}."), ("text", "Let me see:"), *BOTH, ("text", "Done.")],
            ),
            Turn(
                f"about {calls} in thought</think>\n\nAnswer.",
                [("reasoning", f"about {calls} in thought"), ("text", "Answer.")],
                thinking=True,
            ),
            Turn('<tool_call>{"name":"ping"}</tool_call>', [call("ping", {})]),
            Turn('<tool_call>\n{"name": "ping", "arguments": null}', [call("ping", {})]),
            Turn(
                '<tool_call>\n{"arguments": {"city": "Oslo"}, "name": "get_weather"}\n</tool_call>',
                [call("get_weather", {"city": "Oslo"})],
            ),
            Turn(
                '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"O\\\\u00e9\\"}"}</tool_call>',
                [call("get_weather", {"city": "Oé"})],
            ),
            Turn(
                'No: <tool_call>\n{"name": "nobody", "arguments": {}}\n</tool_call> yes',
                [("text", 'No: <tool_call>\n{"name": "nobody", "arguments": {}}\n</tool_call> yes')],
            ),
            Turn(f"{calls} stays", [("text", f"{calls} stays")], calls=False),
            Turn("Stray </think> close", [("text", "Stray  close")]),
            Turn("One <think>two</think> three", [("text", "One"), ("reasoning", "two"), ("text", "three")]),
            Turn("cut in a thou", [("reasoning", "cut in a thou")], thinking=True),
            Turn(
                '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os',
                [("open", "get_weather", '{"city": "Os')],
            ),
        ),
    )


def spelled_hermes() -> Family:
    """The same where no marker is a special token."""
    calls = f'<tool_call>\n{{"name": "get_weather", "arguments": {ARGS}}}\n</tool_call>'
    quoted = f"Write `<tool_call>` or `</think>`:\n```xml\n{calls}\n```\nand ``a `<tool_call>` b``."
    return Family(
        "hermes with its markers spelled out",
        Dialect(thinking=THINK, calls=GENERIC),
        (),
        (
            Turn(
                f"<think>hm</think>{quoted}\n{calls}",
                [("reasoning", "hm"), ("text", quoted), call("get_weather", OSLO)],
            ),
            Turn(f"It`s\n{calls}", [("text", "It`s"), call("get_weather", OSLO)]),
            Turn("a < b <tool and <think about", [("text", "a < b <tool and <think about")]),
            Turn("end <tool_call>", [("text", "end <tool_call>")]),
            Turn("a </think> b", [("text", "a  b")]),
        ),
    )


def llama() -> Family:
    body = ObjectBody(arguments="parameters")
    return Family(
        "llama 3.x",
        Dialect(
            calls=Calls(body, bare=True, alone=True),
            also=(
                Calls(body, open=("<|python_tag|>",), alone=True),
                Calls(NamedBody((".call",), KeywordArguments()), open=("<|python_tag|>",), alone=True),
            ),
        ),
        ("<|python_tag|>",),
        (
            Turn(f'{{"name": "get_weather", "parameters": {ARGS}}}', [call("get_weather", OSLO)]),
            Turn(f' \n{{ "name" : "get_weather", "parameters": {ROMAN}}}', [call("get_weather", ROME)]),
            Turn(
                f'<|python_tag|>{{"name": "get_weather", "parameters": {ARGS}}}', [call("get_weather", OSLO)]
            ),
            Turn(
                "<|python_tag|>get_weather.call(city='O', n=3)", [call("get_weather", {"city": "O", "n": 3})]
            ),
            Turn("<|python_tag|>print(3)", [("text", "<|python_tag|>print(3)")]),
            Turn('{"name": "Ada", "age": 36}', [("text", '{"name": "Ada", "age": 36}')]),
            Turn('{"name": "get_weathe', [("text", '{"name": "get_weathe')]),
            Turn('{"nam', [("text", '{"nam')]),
            Turn('So: {"name": "ping"}', [("text", 'So: {"name": "ping"}')]),
            Turn('{"name": "ping", "parameters": {}', [call("ping", {})]),
            Turn(" text ", [("text", " text ")]),
        ),
    )


def mistral() -> Family:
    turn = f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {ARGS}, "id": "call00001"}}, {{"name": "get_weather", "arguments": {ROMAN}, "id": "call00002"}}]'
    return Family(
        "mistral, old",
        Dialect(calls=Calls(ObjectBody(after="id"), section=Span("[TOOL_CALLS][", "]"), between=", ")),
        ("[TOOL_CALLS]",),
        (
            Turn(turn, BOTH),
            Turn(
                "Text [TOOL_CALLS] [" + '{"name": "ping"}]\n\nMore',
                [("text", "Text"), call("ping", {}), ("text", "More")],
            ),
        ),
    )


def minimax_m1() -> Family:
    return Family(
        "minimax m1",
        Dialect(calls=Calls(ObjectBody(), section=Span("<tool_calls>\n", "\n</tool_calls>"), between="\n")),
        (),
        (
            Turn(
                f'<tool_calls>\n{{"name": "get_weather", "arguments": {ARGS}}}\n{{"name": "get_weather", "arguments": {ROMAN}}}\n</tool_calls>',
                BOTH,
            ),
        ),
    )


def command_r() -> Family:
    return Family(
        "command r7b, cohere2",
        Dialect(
            thinking=Span("<|START_THINKING|>", "<|END_THINKING|>"),
            text=Span("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
            calls=Calls(
                ObjectBody(name="tool_name", arguments="parameters", before="tool_call_id"),
                section=Span("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
                between=",\n    ",
            ),
        ),
        (
            "<|START_THINKING|>",
            "<|END_THINKING|>",
            "<|START_ACTION|>",
            "<|END_ACTION|>",
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
        ),
        (
            Turn(
                '<|START_THINKING|>Hm<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", '
                f'"parameters": {ARGS}}},\n    {{"tool_call_id": "1", "tool_name": "get_weather", "parameters": {ROMAN}}}\n]<|END_ACTION|>',
                [("reasoning", "Hm"), *BOTH],
            ),
            Turn(
                "<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Text <|END_RESPONSE|>",
                [("reasoning", "Hm"), ("text", "Text ")],
            ),
        ),
    )


def command_r_plus() -> Family:
    return Family(
        "command r+",
        Dialect(
            calls=Calls(
                ObjectBody(name="tool_name", arguments="parameters"),
                section=Span("Action:\n```json\n[\n    ", "\n]```"),
                between=",\n    ",
            )
        ),
        (),
        (
            Turn(
                f'Text\nAction:\n```json\n[\n    {{\n        "tool_name": "get_weather",\n        "parameters": {ARGS}\n    }},\n'
                f'    {{\n        "tool_name": "get_weather",\n        "parameters": {ROMAN}\n    }}\n]```',
                [("text", "Text"), *BOTH],
            ),
        ),
    )


def nemotron() -> Family:
    return Family(
        "nemotron nano v2",
        Dialect(
            thinking=THINK,
            calls=Calls(ObjectBody(), section=Span("<TOOLCALL>[", "]</TOOLCALL>"), between=", "),
        ),
        (),
        (
            Turn(
                f'Hm\n</think>\nText\n<TOOLCALL>[{{"name": "get_weather", "arguments": {ARGS}}}, {{"name": "get_weather", "arguments": {ROMAN}}}]</TOOLCALL>\n',
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
                thinking=True,
            ),
        ),
    )


def granite() -> Family:
    return Family(
        "granite 3, phi 4 mini",
        Dialect(calls=Calls(ObjectBody(), section=Span("<|tool_call|>[", "]"), between=", ")),
        ("<|tool_call|>",),
        (
            Turn(
                f'<|tool_call|>[{{"name": "get_weather", "arguments": {ARGS}}}, {{"name": "get_weather", "arguments": {ROMAN}}}]',
                BOTH,
            ),
        ),
    )


def apertus() -> Family:
    return Family(
        "apertus",
        Dialect(
            thinking=Span("<|inner_prefix|>", "<|inner_suffix|>"),
            calls=Calls(KeyedBody(), section=Span("<|tools_prefix|>[", "]<|tools_suffix|>"), between=", "),
        ),
        ("<|tools_prefix|>", "<|tools_suffix|>", "<|inner_prefix|>", "<|inner_suffix|>"),
        (
            Turn(
                f'<|inner_prefix|>Hm<|inner_suffix|>Text<|tools_prefix|>[{{"get_weather": {ARGS}}}, {{"get_weather": {ROMAN}}}]<|tools_suffix|>',
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
            Turn('<|tools_prefix|>[{"ping": {}}]<|tools_suffix|>', [call("ping", {})]),
        ),
    )


def firefunction() -> Family:
    return Family(
        "firefunction v2",
        Dialect(calls=Calls(ObjectBody(), section=Span(" functools[", "]"), between=", ")),
        (),
        (
            Turn(
                f'Text functools[{{"name": "get_weather", "arguments": {ARGS}}}, {{"name": "get_weather", "arguments": {ROMAN}}}]',
                [("text", "Text"), *BOTH],
            ),
        ),
    )


OBJECTS = tuple(
    make()
    for make in (
        hermes,
        spelled_hermes,
        llama,
        mistral,
        minimax_m1,
        command_r,
        command_r_plus,
        nemotron,
        granite,
        apertus,
        firefunction,
    )
)
