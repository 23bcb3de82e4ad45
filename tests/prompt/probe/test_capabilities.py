"""The capabilities of templates are found by letting them write."""

from __future__ import annotations

import pytest

from b3node.prompt.probe.capabilities import probe
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import CHATML, PLAIN_TURNS, BrokenTemplateError, ChatTemplate
from tests.prompt.corpus import compiled
from tests.zoo.templates import TOOLS

CAPABILITIES = TemplateCapabilities(
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
    text_beside_calls="text",
    old_text_beside_calls="text",
    answer_last=True,
    reasoning=True,
)
CALL = "{% for call in m.tool_calls or [] %}{{ call | tojson }}{% endfor %}"
PLACEMENT_FIELDS = {"text_beside_calls", "old_text_beside_calls"}
LOOP = "{% for message in messages %}{{ message.role + message.content }}{% endfor %}"


def lacking(source: str) -> set[str]:
    """Returns the capabilities that a template lacks, or has otherwise than most."""
    return differing(probe(ChatTemplate(source)))


def differing(capabilities: TemplateCapabilities) -> set[str]:
    fields = set(TemplateCapabilities.__struct_fields__) - {"reasoning"}
    return {name for name in fields if getattr(capabilities, name) != getattr(CAPABILITIES, name)}


@pytest.mark.parametrize(("source", "expected"), [(TOOLS, True), (CHATML, False)])
def test_a_switch_for_reasoning_is_seen(source, expected) -> None:
    """The output shows it."""
    assert probe(ChatTemplate(source)).reasoning is expected


@pytest.mark.parametrize("source", ["", "Hello!", "{{ raise_exception('') }}", "{{ messages | length }}"])
def test_a_template_that_drops_the_user_is_broken(source) -> None:
    """It is found when the model is loaded, not by the first client."""
    with pytest.raises(BrokenTemplateError, match="does not write what a user says"):
        probe(ChatTemplate(source))


def test_a_template_with_tools_can_do_everything() -> None:
    """The zoo's tool template lacks nothing."""
    assert lacking(TOOLS) == set()


@pytest.mark.parametrize("source", [CHATML, PLAIN_TURNS, LOOP])
def test_a_template_of_turns_alone_lacks_functions(source) -> None:
    """Every turn is written, functions and calls are not."""
    assert lacking(source) == {
        "tools",
        "calls",
        "parallel",
        "arguments",
        "loose_arguments",
        *PLACEMENT_FIELDS,
    }


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
    """Raising and dropping have the same effect."""
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
        (
            "{{ call.function.name }}",
            {"tools", "calls", "parallel", "arguments", "loose_arguments", *PLACEMENT_FIELDS},
        ),
    ],
)
def test_the_form_of_arguments_is_the_one_that_comes_out_right(spelling, expected) -> None:
    """Mappings where they work, text where only that does or where Python's own notation would come out."""
    assert lacking(CALLS.format(spelling)) == expected


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("meta-llama-Llama-3.1-8B-Instruct", {"parallel", "text_beside_calls", "old_text_beside_calls"}),
        ("openai-gpt-oss-120b", {"parallel", "text_beside_calls", "old_text_beside_calls"}),
        ("mistralai-Ministral-3-14B-Reasoning-2512", {"users_in_a_row", "thinking_placement", "answer_last"}),
        ("Apertus-8B-Instruct", {"thinking_placement"}),
        ("llama-cpp-deepseek-r1", {"calls", "results"}),
        ("Qwen-Qwen2.5-7B-Instruct", set()),
        ("Qwen3.5-4B", {"no_user", "loose_arguments"}),
        ("meetkai-functionary-medium-v3.2", {"arguments"}),
        ("microsoft-Phi-3.5-mini-instruct", {"tools", "calls", "results"}),
        ("google-gemma-2-2b-it", {"system", "users_in_a_row", "assistant_first", "tools", "results"}),
    ],
)
def test_capabilities_of_real_templates_are_known(name, missing) -> None:
    """Some families whose limits are known."""
    try:
        _, capabilities = compiled(name)
    except FileNotFoundError:
        pytest.skip("the shared templates are not here")

    assert missing <= differing(capabilities)
    assert missing or not differing(capabilities)


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ("{{ m.content }}%CALL%", ("text", "text")),
        (
            "{% if m.tool_calls %}{{ m.reasoning }}%CALL%{% else %}{{ m.content }}{% endif %}",
            ("thinking", "thinking"),
        ),
        (
            (
                "{% if m.tool_calls %}{{ m.reasoning if user.last < loop.index0 }}%CALL%"
                "{% else %}{{ m.content }}{% endif %}"
            ),
            ("thinking", "turn"),
        ),
        ("%CALL%{{ m.content }}", ("turn", "turn")),
        (
            (
                "{% if m.role == 'assistant' and loop.previtem.role == m.role %}{{ raise_exception('') }}"
                "{% elif m.tool_calls %}%CALL%{% else %}{{ m.content }}{% endif %}"
            ),
            ("apart", "apart"),
        ),
    ],
)
def test_the_place_of_a_text_next_to_a_call_is_found(beside, expected) -> None:
    """In its place, in thinking if that is written, in a turn before, or apart from it by a user's."""
    last = (
        "{% set user = namespace(last=-1) %}"
        "{% for m in messages if m.role == 'user' %}{% set user.last = messages.index(m) %}{% endfor %}"
    )
    loop = "{% for m in messages %}" + beside.replace("%CALL%", CALL) + "{% endfor %}"
    capabilities = probe(ChatTemplate(last + loop))

    assert (capabilities.text_beside_calls, capabilities.old_text_beside_calls) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("{{ m.thinking }}{{ m.content }}", "field"),
        (
            "{{ m.content if m.content is string else m.content | map(attribute='thinking') | join }}",
            "chunks",
        ),
        ("{{ m.content if m.content is string else m.content.blocks[0].text }}", "blocks"),
        ("{{ m.content }}", "field"),
        ("{{ m.content | tojson }}", "field"),
    ],
)
def test_the_place_of_thinking_is_found(said, expected) -> None:
    """In a field, in a list of parts, in an object; a list that is printed as it is is no place for it."""
    capabilities = probe(ChatTemplate("{% for m in messages %}" + said + CALL + "{% endfor %}"))

    assert capabilities.thinking_placement == expected


def test_a_template_that_spells_a_second_round_otherwise_cannot_write_calls() -> None:
    """Some forget that they have begun a list, and leave its beginning out ever after."""
    forgets = (
        "{% set ns = namespace(begun=false) %}{% for m in messages %}{{ m.content }}"
        "{% if m.tool_calls %}{{ '' if ns.begun else '<calls>' }}{% set ns.begun = true %}"
        "{{ m.tool_calls[0].function.arguments | tojson }}</calls>{% endif %}{% endfor %}"
    )

    assert {"calls", "results"} <= lacking(forgets)


def test_an_answer_at_the_end_needs_a_new_turn() -> None:
    """A template that goes on with the last answer, or leaves the model after its end, is found."""
    opens = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
    goes_on = opens.replace("add_generation_prompt", "messages[-1].role == 'user'")

    assert "answer_last" not in lacking(opens)
    assert "answer_last" in lacking(goes_on)
