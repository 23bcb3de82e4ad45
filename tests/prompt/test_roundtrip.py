"""A template's output for a turn, read back: the same thinking, text and calls, for all cuts."""

from __future__ import annotations

import json
import random
from functools import cache
from itertools import pairwise

import pytest

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import Calls
from b3node.dialects.outline import Reading
from b3node.parse.deltas import (
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    ReasoningDelta,
    TextDelta,
    merged,
)
from b3node.parse.markers import marked
from b3node.parse.reader import parser_of
from b3node.prompt.ending import end_prompt
from b3node.prompt.outline import literals
from b3node.prompt.probe.literals import common_head, markers
from b3node.prompt.probe.samples import ANSWER, KEY, NAME, THINKING, VALUE, Samples
from b3node.prompt.template.call_writer import write_calls
from b3node.prompt.template.conversation import ToolCall
from tests.prompt.corpus import ALL, compiled, learned

ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<|end_of_msg|>", "<|end_of_text|>", "<turn|>", "<|eot|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|END_OF_TURN_TOKEN|>", "<|message_sep|>\n\nassistant", "<|message_sep|>\n\nuser",
    "<|call|>", "<|calls|>", "<seed:eos>", "[e~[", "<|assistant|>", "<sep>", "<end_of_sentence>", "<|assistant_start|>",
    "\n</assistant>", "</assistant>", "<|role_end|>", "<\uff5chy_eos:opensource\uff5c>", "\n<|end|>\n", "<|tool_response>", "<|observation|>",
    "\n<SPECIAL_12>", "<|user_end|>", "<\uff5ctool\u2581outputs\u2581begin\uff5c>", "<|return|>", "<end_of_turn>",
    "<|START_OF_TURN_TOKEN|>",
)  # fmt: skip
"""The texts that end a turn or follow one: a model stops there."""

PROPERTIES: dict[str, object] = {
    KEY: {"type": "string"},
    "q": {"type": "string"},
    "r": {"type": "integer"},
    "sa": {"type": "array", "items": {}},
    "t": {"type": "object"},
    "u": {"type": "boolean"},
    "z": {"type": "string"},
}
TOOL = FunctionTool(NAME, None, {"type": "object", "properties": PROPERTIES})
ARGUMENTS: tuple[dict[str, object], ...] = (
    {KEY: "", "q": 'say "hi"\n<b>&\'\\ é 日本 🚀', "r": -3, "u": False, "z": VALUE},
    {KEY: "3", "sa": [1.5, "x", True, {"a": [2]}], "t": {"a": {"b": "c"}}, "z": VALUE},
    {KEY: VALUE},
)
"""Ends with `VALUE`, in the order of the names, as some templates sort them."""
SIMPLE: tuple[dict[str, object], ...] = ({KEY: "é 日本 🚀", "q": "", "r": 7, "z": VALUE}, {KEY: VALUE})
UNABLE = ("<|tool_call_start|>", "CDATA")
"""Texts of templates that do not write every value so that it can be read back: LFM2.5 puts
quotes around it and escapes none in it, MiniCPM5 puts some into CDATA, which no dialect knows of yet.
"""


@cache
def samples(name: str) -> Samples:
    return Samples(*compiled(name))


def written_after_prompt(name: str, turn: str) -> tuple[Reading, bytes]:
    """Returns the text that the model would have to write for a turn, and its reading after the prompt."""
    prompt = samples(name).prompt("high")
    end = end_prompt(prompt, learned(name), thinks=True, grammar=False, calls=False)
    _, _, frame = end.rendered.rpartition("curlew")
    head = common_head(turn, frame)
    body = turn[len(head) :].removeprefix((markers(frame) or [""])[-1])
    found = [place for text in ENDS if (place := body.find(text, 1)) > 0]
    body = body[: min(found, default=len(body))]
    dialect = learned(name).dialect
    if head == frame:
        return Reading(dialect, end.thinking, end.answering, True, (), end.begun.encode()), body.encode()
    return Reading(dialect, calls=True), body.encode()


def read(reading: Reading, written: bytes, cuts: list[int]) -> list[Delta]:
    """The deltas of an answer that arrives in pieces."""
    parser = parser_of(
        reading, (TOOL,), lambda name, arguments: name == NAME and bool(json.loads(arguments) or True)
    )
    deltas: list[Delta] = []
    for begin, end in pairwise([0, *cuts, len(written)]):
        deltas += parser.feed(written[begin:end])
    return list(merged([*deltas, *parser.finish()]))


def said(deltas: list[Delta]) -> tuple[str, str, list[object]]:
    """Returns the thinking, the text and the arguments of finished calls."""
    thinking = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert sum(isinstance(delta, CallStart) for delta in deltas) == sum(
        isinstance(delta, CallEnd) for delta in deltas
    )
    assert all(delta.name == NAME for delta in deltas if isinstance(delta, CallStart))
    return thinking, text, [json.loads(delta.text) for delta in deltas if isinstance(delta, CallArguments)]


def every_way(name: str, reading: Reading, written: bytes) -> tuple[str, str, list[object]]:
    """Returns the reading, which is the same for all cuts, and where markers are tokens."""
    chance = random.Random(name)
    texts = [text for literal in literals(reading.dialect) for text in markers(literal)]
    specials = tuple(dict.fromkeys(text for text in texts if not any(space in text for space in ' \n"')))
    tokens = Reading(
        reading.dialect,
        reading.thinking,
        reading.answering,
        True,
        specials,
        marked(reading.begun.decode(), specials),
    )
    whole = read(reading, written, [])
    for form, spelled in ((reading, written), (tokens, marked(written.decode(), specials))):
        for count in (len(spelled) - 1, *range(5)):
            cuts = sorted(chance.sample(range(1, len(spelled)), min(count, len(spelled) - 1)))
            assert read(form, spelled, cuts) == whole, (cuts, spelled)
    return said(whole)


@pytest.mark.parametrize("name", ALL)
def test_calls_come_back(name) -> None:
    """Names, order, arguments; as many in a turn as the template writes."""
    template, capabilities = compiled(name)
    if not capabilities.calls:
        return
    usual = SIMPLE if any(sign in template.source for sign in UNABLE) else ARGUMENTS
    last: dict[str, object] = {KEY: VALUE}
    turns = [[*usual, {}, last]] if capabilities.parallel else [[each] for each in usual]
    for arguments in turns:
        turn = samples(name).calls(*arguments)
        assert every_way(name, *written_after_prompt(name, turn)) == ("", "", arguments)


@pytest.mark.parametrize("name", ALL)
def test_calls_come_back_in_the_models_own_spelling(name) -> None:
    """Also where the template drops them, and in every spelling that the family has."""
    dialect = learned(name).dialect
    for how in (dialect.calls, *dialect.also):
        assert isinstance(how, Calls)
        for arguments in [(each,) for each in (*ARGUMENTS, {})] if how.alone else [ARGUMENTS, ({},)]:
            calls = [ToolCall(f"id{n}", NAME, each) for n, each in enumerate(arguments)]
            spelled = write_calls(calls, how).encode()
            assert every_way(name, Reading(dialect, calls=True), spelled) == ("", "", list(arguments))


@pytest.mark.parametrize("name", ALL)
def test_thinking_comes_back(name) -> None:
    """Thinking is read apart from the answer or the call after it."""
    turn = samples(name).thinking()
    if not turn:
        return
    thinking, text, calls = every_way(name, *written_after_prompt(name, turn))

    assert thinking == THINKING
    assert text == (ANSWER if ANSWER in turn else "")
    assert calls == ([] if ANSWER in turn else [{KEY: VALUE}])
