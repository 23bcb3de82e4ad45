# ruff: noqa: RUF001 - families write these characters
"""Families that write a marker around each argument."""

from __future__ import annotations

from b3node.dialects.dialect import Calls, Dialect, Hole, NamedBody, Span, TaggedArguments
from tests.parse.families.family import BOTH, THINK, Family, Turn, call


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


TAGGED = tuple(make() for make in (coder, seed, deepseek_v32, glm, kimi_k3, minimax_m2, minicpm))
