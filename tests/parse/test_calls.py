"""What a call's arguments must be, how they grow, and what is told of calls that are none."""

from __future__ import annotations

import json
import sys

import pytest

from b3node.contract import strict_json
from b3node.contract.request import FunctionTool
from b3node.contract.strict_json import MAX_LEVELS
from b3node.dialects.dialect import (
    GENERIC,
    Calls,
    Dialect,
    KeywordArguments,
    NamedBody,
    NestedArguments,
    ObjectBody,
    QuotedArguments,
    Span,
    TaggedArguments,
)
from b3node.dialects.outline import Reading
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, TextDelta
from b3node.parse.parser import TextParser
from b3node.parse.reader import parser_of
from b3node.parse.source import MAX_HELD_BYTES

JSON = Reading(Dialect(calls=GENERIC), calls=True)
TAGS = Reading(
    Dialect(calls=Calls(NamedBody((">",), TaggedArguments("<p=", ">", "</p>")), open=("<f=",), close="</f>")),
    calls=True,
)
PYTHON = Reading(
    Dialect(calls=Calls(NamedBody((), KeywordArguments()), section=Span("<c>[", "]</c>"), between=", ")),
    calls=True,
)
QUOTED = Reading(Dialect(calls=Calls(NamedBody((), QuotedArguments("<q>")), open=("<c>",))), calls=True)
NESTED = Reading(
    Dialect(calls=Calls(NamedBody((">",), NestedArguments("@", "item")), open=("<f=",), close="@</f>")),
    calls=True,
)
TEXT: dict[str, object] = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "list": {"type": "array"}},
}
TOOLS = (FunctionTool("go", parameters=TEXT), FunctionTool("go_on"))


def parsed(reading: Reading, *pieces: str | bytes, judge=lambda _name, _arguments: True) -> list[Delta]:
    """The deltas, those of arguments that follow each other put together."""
    parser = parser_of(reading, TOOLS, judge)
    told = [
        delta
        for piece in pieces
        for delta in parser.feed(piece.encode() if isinstance(piece, str) else piece)
    ]
    out: list[Delta] = []
    for delta in told + parser.finish():
        last = out[-1] if out else None
        if isinstance(delta, CallArguments) and isinstance(last, CallArguments):
            out[-1] = CallArguments(last.text + delta.text)
        elif isinstance(delta, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + delta.text)
        else:
            out.append(delta)
    return out


def arguments(told: list[Delta]) -> str:
    [start, said, end] = told
    assert isinstance(start, CallStart)
    assert isinstance(said, CallArguments)
    assert isinstance(end, CallEnd)
    return said.text


def test_the_plain_dialect_is_read_as_text() -> None:
    """Nothing is looked for where nothing may be."""
    assert isinstance(parser_of(Reading(), TOOLS, lambda _name, _arguments: True), TextParser)


def test_arguments_that_are_json_come_as_the_model_writes_them() -> None:
    """White space and escapes too, each part as soon as it is there."""
    parser = parser_of(JSON, TOOLS, lambda _name, _arguments: True)
    assert parser.feed(b'<tool_call>{"name" : "go"') == [CallStart("go")]
    assert parser.feed(b', "arguments": { "te') == [CallArguments('{ "te')]
    assert parser.feed(b'xt" :\n"\\u00e9 \xc3') == [CallArguments('xt" :\n"\\u00e9 ')]
    assert parser.feed(b'\xa9" }') == [CallArguments('é" }')]
    assert parser.feed(b"}") == [CallEnd()]


