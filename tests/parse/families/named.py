# ruff: noqa: RUF001 - families write these characters
"""Families that write JSON arguments behind the name of a function."""

from __future__ import annotations

from b3node.dialects.dialect import Calls, Dialect, Hole, JsonArguments, NamedBody, Span
from tests.parse.families.family import ARGS, BOTH, OSLO, ROMAN, Family, Turn, call


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


NAMED = tuple(
    make()
    for make in (
        mistral_new,
        mistral_ids,
        harmony,
        deepseek_r1,
        deepseek_v31,
        kimi_k2,
        functionary_v31,
        functionary_v32,
        solar,
    )
)
