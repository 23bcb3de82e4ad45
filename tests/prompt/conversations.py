"""A corpus of conversations: the oddities of histories, arguments, texts and tools that agents really
send.

`CONVERSATIONS` are the same for all templates; `quoting` makes one that quotes a template's own markers.
"""

from __future__ import annotations

import json
from typing import Any, Final

from b3node.contract.request import (
    FunctionCallOutput,
    FunctionTool,
    ImagePart,
    Message,
    Reasoning,
    RefusalPart,
    Request,
    TextPart,
)
from tests.prompt.histories import (
    HISTORIES,
    TOOLS,
    assistant,
    call,
    developer,
    output,
    request,
    system,
    user,
)

# ruff: noqa: RUF001 - texts in many scripts are the point
SCRIPTS: Final = {
    "cjk": "请把会议改到下午三点。漢字かな交じり文、한국어 문장도。",
    "rtl": "שלום \u202bעולם\u202c، مرحبا بالعالم \u200f\u061c",
    "combining": "Ἀ\u0313\u0301 e\u0301\u0323 n\u0303 क्\u200dषि \u0e01\u0e33",
    "astral": "👩🏽\u200d🚀 𝔘𝔫𝔦 🇳🇴 𠜎 \U0001f9ff",
    "invisible": "a\u200bb\u00adc\u2028d\u2029e\ufefff\u0085g\x1ch\x7f",
    "private": "\ue000 \uf8ff \U00100041 \ufffe \uffff \ufffd",
    "quotes": '"\'`\\"\\n \\u0041 \'\'\'""" %s {0} {{ x }} {% raw %} {# c #} $& &amp; &lt;b&gt;',
    "breaks": "\n\n a\r\n\tb \n\n\n",
}
"""Texts in which something may break: scripts, directions, marks, planes, escapes, white space."""

VALUES: Final[dict[str, Any]] = {
    "nested": {"a": {"b": [{"c": []}, [[1], [2, [3]]], {}]}, "d": {"e": {"f": "g"}}},
    "numbers": {"i": 0, "n": -7, "f": 2.5, "e": 1e-07, "big": 2**60, "l": [1, 2.0, -0.5]},
    "literals": {"t": True, "f": False, "l": [True, False]},
    "like_json": {"s": "true", "n": "17", "l": "[1]", "o": '{"a": 1}', "z": "null", "e": ""},
    "tags": {"x": "</parameter>\n</function>", "y": "a < b & c > d", "z": "<![CDATA[x]]>", "k": "]]>"},
    "lines": {"code": "def f():\n\treturn '\\\\n'\n", "crlf": "a\r\nb", "space": "  two  "},
    "scripts": SCRIPTS,
    "odd_names": {"": 1, "a b": 2, "é": 3, "<x>": 4, "a.b-c": 5, "items": 6, "keys": 7, "type": 8, 'q"': 9},
    "in_lists": {"l": list(SCRIPTS.values()), "d": [{name: text} for name, text in SCRIPTS.items()]},
}
"""Arguments, none of which has a null."""

TEXTS: Final = {
    "nothing": "",
    "space": " \n ",
    "word": "Oslo",
    "list": '["Oslo", 3]',
    "number": "3",
    "null": "null",
    "string": '"{}"',
    "cut": '{"city": "Os',
    "python": "{'city': 'Oslo'}",
    "twice": '{"a": 1}{"b": 2}',
    "surrogate": '{"s": "\\ud83d\\ude00 \\u00e9 \\/"}',
    "deep": '{"a":' * 70 + "1" + "}" * 70,
}
"""Arguments as clients send them that are no object, or none that a template can be given."""

PLAIN_TOOL: Final = FunctionTool(
    "look_up",
    "Looks a thing up.",
    {
        "type": "object",
        "properties": {"what": {"type": "string", "description": "The thing"}},
        "required": ["what"],
    },
)
RICH_TOOL: Final = FunctionTool(
    "plan_trip",
    "Plans a trip.\nReturns legs & prices < 100 €.",
    {
        "type": "object",
        "properties": {
            "legs": {
                "type": "array",
                "description": "In order.",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"to": {"type": "string"}, "nights": {"type": "integer", "minimum": 0}},
                    "required": ["to"],
                },
            },
            "class": {"type": "string", "enum": ["first", "second"], "default": "second"},
            "pets": {"type": "boolean"},
            "budget": {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^\\d+ (EUR|NOK)$"}]},
            "notes": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["legs"],
        "additionalProperties": False,
    },
)
SCRIPTED_TOOL: Final = FunctionTool(
    "weather",
    SCRIPTS["cjk"] + SCRIPTS["rtl"] + SCRIPTS["astral"],
    {
        "type": "object",
        "properties": {text: {"type": "string", "description": text} for text in SCRIPTS.values()},
    },
)
PLAIN_TOOLS: Final = (
    PLAIN_TOOL,
    RICH_TOOL,
    FunctionTool("ping", "", {"type": "object"}),
    FunctionTool("stop"),
)

LISTING_TOOL: Final = FunctionTool(
    "list_all",
    "Its types are lists, which some templates never come back from.",
    {
        "type": "object",
        "properties": {"most": {"type": ["integer", "null"]}, "of": {"type": ["string", "array"]}},
    },
)

PICTURE: Final = ImagePart("https://x/y.png")


def rounds(count: int, *, thinking: bool = True, texts: bool = True) -> list[Any]:
    """That many rounds of a call with its output, each begun with reasoning and a text."""
    items: list[Any] = []
    for n in range(count):
        items += [Reasoning(f"thought {n}")] * thinking + [assistant(f"text {n}")] * texts
        items += [call(f"c{n}", "look_up", f'{{"what": "thing {n}"}}'), output(f"c{n}", f"result {n}")]
    return items