def test_the_judge_is_asked_once_a_call_with_all_of_it() -> None:
    """What it refuses is never ended, and nothing behind it is read."""
    asked: list[tuple[str, str]] = []

    def judge(name: str, text: str) -> bool:
        asked.append((name, text))
        return len(asked) < 2

    call = '<tool_call>{"name": "go", "arguments": {"text":"a"}}</tool_call>'
    told = parsed(JSON, call, "b", call, call, "text", judge=judge)
    assert asked == [("go", '{"text":"a"}')] * 2
    one = [CallStart("go"), CallArguments('{"text":"a"}')]
    assert told == [*one, CallEnd(), TextDelta("b"), *one]


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "go", "arguments": {"text": }}',
        '{"name": "go", "arguments": [1]}',
        '{"name": "go", "arguments": 3}',
        '{"name": "go", "arguments": "no json"}',
        '{"name": "go", "arguments": {"text": "a"',
        '{"name": "go", "arguments": ' + '{"a":' * 65 + "1" + "}" * 66,
        '{"name": "go", ]',
        '{"name": "go"',
    ],
)
def test_a_call_without_whole_arguments_stays_open(written: str) -> None:
    """Nothing that follows is read, and no error comes of it."""
    told = parsed(JSON, "<tool_call>" + written, "</tool_call> more")
    assert told[0] == CallStart("go")
    assert all(isinstance(delta, CallArguments) for delta in told[1:])


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"name": "go", "arguments": {"text": "a\nb\t\\\\"}}', '{"text": "a\\nb\\t\\\\"}'),
        ('{"name": "go", "parameters": {}}', "{}"),
        ('{"id": [{"x": "}"}], "name": "g\\u006f", "arguments": {"a": 1}, "z": null}', '{"a": 1}'),
        ('{"arguments": {"a": "</tool_call>"}, "id": 7, "name": "go"}', '{"a": "</tool_call>"}'),
        ('{"arguments": "", "name": "go"}', "{}"),
        ('{"name": "go", "arguments": ' + '{"a":' * 63 + "{}" + "}" * 64, '{"a":' * 63 + "{}" + "}" * 63),
        ('{"name": "go"}', "{}"),
        ("{}", None),
        ('{"name": "gone"}', None),
        ('{"name": ["go"]}', None),
        ('{"arguments": {}}', None),
        ('{"name" "go"}', None),
        ('["name"]', None),
    ],
)
def test_an_object_is_a_call_if_it_names_a_function(written: str, text: str | None) -> None:
    """In any order of its members; or else it is text, all of it."""
    whole = f"<tool_call>{written}</tool_call>"
    told = parsed(JSON, whole)
    if text is None:
        assert told == [TextDelta(whole)]
    else:
        assert arguments(told) == text


def test_what_is_held_back_of_a_call_is_bounded() -> None:
    """Arguments before the name that do not end are text in the end, wherever they are cut."""
    whole = (
        '<tool_call>{"arguments": {"text": "' + "x" * (MAX_HELD_BYTES + 9) + '"}, "name": "go"}</tool_call>'
    )
    assert parsed(JSON, whole) == [TextDelta(whole)]
    assert parsed(JSON, whole[:99], whole[99 : MAX_HELD_BYTES + 20], whole[MAX_HELD_BYTES + 20 :]) == [
        TextDelta(whole)
    ]
    name = '<tool_call>{"' + "n" * 300 + '": 1, "name": "go"}'
    assert parsed(JSON, name) == [TextDelta(name)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<p=text>3</p>", {"text": "3"}),
        (
            "<p=text>a\n\"b\" \\ </q> <p\t</p>\n<p=list>[1, 'a', None]</p>",
            {"text": 'a\n"b" \\ </q> <p\t', "list": [1, "a", None]},
        ),
        ("<p=x>3</p><p=y>3.5e1</p><p=z>True</p>", {"x": 3, "y": 35.0, "z": True}),
        ("<p=x>null</p><p=y> None </p><p=z>nul</p>", {"x": None, "y": None, "z": "nul"}),
        ('<p=x>{"a": [1]}</p><p=y>[1</p><p=z>-</p>', {"x": {"a": [1]}, "y": "[1", "z": "-"}),
        ('<p=x></p><p=y> a </p><p=z>"q"</p>', {"x": "", "y": " a ", "z": '"q"'}),
        (r"<p=x>['\ud83d\ude42']</p><p=y>['\ud83d']</p>", {"x": ["🙂"], "y": r"['\ud83d']"}),
        (
            "<p=x>3 apples</p><p=y>1.2.3</p><p=z>{'a': (1,)}</p>",
            {"x": "3 apples", "y": "1.2.3", "z": {"a": [1]}},
        ),
        ("", {}),
    ],
)
def test_values_between_tags_are_of_the_kind_that_their_schema_says(written: str, expected: object) -> None:
    """Where it says nothing, what reads as a literal is one, and everything else is a string."""
    assert json.loads(arguments(parsed(TAGS, f"<f=go>{written}</f>"))) == expected
    assert json.loads(arguments(parsed(TAGS, *f"<f=go>{written}</f>"))) == expected


