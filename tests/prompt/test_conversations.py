"""Every template writes every conversation, whole, in order, and as if it had been given plain text."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

import pytest

from b3node.contract.request import Effort, FunctionCall, FunctionTool, Request, TextPart
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
    normalise,
)
from tests.prompt.conversations import CONVERSATIONS, quoting
from tests.prompt.corpus import ALL, compiled, markers_in
from tests.prompt.given import write, written_plainly

EFFORTS: tuple[Effort, ...] = get_args(Effort)


def has_null(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return value is None or (isinstance(value, list) and any(map(has_null, value)))


def says_null(asked: Request) -> bool:
    """Whether there is a JSON null in it, which some templates write as Python does."""
    schemas = [tool.parameters or {} for tool in asked.tools]
    arguments = [item.arguments for item in asked.input if isinstance(item, FunctionCall)]
    return any(map(has_null, schemas)) or any("null" in text for text in arguments)


OPTIONAL = ": Optional[str] = None"
"""How Command R's template declares a parameter that need not be given, in the signature that it writes of a
function.
"""


@pytest.mark.parametrize("name", ALL)
def test_every_template_writes_every_conversation(name) -> None:
    """Nothing ends in an error, nothing that is absent is printed, and the private alphabet changes nothing.

    Each conversation is written at one effort, so that each effort is tried on many.
    """
    for place, (which, asked) in enumerate(CONVERSATIONS.items()):
        effort = EFFORTS[(place + len(name)) % len(EFFORTS)]
        got = write(name, normalise(asked), effort)
        found = got.plain.replace(OPTIONAL, "")
        assert "None" not in found or says_null(asked), which
        assert got.plain == written_plainly(name, got.given), which


@pytest.mark.parametrize("name", ALL)
def test_every_effort_is_written(name) -> None:
    """Every word that a template has for an effort."""
    for which in ("ended_loops", "running_loop", "plain"):
        for effort in (None, *EFFORTS):
            assert "None" not in write(name, normalise(CONVERSATIONS[which]), effort).plain


@pytest.mark.parametrize("name", ALL)
def test_markers_in_clients_text_break_nothing(name) -> None:
    """A template's own, wherever a text can stand; all of them are read in the end."""
    markers = markers_in(name)
    got = write(name, normalise(quoting(markers)), "high").plain

    assert got.count("".join(markers)) >= 6


# ------------------------------------------------------------------------------------------ nothing is lost

TOOL = FunctionTool("toolname", "tooldesc", {"type": "object", "properties": {"argname": {"type": "string"}}})


def says(text: str) -> UserTurn:
    return UserTurn((TextPart(text),))


def calls(*words: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(f"id{word[3:]}", "toolname", {"argname": word}) for word in words)


def result(text: str) -> ToolTurn:
    return ToolTurn(f"id{text[6:]}", "toolname", text)


ONE = (AssistantTurn("saidone", "thoughtone", calls("argone")), result("resultone"))
TWO = (
    AssistantTurn("saidtwo", "thoughttwo", calls("argtwo", "argtoo")),
    result("resulttwo"),
    result("resulttoo"),
)
BARE = (AssistantTurn("", "thoughtbare", calls("argbare")), result("resultbare"))
MUTE = (AssistantTurn("", "", calls("argmute")), result("resultmute"))
TEXT = (AssistantTurn("saidtext", "", calls("argtext")), result("resulttext"))
TOLD: dict[str, tuple[Turn, ...]] = {
    "running": (says("userone"), *ONE, *TWO, *BARE),
    "running_unthinking": (says("userone"), *TEXT, *MUTE),
    "ended": (says("userone"), *ONE, *TWO, AssistantTurn("ended", "thoughtended"), says("usertwo")),
    "both": (says("userone"), *TWO, AssistantTurn("ended", "thoughtended"), says("usertwo"), *ONE, *TEXT),
    "answered": (says("userone"), AssistantTurn("saidlast", "thoughtlast")),
}


def words(turns: tuple[Turn, ...]) -> list[str]:
    """Returns the words that must be written, in order: all but reasoning, which templates may drop."""
    found: list[str] = []
    for turn in turns:
        if isinstance(turn, UserTurn):
            found += [part.text for part in turn.content if isinstance(part, TextPart)]
        elif isinstance(turn, ToolTurn):
            found.append(turn.text)
        else:
            found += [turn.text] * bool(turn.text)
            found += [json.loads(json.dumps(call.arguments))["argname"] for call in turn.calls]
    return found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("effort", ["none", "high"])
def test_nothing_that_was_said_is_lost(name, effort) -> None:
    """System text, functions, texts, calls and results are all written, and in the order in which they
    came.
    """
    _, capabilities = compiled(name)
    for which, turns in TOLD.items():
        got = write(name, Conversation("systemtext", turns, (TOOL,)), effort).plain
        assert [word for word in ("systemtext", "tooldesc", *words(turns)) if word not in got] == [], which
        places = [(got.rindex(word), word) for word in words(turns)]
        if capabilities.parallel or not capabilities.calls:
            assert all(one < two for one, two in pairwise(places)), (which, sorted(places))


NO_THOUGHTS = frozenset(
    """
    Apriel-1.6-15b-Thinker-fixed CohereForAI-c4ai-command-r-plus-tool_use GigaChat3-10B-A1.8B
    GigaChat3.1-10B-A1.8B HuggingFaceTB-SmolLM3-3B Kimi-K2-Instruct LFM2-8B-A1B LFM2.5-Instruct MiMo-VL MiniMax-M1
    Mistral-Small-3.2-24B-Instruct-2506 NVIDIA-Nemotron-Nano-v2 NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use
    NousResearch-Hermes-3-Llama-3.1-8B-tool_use Qwen-QwQ-32B Qwen-Qwen2.5-7B-Instruct Qwen3-Coder
    deepseek-ai-DeepSeek-R1-Distill-Llama-8B deepseek-ai-DeepSeek-R1-Distill-Qwen-32B deepseek-ai-DeepSeek-V3.1
    fireworks-ai-llama-3-firefunction-v2 google-gemma-2-2b-it ibm-granite-granite-3.3-2B-Instruct
    ibm-granite-granite-4.0 ibm-granite-granite-4.1 llama-cpp-deepseek-r1 llama-cpp-rwkv-world
    meetkai-functionary-medium-v3.1 meetkai-functionary-medium-v3.2 meta-llama-Llama-3.1-8B-Instruct
    meta-llama-Llama-3.2-3B-Instruct meta-llama-Llama-3.3-70B-Instruct microsoft-Phi-3.5-mini-instruct
    mistralai-Mistral-Nemo-Instruct-2407 moonshotai-Kimi-K2 unsloth-Apriel-1.5 unsloth-mistral-Devstral-Small-2507
    zoo-chatml
    """.split()  # noqa: SIM905 - a table
)
"""Templates without a place for earlier thinking, in any form: their models never see it again."""


@pytest.mark.parametrize("name", ALL)
def test_the_thinking_of_a_running_loop_is_written_where_a_template_has_a_place_for_it(name) -> None:
    """All of them, each before its call; which templates have none is known."""
    got = write(name, Conversation("", TOLD["running"], (TOOL,)), "high").plain
    found = [thinking in got for thinking in ("thoughtone", "thoughttwo", "thoughtbare")]

    assert found == [name not in NO_THOUGHTS] * 3
    for thinking, argument in (
        ("thoughtone", "argone"),
        ("thoughttwo", "argtwo"),
        ("thoughtbare", "argbare"),
    ):
        assert got.find(thinking) < got.index(argument)
