"""A history that replays the model's turn begins with the prompt of that turn, so a cache serves
it.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from b3node.contract.request import FunctionTool, TextPart
from b3node.prompt.ending import end_prompt
from b3node.prompt.template.call_writer import write_calls
from b3node.prompt.template.conversation import AssistantTurn, Conversation, ToolCall, ToolTurn, UserTurn
from b3node.prompt.template.reasoning_variables import enables_thinking
from b3node.prompt.tokens.provenance import plain
from tests.prompt.corpus import ALL, learned
from tests.prompt.given import write

TOOL = FunctionTool("look_up", "About.", {"type": "object", "properties": {"what": {"type": "string"}}})
CALL = ToolCall("call00001", "look_up", {"what": "fjord"})
ASKED = Conversation("System.", (UserTurn((TextPart("Question?"),)),), (TOOL,))


def prompt(name, conversation, effort) -> str:
    """A prompt as it is submitted."""
    rendered = write(name, conversation, effort).text
    end = end_prompt(rendered, learned(name), thinks=enables_thinking(effort), grammar=False, calls=False)
    return plain(end.rendered)


def going_on(*turns) -> Conversation:
    return replace(ASKED, turns=(*ASKED.turns, *turns))


CHANGED = frozenset(
    """
    Apriel-1.6-15b-Thinker-fixed CohereForAI-c4ai-command-r-plus-tool_use NVIDIA-Nemotron-Nano-v2 Qwen-QwQ-32B
    deepseek-ai-DeepSeek-R1-Distill-Llama-8B deepseek-ai-DeepSeek-R1-Distill-Qwen-32B llama-cpp-deepseek-r1
    llama-cpp-rwkv-world
    """.split()  # noqa: SIM905 - a table
)
"""Templates that open thinking for the model and never write an earlier one, or (Command R+) say how to call
last.
"""

CHANGED_UNTHINKING = CHANGED | frozenset(
    """
    zoo-tools ByteDance-Seed-OSS Cohere2MoE LFM2.5-8B-A1B MiniMax-M2 Qwen-Qwen3-0.6B deepseek-ai-DeepSeek-V3.2
    google-gemma-4-31B-it google-gemma-4-31B-it-interleaved mistralai-Ministral-3-14B-Reasoning-2512 muse-glimmer
    openai-gpt-oss-120b openbmb-MiniCPM5-1B unsloth-Apriel-1.5 upstage-Solar-Open-100B
    """.split()  # noqa: SIM905 - a table
)
"""Those that do not write the empty span again that kept the model from thinking."""


@pytest.mark.parametrize(("effort", "changed"), [("high", CHANGED), ("none", CHANGED_UNTHINKING)])
@pytest.mark.parametrize("name", ALL)
def test_a_round_of_calls_goes_on_from_the_prompt(name, effort, changed) -> None:
    """With its thinking, if any; the templates that change the text the model has read are known."""
    thinking = "Thought." if effort == "high" and learned(name).thinking else ""
    before = prompt(name, ASKED, effort)
    said = AssistantTurn("", thinking, (CALL,))
    after = prompt(name, going_on(said, ToolTurn(CALL.id, "look_up", "r")), effort)

    assert after.startswith(before) == (name not in changed), (before[-60:], after[len(before) - 60 :][:120])


@pytest.mark.parametrize(
    "name", ["zoo-tools", "Qwen-Qwen3-0.6B", "Qwen3.5-4B", "GLM-4.6", "MiniMax-M2", "Kimi-K2-Thinking"]
)
def test_a_replayed_round_equals_the_models_text(name) -> None:
    """Character for character up to the end of its calls, without the white space between their parts."""
    try:
        found = learned(name)
    except FileNotFoundError:
        pytest.skip("the shared templates are not here")
    form = found.thinking
    assert form
    before = prompt(name, ASKED, "high")
    opened = before.rstrip().endswith(form.span.open)
    thinking = ("" if opened else form.span.open + form.lead) + "Thought." + form.trail + form.span.close
    said = AssistantTurn("", "Thought.", (CALL,))
    after = prompt(name, going_on(said, ToolTurn(CALL.id, "look_up", "r")), "high")
    wrote = after.removeprefix(before).lstrip()

    assert wrote.startswith(thinking)
    assert wrote.removeprefix(thinking).lstrip().startswith(write_calls([CALL], found.calls).strip())