@pytest.mark.parametrize(
    ("reading", "written", "opening", "closing"),
    [
        (JSON, '<tool_call>{"name": "go", "arguments": {"list": $}}</tool_call>', "[", "]"),
        (TAGS, "<f=go><p=list>$</p></f>", "[", "]"),
        (PYTHON, "<c>[go(list=$)]</c>", "[", "]"),
        (QUOTED, "<c>go{list:$}", "[", "]"),
        (NESTED, "<f=go>@<list>$@</list>@</f>", "@<item>", "@</item>"),
    ],
    ids=["json", "tagged", "keyword", "quoted", "nested"],
)
def test_arguments_nest_as_deep_as_a_request(
    reading: Reading, written: str, opening: str, closing: str
) -> None:
    """In every style a call has all the levels that a client may send back, and not one more."""
    lists = MAX_LEVELS - 1
    deep, deeper = (opening * count + "1" + closing * count for count in (lists, lists + 1))

    read = arguments(parsed(reading, written.replace("$", deep)))
    assert strict_json.loads(read.encode()) == {"list": json.loads("[" * lists + "1" + "]" * lists)}
    assert CallEnd() not in parsed(reading, written.replace("$", deeper))


def test_strings_between_tags_stream() -> None:
    """From the first byte where nothing but a string may stand, else from the one that makes it a string."""
    parser = parser_of(TAGS, TOOLS, lambda _name, _arguments: True)
    assert parser.feed(b"<f=go><p=text>1") == [CallStart("go"), CallArguments('{"text":"1')]
    assert parser.feed(b'2"</') == [CallArguments('2\\"')]
    assert parser.feed(b"p><p=other>tru") == [CallArguments('","other":')]
    assert parser.feed(b"st") == [CallArguments('"trust')]
    assert parser.feed(b"</p><p=list>[1, {") == [CallArguments('","list":[1,')]
    assert parser.feed(b"}]</p></f>") == [CallArguments("{}]}"), CallEnd()]


@pytest.mark.parametrize(
    "written",
    [
        "<p=text>a</p>",
        "<p=text>a",
        "<p=list>a</p></f>",
        "<p=list>" + "[" * 64 + "]" * 64 + "</p></f>",
        "oops</f>",
        "<p=list>[1] 2</p></f>",
    ],
)
def test_a_call_between_tags_that_does_not_end_stays_open(written: str) -> None:
    """Whether all arguments are there is known from its closing tag alone."""
    told = parsed(
        TAGS, f"<f=go>{written}", judge=lambda _name, text: not isinstance(json.loads(text).get("list"), str)
    )
    assert told[0] == CallStart("go")
    assert CallEnd() not in told


def test_the_end_of_a_value_that_was_held_back_costs_as_much_as_its_middle() -> None:
    """All of it was read by then: no other answer waits for it. Counted are calls of functions."""
    parser = parser_of(TAGS, TOOLS, lambda _name, _arguments: True)
    written = b"<f=go><p=x>[" + b"1," * (MAX_HELD_BYTES // 2 - 9) + b"1]"
    steps: list[int] = []

    def count(_frame: object, event: str, _argument: object) -> None:
        steps[-1] += event == "call"

    for piece in (*(written[at : at + 64] for at in range(0, len(written), 64)), b"</p>"):
        steps.append(0)
        sys.setprofile(count)
        parser.feed(piece)
        sys.setprofile(None)

    assert steps[-1] < steps[len(steps) // 2]


def test_a_value_that_may_be_a_string_or_not_is_held_back_within_bounds() -> None:
    """Past them it is a string."""
    text = "[" + "1," * MAX_HELD_BYTES
    assert json.loads(arguments(parsed(TAGS, f"<f=go><p=x>{text}</p></f>"))) == {"x": text}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("go()", {}),
        ("go(text='a', )", {"text": "a"}),
        ('go(a="\\n\\t\\x41\\u00e9\\ud83d\\ude42\\\'\\"\\d", b=\'é"\')', {"a": "\n\tAé🙂'\"\\d", "b": 'é"'}),
        (
            "go(a=-1, b=+2, c=.5, d=1_0, e=1e3, f=7)",
            {"a": -1, "b": 2, "c": 0.5, "d": 10, "e": 1000.0, "f": 7},
        ),
        (
            "go(a=[], b={}, c=(), d=[{'k': (1, 2)},], e={1: 'x', 'y': None})",
            {"a": [], "b": {}, "c": [], "d": [{"k": [1, 2]}], "e": {"1": "x", "y": None}},
        ),
        ("go(a=True, b=false)", {"a": True, "b": False}),
    ],
)
def test_a_call_in_python_is_read(written: str, expected: object) -> None:
    """Its literals become JSON as they grow."""
    assert json.loads(arguments(parsed(PYTHON, f"<c>[{written}]</c>"))) == expected
    assert json.loads(arguments(parsed(PYTHON, *f"<c>[{written}]</c>"))) == expected


