"""The zoo's chat templates, rendered as a server renders them."""

from __future__ import annotations

import json
from typing import Any

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it
import pytest
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.zoo.reference import opened
from tests.zoo.templates import CHATML, TOOLS
from tests.zoo.zoo import Zoo


def _render(template: str, messages: list[dict[str, Any]], **context: object) -> str:
    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    environment.filters["tojson"] = json.dumps  # chat templates expect JSON unescaped for HTML
    return environment.from_string(template).render(messages=messages, **context)


def test_chatml_writes_turns_and_the_generation_prompt() -> None:
    """System, user and assistant turns look the same; the prompt for an answer is written only if asked
    for.
    """
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    turns = "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    assert _render(CHATML, messages) == turns
    assert _render(CHATML, messages, add_generation_prompt=True) == turns + "<|im_start|>assistant\n"


def test_tools_are_listed_after_the_system_message() -> None:
    """Each tool is a line of JSON in the system turn, which exists for tools alone too."""
    tool = {"type": "function", "function": {"name": "add"}}
    user = {"role": "user", "content": "Hi"}
    alone = _render(TOOLS, [user], tools=[tool])
    both = _render(TOOLS, [{"role": "system", "content": "Be brief."}, user], tools=[tool])
    assert alone.startswith("<|im_start|>system\nFunctions you may call")
    assert both.startswith("<|im_start|>system\nBe brief.\n\nFunctions you may call")
    assert both.count("<|im_start|>system") == 1
    assert '\n{"type": "function", "function": {"name": "add"}}\n' in both


def test_calls_and_results_are_replayed() -> None:
    """Calls stand between their markers, and neighbouring results share one user turn."""
    call = {"function": {"name": "add", "arguments": {"a": 1}}}
    spelled = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "reasoning_content": "Hm", "tool_calls": [call, call]},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
    ]
    assert _render(TOOLS, messages, add_generation_prompt=True) == (
        "<|im_start|>user\nHi<|im_end|>\n"
        f"<|im_start|>assistant\n<think>\nHm\n</think>\n\n{spelled}\n{spelled}<|im_end|>\n"
        "<|im_start|>user\n<tool_response>\n1\n</tool_response>\n<tool_response>\n2\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("thinking", "prompt"), [({}, ""), (True, "<think>\n"), (False, "<think>\n\n</think>\n\n")]
)
def test_thinking_opens_or_skips_a_thought(thinking: object, prompt: str) -> None:
    """`enable_thinking` decides how the generation prompt ends; left out, the model decides."""
    context = {} if thinking == {} else {"enable_thinking": thinking}
    said = _render(TOOLS, [{"role": "user", "content": "Hi"}], add_generation_prompt=True, **context)
    assert said.endswith("<|im_start|>assistant\n" + prompt)


def test_a_late_system_message_is_refused_by_the_template() -> None:
    """As many real templates do: a server has to merge system messages first."""
    with pytest.raises(TemplateError):
        _render(TOOLS, [{"role": "user", "content": "Hi"}, {"role": "system", "content": "x"}])


def test_llama_cpp_finds_the_template(zoo: Zoo) -> None:
    """The model file holds the template that was asked for, or none."""
    for template in (CHATML, TOOLS, None):
        with opened(zoo.random(template=template), vocab_only=True) as model:
            stored = L.llama_model_chat_template(model.handle, None)
            assert stored == (None if template is None else template.encode())
