# ruff: noqa: RUF001 - families write these characters
"""What families write, by hand: a dialect each, and turns in it with what they say.

In these texts a special token is written like any other text; `written` puts the mark before it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import (
    GENERIC,
    Calls,
    Dialect,
    Hole,
    JsonArguments,
    KeyedBody,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    QuotedArguments,
    Span,
    TaggedArguments,
)
from b3node.dialects.outline import Reading

WEATHER = FunctionTool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "n": {"anyOf": [{"type": "integer"}]},
            "deep": {"$ref": "#/$defs/deep"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "$defs": {
            "deep": {
                "type": "object",
                "properties": {"a": {"type": "array", "items": {"type": ["boolean", "null", "string"]}}},
            }
        },
    },
)
PING = FunctionTool("ping")
TOOLS = (WEATHER, PING)

OSLO = {"city": 'Os"lo', "n": 3, "deep": {"a": [True, None, "x"]}}
ROME = {"city": "Röm\nü </tool_call> 🙂"}
ARGS = '{"city": "Os\\"lo", "n": 3, "deep": {"a": [true, null, "x"]}}'
ROMAN = '{"city": "Röm\\nü </tool_call> 🙂"}'

Said = list[tuple[object, ...]]


class Turn(NamedTuple):
    written: str
    said: Said
    thinking: bool = False
    calls: bool = True


class Family(NamedTuple):
    name: str
    dialect: Dialect
    specials: tuple[str, ...]
    turns: tuple[Turn, ...]
    begun: str = ""


def written(text: str, specials: tuple[str, ...]) -> bytes:
    """The bytes that arrive: every special token behind a mark."""
    out = text.encode()
    for special in specials:
        assert not any(special != other and special in other for other in specials)
        out = out.replace(special.encode(), b"\xff" + special.encode())
    return out


def reading(family: Family, turn: Turn) -> Reading:
    return Reading(
        family.dialect,
        thinking=turn.thinking,
        calls=turn.calls,
        specials=family.specials,
        begun=written(family.begun, family.specials),
    )


def call(name: str, arguments: object) -> tuple[object, ...]:
    return ("call", name, arguments)


BOTH: Said = [call("get_weather", OSLO), call("get_weather", ROME)]
THINK = Span("<think>\n", "\n</think>\n\n")


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


def coder() -> Family:
    dialect = Dialect(
        thinking=THINK,
        calls=Calls(
            NamedBody((">\n",), TaggedArguments("<parameter=", ">\n", "\n</parameter>\n")),
            open=("<tool_call>\n<function=",),
            close="</function>\n</tool_call>",
            between="\n",
        ),
    )
    oslo = '<parameter=city>\nOs"lo\n</parameter>\n<parameter=n>\n3\n</parameter>\n<parameter=deep>\n{"a": [true, null, "x"]}\n</parameter>\n'
    rome = "<parameter=city>\nRöm\nü </tool_call> 🙂\n</parameter>\n"
    first = f"<tool_call>\n<function=get_weather>\n{oslo}</function>\n</tool_call>"
    second = f"<tool_call>\n<function=get_weather>\n{rome}</function>\n</tool_call>"
    return Family(
        "qwen3-coder, qwen3.5, nemotron 3, stepfun",
        dialect,
        ("<tool_call>", "</tool_call>", "<think>", "</think>"),
        (
            Turn(f"Text.\n\n{first}\n{second}", [("text", "Text."), *BOTH]),
            Turn(
                "<tool_call>\n<function=ping>\n</function>\n</tool_call>ok",
                [call("ping", {}), ("text", "ok")],
            ),
            Turn("<tool_call>\n<function=ping>\n</function>", [call("ping", {})]),
            Turn(
                "<tool_call><function=get_weather><parameter=city>\n\n  a\n\n</parameter><parameter=note>None</parameter>"
                "<parameter=deep>{'a': [True]}</parameter></function></tool_call>",
                [call("get_weather", {"city": "\n  a\n", "note": None, "deep": {"a": [True]}})],
            ),
            Turn(
                "<tool_call><function=get_weather><parameter=city>\n3\n</parameter><parameter=n>3</parameter>"
                "<parameter=note>nullable</parameter><parameter=more>3</parameter></function></tool_call>",
                [call("get_weather", {"city": "3", "n": 3, "note": "nullable", "more": 3})],
            ),
            Turn(
                '<tool_call><function=get_weather><parameter=deep>{"a": [true, "</par',
                [("open", "get_weather", '{"deep":{"a":[true,"</par')],
            ),
            Turn(
                "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n",
                [("open", "get_weather", '{"city":"Oslo"')],
            ),
        ),
    )


def seed() -> Family:
    return Family(
        "seed-oss",
        Dialect(
            thinking=Span("<seed:think>", "</seed:think>\n"),
            calls=Calls(
                NamedBody((">\n",), TaggedArguments("<parameter=", ">", "</parameter>\n", python=True)),
                open=("<seed:tool_call>\n<function=",),
                close="</function>\n</seed:tool_call>",
                between="\n",
            ),
        ),
        ("<seed:think>", "</seed:think>", "<seed:tool_call>", "</seed:tool_call>"),
        (
            Turn(
                "<seed:think>Why?</seed:think>\nText\n\n<seed:tool_call>\n<function=get_weather>\n"
                '<parameter=city>Os"lo</parameter>\n<parameter=n>3</parameter>\n'
                "<parameter=deep>{'a': [True, None, 'x']}</parameter>\n</function>\n</seed:tool_call>\n"
                "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Röm\nü </tool_call> 🙂</parameter>\n"
                "</function>\n</seed:tool_call>",
                [("reasoning", "Why?"), ("text", "Text"), *BOTH],
            ),
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


def mistral_new() -> Family:
    return Family(
        "mistral, new",
        Dialect(
            thinking=Span("[THINK]", "[/THINK]"),
            calls=Calls(NamedBody(("[ARGS]",), JsonArguments()), open=("[TOOL_CALLS]",)),
        ),
        ("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
        (
            Turn(
                f"[THINK]Hm.[/THINK]Text[TOOL_CALLS]get_weather[ARGS]{ARGS}[TOOL_CALLS]get_weather[ARGS]{ROMAN}",
                [("reasoning", "Hm."), ("text", "Text"), *BOTH],
            ),
        ),
    )


def mistral_ids() -> Family:
    return Family(
        "mistral, with ids",
        Dialect(
            calls=Calls(
                NamedBody(("[CALL_ID]", Hole("id"), "[ARGS]"), JsonArguments()), open=("[TOOL_CALLS]",)
            )
        ),
        ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"),
        (
            Turn(
                f"[TOOL_CALLS]get_weather[CALL_ID]call00001[ARGS]{ARGS}[TOOL_CALLS]get_weather[CALL_ID]call00002[ARGS]{ROMAN}",
                BOTH,
            ),
        ),
    )


def gemma() -> Family:
    return Family(
        "gemma 4",
        Dialect(
            thinking=Span("<|channel>thought\n", "<channel|>"),
            calls=Calls(
                NamedBody((), QuotedArguments('<|"|>')), open=("<|tool_call>call:",), close="<tool_call|>"
            ),
        ),
        ("<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'),
        (
            Turn(
                '<|channel>thought\nHm\n<channel|><|tool_call>call:get_weather{city:<|"|>Os"lo<|"|>,deep:{a:[true,None,<|"|>x<|"|>]},n:3}<tool_call|>'
                '<|tool_call>call:get_weather{city:<|"|>Röm\nü </tool_call> 🙂<|"|>}<tool_call|>Text',
                [("reasoning", "Hm"), *BOTH, ("text", "Text")],
            ),
            Turn("<|tool_call>call:ping{}<tool_call|>", [call("ping", {})]),
            Turn(
                '<|tool_call>call:get_weather{"city": "a", n: 3 }',
                [call("get_weather", {"city": "a", "n": 3})],
            ),
        ),
    )


def harmony() -> Family:
    channel = "<|channel|>commentary to=functions."
    return Family(
        "gpt-oss",
        Dialect(
            thinking=Span("<|channel|>analysis<|message|>", "<|end|>"),
            text=Span("<|channel|>final<|message|>", "<|end|>"),
            calls=Calls(
                NamedBody((" <|constrain|>json<|message|>",), JsonArguments()),
                open=(channel,),
                close="<|call|>",
            ),
            also=(
                Calls(NamedBody((" json<|message|>",), JsonArguments()), open=(channel,), close="<|call|>"),
                Calls(
                    NamedBody(("<|channel|>commentary json<|message|>",), JsonArguments()),
                    open=(" to=functions.",),
                    close="<|call|>",
                ),
            ),
            skipped=("<|start|>assistant", "<|channel|>commentary<|message|>"),
        ),
        ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|call|>", "<|constrain|>"),
        (
            Turn(
                "<|channel|>analysis<|message|>Need weather to=functions.x.<|end|><|start|>assistant<|channel|>final<|message|>"
                "Text to=functions.ping<|end|>",
                [("reasoning", "Need weather to=functions.x."), ("text", "Text to=functions.ping")],
            ),
            Turn(
                "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary<|message|>First.<|end|>"
                f"<|start|>assistant{channel}get_weather <|constrain|>json<|message|>{ARGS}<|call|>"
                f"<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{ROMAN}<|call|>",
                [("reasoning", "Hm"), ("text", "First."), *BOTH],
            ),
            Turn(f"{channel}ping json<|message|>{{}}<|call|>", [call("ping", {})]),
            Turn(f"{channel}ping <|constrain|>json<|message|>{{}}", [call("ping", {})]),
            Turn("<|channel|>final<|message|>cut", [("text", "cut")]),
            Turn("no header at all", [("text", "no header at all")]),
        ),
        begun="<|start|>assistant",
    )


def deepseek_r1() -> Family:
    return Family(
        "deepseek r1",
        Dialect(
            thinking=Span("<think>\n", "\n</think>\n\n"),
            calls=Calls(
                NamedBody(("\n```json\n",), JsonArguments()),
                section=Span("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
                open=("<｜tool▁call▁begin｜>function<｜tool▁sep｜>",),
                close="\n```<｜tool▁call▁end｜>",
                between="\n",
            ),
        ),
        (
            "<think>",
            "</think>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
        ),
        (
            Turn(
                "Hm\n</think>\n\nText<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
                f"{ARGS}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{ROMAN}\n```"
                "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
                thinking=True,
            ),
        ),
    )


def deepseek_v31() -> Family:
    return Family(
        "deepseek v3.1",
        Dialect(
            thinking=Span("<think>", "</think>"),
            calls=Calls(
                NamedBody(("<｜tool▁sep｜>",), JsonArguments()),
                section=Span("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
                open=("<｜tool▁call▁begin｜>",),
                close="<｜tool▁call▁end｜>",
            ),
        ),
        (
            "<think>",
            "</think>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
        ),
        (
            Turn(
                f"Text<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{ARGS}<｜tool▁call▁end｜>"
                f"<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{ROMAN}<｜tool▁call▁end｜><｜tool▁calls▁end｜>more",
                [("text", "Text"), *BOTH, ("text", "more")],
            ),
        ),
    )


def deepseek_v32() -> Family:
    d = "｜DSML｜"
    return Family(
        "deepseek v3.2",
        Dialect(
            thinking=Span("<think>", "</think>"),
            calls=Calls(
                NamedBody(
                    ('">\n',),
                    TaggedArguments(
                        f'<{d}parameter name="',
                        '" string="',
                        f"</{d}parameter>\n",
                        kind="flag",
                        kind_close='">',
                    ),
                ),
                section=Span(f"<{d}function_calls>\n", f"</{d}function_calls>"),
                open=(f'<{d}invoke name="',),
                close=f"</{d}invoke>\n",
            ),
        ),
        ("<think>", "</think>", d),
        (
            Turn(
                f'<think>Hm</think>Text\n\n<{d}function_calls>\n<{d}invoke name="get_weather">\n'
                f'<{d}parameter name="city" string="true">Os"lo</{d}parameter>\n<{d}parameter name="n" string="false">3</{d}parameter>\n'
                f'<{d}parameter name="deep" string="false">{{"a": [true, null, "x"]}}</{d}parameter>\n</{d}invoke>\n'
                f'<{d}invoke name="get_weather">\n<{d}parameter name="city" string="true">Röm\nü </tool_call> 🙂</{d}parameter>\n'
                f"</{d}invoke>\n</{d}function_calls>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
            Turn(
                f'<{d}function_calls>\n<{d}invoke name="get_weather">\n<{d}parameter name="other" string="true">3</{d}parameter>\n'
                f'<{d}parameter name="more" string="false">3</{d}parameter>\n</{d}invoke>\n</{d}function_calls>',
                [call("get_weather", {"other": "3", "more": 3})],
            ),
        ),
    )


def glm() -> Family:
    return Family(
        "glm 4.x",
        Dialect(
            thinking=Span("<think>", "</think>\n"),
            calls=Calls(
                NamedBody(("\n",), TaggedArguments("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")),
                open=("<tool_call>",),
                close="</tool_call>",
                between="\n",
            ),
        ),
        (
            "<think>",
            "</think>",
            "<tool_call>",
            "</tool_call>",
            "<arg_key>",
            "</arg_key>",
            "<arg_value>",
            "</arg_value>",
        ),
        (
            Turn(
                '<think>Hm</think>\nText\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Os"lo</arg_value>\n'
                "<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n<arg_key>deep</arg_key>\n"
                '<arg_value>{"a": [true, null, "x"]}</arg_value>\n</tool_call>\n'
                "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Röm\nü </tool_call> 🙂</arg_value></tool_call>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
            Turn("<tool_call>ping\n</tool_call>", [call("ping", {})]),
            Turn("<tool_call>ping</tool_call>", [call("ping", {})]),
        ),
    )


def kimi_k2() -> Family:
    return Family(
        "kimi k2",
        Dialect(
            thinking=Span("<think>", "</think>"),
            calls=Calls(
                NamedBody((":", Hole("index"), "<|tool_call_argument_begin|>"), JsonArguments()),
                section=Span("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
                open=("<|tool_call_begin|>functions.",),
                close="<|tool_call_end|>",
            ),
        ),
        (
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_argument_begin|>",
            "<|tool_call_end|>",
        ),
        (
            Turn(
                "<think>Hm</think>Text<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
                f"{ARGS}<|tool_call_end|><|tool_call_begin|>functions.get_weather:1<|tool_call_argument_begin|>{ROMAN}<|tool_call_end|>"
                "<|tool_calls_section_end|>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
        ),
    )


def kimi_k3() -> Family:
    def tag(inner: str) -> str:
        return f"<|open|>{inner}<|sep|>"

    def end(inner: str) -> str:
        return f"<|close|>{inner}<|sep|>"

    return Family(
        "kimi k3",
        Dialect(
            thinking=Span(tag("think"), end("think")),
            text=Span(tag("response"), end("response")),
            calls=Calls(
                NamedBody(
                    ('" index="', Hole("index", 1), '"<|sep|>'),
                    TaggedArguments(
                        '<|open|>argument key="',
                        '" type="',
                        end("argument"),
                        kind="type",
                        kind_close='"<|sep|>',
                    ),
                ),
                section=Span(tag("tools"), end("tools")),
                open=('<|open|>call tool="',),
                close=end("call"),
            ),
            skipped=(end("message"),),
        ),
        ("<|open|>", "<|close|>", "<|sep|>"),
        (
            Turn(
                "Hm"
                + end("think")
                + tag("response")
                + "Text"
                + end("response")
                + tag("tools")
                + tag('call tool="get_weather" index="1"')
                + tag('argument key="city" type="string"')
                + 'Os"lo'
                + end("argument")
                + tag('argument key="n" type="number"')
                + "3"
                + end("argument")
                + tag('argument key="deep" type="object"')
                + '{"a": [true, null, "x"]}'
                + end("argument")
                + end("call")
                + tag('call tool="get_weather" index="2"')
                + tag('argument key="city" type="string"')
                + "Röm\nü </tool_call> 🙂"
                + end("argument")
                + end("call")
                + end("tools")
                + end("message"),
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
                thinking=True,
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


def minimax_m2() -> Family:
    return Family(
        "minimax m2",
        Dialect(
            thinking=THINK,
            calls=Calls(
                NamedBody(('">\n',), TaggedArguments('<parameter name="', '">', "</parameter>\n")),
                section=Span("<minimax:tool_call>\n", "</minimax:tool_call>"),
                open=('<invoke name="',),
                close="</invoke>\n",
            ),
        ),
        ("<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"),
        (
            Turn(
                'Hm\n</think>\n\nText\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Os"lo</parameter>\n'
                '<parameter name="n">3</parameter>\n<parameter name="deep">{"a": [true, null, "x"]}</parameter>\n</invoke>\n'
                '<invoke name="get_weather">\n<parameter name="city">Röm\nü </tool_call> 🙂</parameter>\n</invoke>\n</minimax:tool_call>',
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
                thinking=True,
            ),
        ),
    )


def minimax_m3() -> Family:
    m = "]<]minimax[>["
    return Family(
        "minimax m3",
        Dialect(
            thinking=Span("<mm:think>", "</mm:think>"),
            calls=Calls(
                NamedBody(('">',), NestedArguments(m, "item")),
                section=Span(f"{m}<tool_call>\n", f"{m}</tool_call>"),
                open=(f'{m}<invoke name="',),
                close=f"{m}</invoke>\n",
            ),
        ),
        (m, "<mm:think>", "</mm:think>"),
        (
            Turn(
                f'<mm:think>Hm</mm:think>Text{m}<tool_call>\n{m}<invoke name="get_weather">{m}<city>Os"lo{m}</city>{m}<n>3{m}</n>'
                f"{m}<deep>{m}<a>{m}<item>true{m}</item>{m}<item>null{m}</item>{m}<item>x{m}</item>{m}</a>{m}</deep>{m}</invoke>\n"
                f'{m}<invoke name="get_weather">{m}<city>Röm\nü </tool_call> 🙂{m}</city>{m}</invoke>\n{m}</tool_call>',
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
            Turn(f'{m}<tool_call>\n{m}<invoke name="ping">{m}</invoke>\n{m}</tool_call>', [call("ping", {})]),
            Turn(
                f'{m}<tool_call>{m}<invoke name="get_weather">{m}<deep>{m}</deep>{m}<x>{m}<item>1{m}</item>{m}</x>'
                f"{m}<y>{m}<z>b c{m}</z>{m}</y>{m}</invoke>",
                [call("get_weather", {"deep": {}, "x": [1], "y": {"z": "b c"}})],
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


def lfm2() -> Family:
    return Family(
        "lfm2.5",
        Dialect(
            thinking=Span("<think>", "</think>"),
            calls=Calls(
                NamedBody((), KeywordArguments()),
                section=Span("<|tool_call_start|>[", "]<|tool_call_end|>"),
                between=", ",
            ),
        ),
        ("<|tool_call_start|>", "<|tool_call_end|>"),
        (
            Turn(
                '<think>Hm</think>Text<|tool_call_start|>[get_weather(city=\'Os"lo\', n=3, deep={"a": [true, null, "x"]}), '
                "get_weather(city='Röm\\nü </tool_call> 🙂')]<|tool_call_end|>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
            Turn(
                "<|tool_call_start|>[ping(), get_weather(city=\"\\x41\\'\\u00e9\\U0001F642\\q\", n=-1_000, deep={'a': (True, None,)},)]<|tool_call_end|>",
                [
                    call("ping", {}),
                    call("get_weather", {"city": "A'é🙂\\q", "n": -1000, "deep": {"a": [True, None]}}),
                ],
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


def functionary_v31() -> Family:
    return Family(
        "functionary v3.1",
        Dialect(calls=Calls(NamedBody((">",), JsonArguments()), open=("<function=",), close="</function>")),
        (),
        (
            Turn(
                f"Text<function=get_weather>{ARGS}</function><function=get_weather>{ROMAN}</function>",
                [("text", "Text"), *BOTH],
            ),
        ),
    )


def functionary_v32() -> Family:
    return Family(
        "functionary v3.2",
        Dialect(text=Span(">>>all\n", ""), calls=Calls(NamedBody(("\n",), JsonArguments()), open=(">>>",))),
        (),
        (
            Turn(f"all\nText>>>get_weather\n{ARGS}>>>get_weather\n{ROMAN}", [("text", "Text"), *BOTH]),
            Turn(f"get_weather\n{ARGS}", [call("get_weather", OSLO)]),
            Turn("all\nJust text.", [("text", "Just text.")]),
            Turn("plain", [("text", "plain")]),
        ),
        begun=">>>",
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


def solar() -> Family:
    return Family(
        "solar open",
        Dialect(
            thinking=Span("<|think|>", "<|end|>"),
            text=Span("<|content|>", "<|end|>"),
            calls=Calls(
                NamedBody(("<|tool_call:args|>",), JsonArguments()),
                section=Span("<|tool_calls|>", "<|calls|>"),
                open=("<|tool_call:begin|>", Hole("id"), "<|tool_call:name|>"),
                close="<|tool_call:end|>",
            ),
            skipped=("<|begin|>assistant",),
        ),
        (
            "<|think|>",
            "<|end|>",
            "<|content|>",
            "<|tool_calls|>",
            "<|calls|>",
            "<|begin|>",
            "<|tool_call:begin|>",
            "<|tool_call:name|>",
            "<|tool_call:args|>",
            "<|tool_call:end|>",
        ),
        (
            Turn(
                "<|think|>Hm<|end|><|begin|>assistant<|content|>Text<|end|><|begin|>assistant<|tool_calls|><|tool_call:begin|>call00001<|tool_call:name|>get_weather"
                f"<|tool_call:args|>{ARGS}<|tool_call:end|><|tool_call:begin|>call00002<|tool_call:name|>get_weather<|tool_call:args|>{ROMAN}<|tool_call:end|>",
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
            ),
        ),
    )


def minicpm() -> Family:
    return Family(
        "minicpm 5",
        Dialect(
            thinking=THINK,
            calls=Calls(
                NamedBody(('">',), TaggedArguments('<param name="', '">', "</param>", python=True)),
                open=('<function name="',),
                close="</function>",
                between="\n",
            ),
        ),
        (),
        (
            Turn(
                'Hm\n</think>\n\nText\n<function name="get_weather"><param name="city">Os"lo</param><param name="n">3</param>'
                "<param name=\"deep\">{'a': [True, None, 'x']}</param></function>\n"
                '<function name="get_weather"><param name="city">Röm\nü </tool_call> 🙂</param></function>',
                [("reasoning", "Hm"), ("text", "Text"), *BOTH],
                thinking=True,
            ),
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


FAMILIES = tuple(
    make()
    for make in (
        hermes, spelled_hermes, coder, seed, llama, mistral, mistral_new, mistral_ids, gemma, harmony, deepseek_r1,
        deepseek_v31, deepseek_v32, glm, kimi_k2, kimi_k3, minimax_m1, minimax_m2, minimax_m3, command_r, command_r_plus,
        lfm2, nemotron, granite, functionary_v31, functionary_v32, apertus, solar, minicpm, firefunction,
    )
)  # fmt: skip

TURNS = [(family, turn) for family in FAMILIES for turn in family.turns]


def names(case: object) -> str:
    return (
        case.name
        if isinstance(case, Family)
        else json.dumps(case.written)[1:30]
        if isinstance(case, Turn)
        else "?"
    )