@pytest.mark.parametrize(
    "written",
    ["go(a)", "go(a=b)", "go(a=1 b=2)", "go('a')", "go(a=[1)", "go(a='\\xZZ')", "go(a=1e999)", "go(a=nan)"],
)
def test_what_is_no_literal_leaves_the_call_open(written: str) -> None:
    """No error comes of it."""
    told = parsed(PYTHON, f"<c>[{written}]</c> more")
    assert told[0] == CallStart("go")
    assert CallEnd() not in told


def test_text_between_quotes_of_the_dialect_is_taken_as_it_is() -> None:
    """No escape means anything there; names may be quoted or not."""
    told = parsed(QUOTED, '<c>go{a:<q>b\\n"c</q> {}<q>,<q>d e<q>:[<q><q>,{f:None}],g:"\\n"}')
    assert json.loads(arguments(told)) == {"a": 'b\\n"c</q> {}', "d e": ["", {"f": None}], "g": "\n"}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("@<text>1@</text>", {"text": "1"}),
        ("@<list>@<item>1@</item>@<item>a@</item>@</list>", {"list": [1, "a"]}),
        ("@<list>@</list>@<x>@</x>@<text>@</text>", {"list": [], "x": None, "text": ""}),
        ("@<x> \n@<y>@<z>null@</z> @</y>\n@</x>", {"x": {"y": {"z": None}}}),
        ("@<x>@<item>1@</item>@</x>", {"x": [1]}),
    ],
)
def test_elements_nest(written: str, expected: object) -> None:
    """An element of items is an array, one of other elements an object."""
    assert json.loads(arguments(parsed(NESTED, f"<f=go>{written}@</f>"))) == expected
    assert json.loads(arguments(parsed(NESTED, *f"<f=go>{written}@</f>"))) == expected


@pytest.mark.parametrize(
    "written",
    ["@<x>1@</y>", "@<x>a@<y>b@</y>@</x>", "@<list>@<item>1@</item>@<y>2@</y>@</list>", "@<x>" * 70, "@<x>1"],
)
def test_elements_that_do_not_fit_leave_the_call_open(written: str) -> None:
    """No error comes of it."""
    told = parsed(NESTED, f"<f=go>{written}@</f>")
    assert told[0] == CallStart("go")
    assert CallEnd() not in told


def test_the_longest_name_counts() -> None:
    """One function's name may begin another's."""
    assert parsed(TAGS, "<f=go_on></f>")[0] == CallStart("go_on")
    assert parsed(TAGS, "<f=go></f>")[0] == CallStart("go")
    assert parsed(TAGS, "<f=go_></f>") == [TextDelta("<f=go_></f>")]


def test_a_broken_character_in_arguments_is_replaced() -> None:
    """As in text."""
    told = parsed(JSON, b'<tool_call>{"name": "go", "arguments": {"text": "a\xc3"}}')
    assert arguments(told) == '{"text": "a\ufffd"}'
    told = parsed(TAGS, b"<f=go><p=text>\xe2\x82</p></f>")
    assert arguments(told) == '{"text":"\ufffd"}'


def test_an_answer_that_ends_where_a_call_might_begin_is_text_unless_a_token_said_call() -> None:
    """What was spelled out is not lost; a call that a token began is no text."""
    assert parsed(JSON, 'a <tool_call>\n{"na') == [TextDelta('a <tool_call>\n{"na')]
    special = Reading(JSON.dialect, calls=True, specials=("<tool_call>", "</tool_call>"))
    assert parsed(special, b'a \xff<tool_call>\n{"na') == [TextDelta("a")]
    assert parsed(special, b'\xff<tool_call>{"name": "go", "arguments": {"text": "\xff</tool_call>"}}')[
        1
    ] == CallArguments('{"text": "</tool_call>"}')


def test_a_second_call_of_an_unknown_function_is_text() -> None:
    """The first one stays a call, and the answer goes on."""
    reading = Reading(
        Dialect(calls=Calls(ObjectBody(), section=Span("<c>[", "]</c>"), between=", ")), calls=True
    )
    told = parsed(reading, '<c>[{"name": "go"}, {"name": "stop"}]</c>')
    assert told == [CallStart("go"), CallArguments("{}"), CallEnd(), TextDelta(', {"name": "stop"}]</c>')]
    assert parsed(reading, '<c>[{"name": "go"}, {"na') == told[:3]