def _asked(*items: Any, **fields: Any) -> Request:
    return request(*items, **{"tools": PLAIN_TOOLS, **fields})


def _called(arguments: str, *results: str) -> Request:
    return _asked(user("Go"), call("a", "look_up", arguments), output("a", *results), user("And?"))


CONVERSATIONS: Final[dict[str, Request]] = {
    **HISTORIES,
    "empty_texts": _asked(
        system(""), user(""), assistant("", ""), developer(), call("a"), output("a", ""), assistant(), user("", "")
    ),
    "blank_texts": _asked(user(" "), assistant("\n"), call("a"), output("a", " \n"), user("\t"), instructions=" \n"),
    "developer_last": _asked(user("Hi"), assistant("Yes?"), developer("Be terse.")),
    "system_in_a_round": _asked(user("Hi"), call("a"), system("Hurry."), output("a", "12C"), developer("Now.")),
    "refused": request(user("Hi"), Message("assistant", (TextPart("Well."), RefusalPart("I cannot."))), user("Why?")),
    "thought_alone": _asked(user("Hi"), Reasoning("Hm."), effort="low"),
    "thought_and_answer": _asked(user("Hi"), Reasoning("Hm."), assistant("Yes."), user("So?"), effort="high"),
    "thought_and_answer_last": _asked(user("Hi"), Reasoning("Hm."), assistant("Yes."), effort="high"),
    "empty_thoughts": _asked(user("Hi"), Reasoning(""), Reasoning(" "), assistant("Yes."), Reasoning("")),
    "thoughts_in_scripts": _asked(user("Hi"), Reasoning("\n".join(SCRIPTS.values())), call("a"), output("a", "x")),
    "running_loop": _asked(user("Hi"), *rounds(3), effort="medium"),
    "running_loop_unthinking": _asked(user("Hi"), *rounds(3, thinking=False)),
    "silent_loop": _asked(user("Hi"), *rounds(2, texts=False), effort="low"),
    "bare_loop": _asked(user("Hi"), *rounds(2, thinking=False, texts=False)),
    "ended_loops": _asked(
        user("Hi"), *rounds(2), Reasoning("End."), assistant("Done."), user("More"), *rounds(1), assistant("Again."),
        user("Thanks"), instructions="I", effort="high",
    ),
    "loop_after_loop": _asked(user("Hi"), *rounds(1), assistant("Done."), user("More"), *rounds(2), effort="high"),
    "three_at_once": _asked(
        user("Hi"), assistant("All three."), call("a"), call("b", "ping", "{}"), call("c"), output("c", "3"),
        output("a", "1"), output("b", "2"),
    ),
    "some_unanswered": _asked(user("Hi"), call("a"), call("b"), call("c"), output("b", "2"), user("Go on")),
    "unanswered_in_scripts": _asked(user("Hi"), call("a", arguments=json.dumps(SCRIPTS)), assistant("No?")),
    "repeated_ids": _asked(user("Hi"), call("x"), output("x", "1"), call("x"), output("x", "2"), call("x")),
    "image": request(user("See"), Message("user", (TextPart("this:"), PICTURE, TextPart("and"), PICTURE))),
    "image_alone": request(Message("user", (PICTURE,)), assistant("A cat."), user("Sure?"), instructions="I"),
    "image_in_output": _asked(
        user("Hi"), call("a"), FunctionCallOutput("a", (TextPart("shot:"), PICTURE)), user("What is it?")
    ),
    "long": request(*(turn for n in range(12) for turn in (user(f"Question {n}"), assistant(f"Answer {n}"))), user("?")),
    "long_text": request(user("".join(SCRIPTS.values()) * 20), instructions="line\n" * 50),
    "scripts": _asked(
        *(item for text in SCRIPTS.values() for item in (user(text), assistant(text))), user("?"), instructions=SCRIPTS["rtl"]
    ),
    "scripted_results": _asked(user("Hi"), call("a", "weather", json.dumps(SCRIPTS)), output("a", *SCRIPTS.values())),
    "scripted_tool": _asked(user("Hi"), tools=(SCRIPTED_TOOL,), instructions=SCRIPTS["combining"]),
    "rich_tools": _asked(user("Hi"), call("p", "plan_trip", json.dumps({"legs": [{"to": "Bodø"}], "pets": False}))),
    "odd_tools": _asked(user("Hi"), tools=TOOLS),
    "listing_tool": _asked(user("Hi"), call("a"), output("a", "x"), tools=(LISTING_TOOL,)),
    **{f"arguments_{name}": _called(json.dumps(value), "ok") for name, value in VALUES.items()},
    **{f"text_{name}": _called(text, "ok") for name, text in TEXTS.items()},
}  # fmt: skip
"""Requests by their oddity; all are valid."""


def quoting(markers: tuple[str, ...]) -> Request:
    """A conversation that spells markers wherever a client's text can stand: whole, in a row, and in
    halves.
    """
    row = "".join(markers)
    halves = [half for text in markers for half in (text[: len(text) // 2], text[len(text) // 2 :])]
    properties = {text: {"type": "string", "description": text, "enum": [text]} for text in markers[:40]}
    tool = FunctionTool("look_up", row, {"type": "object", "properties": properties, "title": row})
    return request(
        system(row),
        user(*markers, row),
        Reasoning(row),
        assistant(*halves),
        call("a", "look_up", json.dumps({text: [text, {text: row}] for text in markers[:40]})),
        call("b", "look_up", row),
        output("a", row),
        output("b", *halves),
        developer(*halves),
        user(row),
        Reasoning(" ".join(markers)),
        call("c", "look_up", json.dumps({"what": row})),
        output("c", *markers),
        instructions=row,
        tools=(tool,),
        effort="low",
    )
