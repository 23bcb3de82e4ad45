"""Families that write arguments as code, in quotes of their own, or as nested elements."""

from __future__ import annotations

from b3node.dialects.dialect import (
    Calls,
    Dialect,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    QuotedArguments,
    Span,
)
from tests.parse.families.family import BOTH, Family, Turn, call


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


VALUES = tuple(make() for make in (gemma, minimax_m3, lfm2))
