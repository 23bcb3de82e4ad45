"""Guides on real models and with llama.cpp's grammars: what the front hears is what the outline says."""

from __future__ import annotations

import json
import re
from array import array
from functools import partial

import msgspec
import pytest

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.dialects.dialect import Calls, Dialect, ObjectBody, Span
from b3node.dialects.outline import MARK, Outline, Reading, Thinking
from b3node.engine.guidance.jump_forward import JumpForward
from b3node.engine.messages import Sampling, Submit
from b3node.grammar import calls_gbnf, judge
from b3node.llama.grammar import Grammars
from b3node.parse.channels import Channels
from b3node.parse.deltas import CallArguments, CallEnd, CallStart
from b3node.parse.reader import parser_of
from b3node.prompt.probe.families import FAMILIES
from b3node.workers.engine_process import _token_table
from tests.engine.real import Engine, submit
from tests.llama.loaded import loaded
from tests.zoo.script import S
from tests.zoo.vocabulary import END_THINK, END_TOOL_CALL, IM_START, THINK, TOOL_CALL

DIALECT = Dialect(
    thinking=Span("<think>", "</think>"),
    calls=Calls(ObjectBody(), open=("<tool_call>\n",), close="\n</tool_call>"),
)
SPECIALS = ("<think>", "</think>", "<tool_call>", "</tool_call>")
READING = Reading(DIALECT, calls=True, specials=SPECIALS)
OUTLINE = Outline(
    READING,
    triggered=True,
    thinking=Thinking(6, array("i", [10, END_THINK]).tobytes()),
    specials=(THINK, END_THINK, TOOL_CALL, END_TOOL_CALL),
)
GRAMMAR = f'root ::= "\\n"? "{{\\"a\\":" [0-9]{{1,3}} "}}" "\\n"? <[{END_TOOL_CALL}]>\n'
CALL = rb'\n?\{"a":[0-9]{1,3}\}\n?\xff</tool_call>'


def engine_of(model) -> Engine:
    engine = Engine(model)
    engine.loop._constrain = Grammars(model.vocabulary).constrain
    engine.loop._token_table = token_table = _token_table(model.vocabulary)
    engine.loop._jump_forward = JumpForward(partial(model.vocabulary.tokenize, continues=True), token_table)
    return engine


def guided(request: int, outline: Outline = OUTLINE, grammar: str | None = GRAMMAR, **options) -> Submit:
    return msgspec.structs.replace(submit(request, [65], **options), outline=outline, grammar=grammar)


@pytest.mark.parametrize("strict", [True, False])
def test_a_thought_a_text_and_a_call(zoo, strict) -> None:
    """The dialect's tokens arrive with their mark, others do not; behind the marker the grammar has its
    way.
    """
    script = [S("<think>"), b"hmm", S("</think>"), b"Look: ", S("<tool_call>"), b'\n{"a":', b"no"]
    with loaded(zoo.scripted(script, strict=strict)) as model:
        engine = engine_of(model)
        engine.serve(guided(1, max_tokens=40))
        said = b"".join(engine.pieces[1])

    assert said.startswith(b"\xff<think>hmm\xff</think>Look: \xff<tool_call>\n" + b'{"a":')
    assert re.fullmatch(CALL, said.partition(b"\xff<tool_call>")[2])
    assert engine.finished[1].reason == "stop"


def test_a_thought_without_an_end_is_closed(zoo) -> None:
    """A model that would think for ever is made to stop, and its answer comes."""
    routes = {"</think>": [b"42"]}
    path = zoo.scripted([S("<think>"), b"so ", b"and ", b"so "], end=1, routes=routes, strict=True)
    with loaded(path) as model:
        engine = engine_of(model)
        engine.serve(guided(1, msgspec.structs.replace(OUTLINE, triggered=False), None, max_tokens=40))

    assert b"".join(engine.pieces[1]) == b"\xff<think>" + b"so and so so and so " + b"\n\xff</think>42"
    assert engine.finished[1].reason == "stop"


def test_control_tokens_are_never_said(zoo) -> None:
    """Whatever the model wants."""
    with loaded(zoo.free_choice({"<|im_start|>": 90, "x": 5, "<tool_call>": 90}, strict=True)) as model:
        engine = engine_of(model)
        plain = Outline(Reading(Dialect()))
        asked = [guided(n, plain, None, max_tokens=20, sampling=Sampling(1.0, 0.95, n)) for n in range(20)]
        engine.serve(*asked)
    said = [token for tokens in engine.said.values() for token in tokens]

    assert len(said) > 40
    assert not {IM_START, TOOL_CALL} & set(said)
    assert b"<" not in b"".join(piece for pieces in engine.pieces.values() for piece in pieces)


