"""What templates can write is found out by asking them."""

from __future__ import annotations

import pytest

from b3node.prompt.abilities import Abilities, probe
from b3node.prompt.defaults import CHATML, PLAIN
from b3node.prompt.template import BrokenTemplateError, ChatTemplate
from tests.prompt.corpus import compiled
from tests.zoo.templates import TOOLS

ABLE = Abilities(
    system=True,
    users_in_a_row=True,
    assistant_first=True,
    no_user=True,
    empty_answer=True,
    user_after_result=True,
    tools=True,
    calls=True,
    results=True,
    parallel=True,
    loose_arguments=True,
    thought_beside_text=True,
    reasoning=True,
)
LOOP = "{% for message in messages %}{{ message.role + message.content }}{% endfor %}"


def lacking(source: str) -> set[str]:
    """The abilities of writing that a template has not, or has otherwise than most."""
    return differing(probe(ChatTemplate(source)))


def differing(able: Abilities) -> set[str]:
    fields = set(Abilities.__struct_fields__) - {"reasoning"}
    return {name for name in fields if getattr(able, name) != getattr(ABLE, name)}


@pytest.mark.parametrize(("source", "expected"), [(TOOLS, True), (CHATML, False)])
def test_a_switch_for_reasoning_is_seen(source, expected) -> None:
    """It shows in what is written."""
    assert probe(ChatTemplate(source)).reasoning is expected


@pytest.mark.parametrize("source", ["", "Hello!", "{{ raise_exception('') }}", "{{ messages | length }}"])
def test_a_template_that_drops_the_user_is_broken(source) -> None:
    """It is found when the model is loaded, not by the first client."""
    with pytest.raises(BrokenTemplateError, match="does not write what a user says"):
        probe(ChatTemplate(source))


def test_a_template_with_tools_can_do_everything() -> None:
    """The zoo's tool template lacks nothing."""
    assert lacking(TOOLS) == set()


@pytest.mark.parametrize("source", [CHATML, PLAIN, LOOP])
def test_a_template_of_turns_alone_lacks_functions(source) -> None:
    """Every turn is written, functions and calls are not."""
    assert lacking(source) == {"tools", "calls", "parallel", "arguments", "loose_arguments"}


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("{% if messages[0].role == 'system' %}{{ raise_exception('') }}{% endif %}" + LOOP, "system"),
        (
            "{% if messages[0].role == 'assistant' %}{{ raise_exception('') }}{% endif %}" + LOOP,
            "assistant_first",
        ),
        (
            "{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}"
            "{{ raise_exception('') }}{% endif %}" + LOOP,
            "no_user",
        ),
        ("{% for t in tools %}{% endfor %}" + LOOP, "no_tools"),
        (
            "{% for m in messages if not m.content %}{{ raise_exception('') }}{% endfor %}" + LOOP,
            "empty_answer",
        ),
        (
            (
                "{% for message in messages %}{% if loop.last or message.role != 'system' %}"
                "{{ message.content }}{% endif %}{% endfor %}"
            ),
            "system",
        ),
    ],
)
def test_a_refusal_or_a_loss_is_an_ability_less(source, missing) -> None:
    """Raising and dropping are the same to whoever wanted it written."""
    assert missing in lacking(source)


CALLS = (
    "{{% for message in messages %}}{{{{ message.content }}}}"
    "{{% for call in message.tool_calls or [] %}}{}{{% endfor %}}{{% endfor %}}"
)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("{{ call.function.arguments | tojson }}", {"tools"}),
        (
            "{% for k, v in call.function.arguments.items() %}{{ k ~ v }}{% endfor %}",
            {"tools", "loose_arguments"},
        ),
        ("{{ call.function.name + call.function.arguments }}", {"tools", "arguments"}),
        ("{{ call.function.arguments }}", {"tools", "arguments"}),
        ("{% if loop.first %}{{ call.function.arguments | tojson }}{% endif %}", {"tools", "parallel"}),
        ("{{ call.function.name }}", {"tools", "calls", "parallel", "arguments", "loose_arguments"}),
    ],
)
def test_the_form_of_arguments_is_the_one_that_comes_out_right(spelling, expected) -> None:
    """Mappings where they work, text where only that does or where Python's own notation would come out."""
    assert lacking(CALLS.format(spelling)) == expected


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("meta-llama-Llama-3.1-8B-Instruct", {"parallel", "thought_beside_text"}),
        ("Qwen-Qwen2.5-7B-Instruct", set()),
        ("Qwen3.5-4B", {"no_user", "loose_arguments"}),
        ("meetkai-functionary-medium-v3.2", {"arguments"}),
        ("microsoft-Phi-3.5-mini-instruct", {"tools", "calls", "results"}),
        ("google-gemma-2-2b-it", {"system", "users_in_a_row", "assistant_first", "tools", "results"}),
    ],
)
def test_real_templates_are_seen_for_what_they_are(name, missing) -> None:
    """Some families whose limits are known."""
    try:
        _, able = compiled(name)
    except FileNotFoundError:
        pytest.skip("the shared templates are not here")

    assert missing <= differing(able)
    assert missing or not differing(able)