@pytest.mark.parametrize("top_p", [1.0, 0.9])
def test_every_call_is_one_of_the_grammar(zoo, top_p) -> None:
    """Random text with thoughts and calls in it, many at once: behind each call's marker stands what was
    declared.
    """
    favoured = {"<think>": 66.0, "</think>": 66.0, "<tool_call>": 65.0, "a": 4.0, "\n": 3.0}
    with loaded(zoo.free_choice(favoured, strict=True)) as model:
        engine = engine_of(model)
        engine.serve(
            *(guided(seed, max_tokens=60, sampling=Sampling(1.0, top_p, seed)) for seed in range(1, 41))
        )
    called = 0
    for request, pieces in engine.pieces.items():
        scanner = Channels(READING)
        calls = b"".join(
            data for piece in pieces for channel, data in scanner.feed(piece) if channel == "call"
        )
        if scanner.place == "call" and engine.finished[request].reason == "stop":
            assert re.fullmatch(CALL, calls)
            called += 1
        assert MARK + b"<|" not in b"".join(pieces)
        assert engine.finished[request].reason in {"stop", "length"}
    assert called > 5


def test_what_a_call_must_say_is_written_in_a_step(zoo) -> None:
    """Behind the marker that the model chose to write, the only function's name and member cost no draws of
    their own.
    """
    body = '"{\\"name\\": \\"get_weather_forecast\\", \\"arguments\\": {\\"days_ahead\\": " [0-9] "}}" "\n"'
    grammar = f'root ::= "\\n" {body} <[{END_TOOL_CALL}]>\n'
    with loaded(zoo.scripted([b"Look: ", S("<tool_call>")], strict=True)) as model:
        engine = engine_of(model)
        engine.serve(guided(1, grammar=grammar, max_tokens=200))
        said = b"".join(engine.pieces[1])

    call = said.removeprefix(b"Look: \xff<tool_call>\n").removesuffix(b"\n\xff</tool_call>")
    assert json.loads(call)["name"] == "get_weather_forecast"
    assert engine.finished[1].reason == "stop"
    assert engine.steps < len(engine.said[1]) / 4


WEATHER = FunctionTool(
    "weather",
    parameters={
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
OSLO = [b'{"city": "Os', b'lo"}']
WRONG = [b'{"city": "Ostend"}']
TURNS = {
    "gpt-oss": [
        ([b"<|channel|>commentary to=functions", b".weather", b" <|constrain|>json<|message|>"], [b"<|call|>"]),
        ([b"<|channel|>analysis to=", b"functions.weather", b" <|constrain|>json<|message|>"], [b"<|call|>"]),
        ([b"<|start|>assistant to=functions.", b"weather", b"<|channel|>commentary json<|message|>"], [b"<|call|>"]),
    ],
    "llama": [
        ([b'{"name": "', b"weather", b'", "parameters": '], [b"}"]),
        ([b'{ "name":', b'"wea', b'ther", "parameters": '], [b"}"]),
        ([b'{"type": "function",', b' "name": "', b'weather", "parameters": '], [b"}"]),
        ([b"<|python_tag|>", b'{"name": "', b'weather", "parameters": '], [b"}"]),
    ],
}  # fmt: skip
DIALECTS = {
    name: next(family.dialect for family in FAMILIES if marker in family.signs)
    for name, marker in (("gpt-oss", "<|call|>"), ("llama", "<|python_tag|>"))
}
DIALECTS["llama"] = msgspec.structs.replace(
    DIALECTS["llama"], calls=Calls(ObjectBody(arguments="parameters"), bare=True, alone=True)
)


@pytest.mark.parametrize(
    ("name", "turn"), [(name, turn) for name, turns in TURNS.items() for turn in range(len(turns))]
)
@pytest.mark.parametrize("arguments", [OSLO, WRONG], ids=["right", "wrong"])
def test_a_call_in_any_spelling_of_a_family_is_one_that_was_declared(zoo, name, turn, arguments) -> None:
    """Whatever spelling the model begins, and whatever arguments it wants to write: they match the schema."""
    before, behind = TURNS[name][turn]
    reading = Reading(DIALECTS[name], calls=True)
    found = calls_gbnf(reading.dialect, [WEATHER], ToolChoice("auto"))
    with loaded(zoo.scripted([*before, *arguments, *behind])) as model:
        engine = engine_of(model)
        engine.serve(guided(1, Outline(reading, triggered=True), found.grammar, max_tokens=80))
    parser = parser_of(reading, [WEATHER], judge([WEATHER]))
    told = [*parser.feed(b"".join(engine.pieces[1])), *parser.finish()]

    assert engine.finished[1].reason == "stop"
    assert isinstance(told[0], CallStart)
    assert isinstance(told[-1], CallEnd)
    said = json.loads("".join(delta.text for delta in told if isinstance(delta, CallArguments)))
    assert said["city"] in {"Oslo", "Rome"} if arguments is WRONG else said == {"city": "Oslo"}
