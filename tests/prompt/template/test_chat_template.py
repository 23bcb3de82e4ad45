"""A compiled template writes conversations and fails politely."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from b3node.errors import Refusal
from b3node.prompt.template.chat_template import BrokenTemplateError, ChatTemplate
from b3node.prompt.template.conversation import AssistantTurn, Conversation, ToolCall, normalise
from b3node.prompt.tokens.provenance import client, plain
from tests.prompt.histories import TOOLS, request, user

NOW = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
HI = normalise(request(user("Hi")))


def written(source: str, conversation: Conversation = HI, **variables: object) -> str:
    template = ChatTemplate(source, bos="<s>", eos="</s>")
    return template.write(conversation, variables, NOW, 10_000)


def test_a_template_is_given_messages_tokens_and_variables() -> None:
    """Messages, the special tokens' texts, the generation flag and all that the caller adds."""
    source = "{{ bos_token }}{{ messages[0].role }}:{{ messages[0].content }}{{ eos_token }}{{ add_generation_prompt }}{{ x }}"

    assert written(source, x=1) == f"<s>user:{client('Hi')}</s>True1"


def test_tools_are_none_if_there_are_none() -> None:
    """Templates written for transformers compare `tools` with none."""
    assert written("{{ tools is none }}{{ documents is none }}") == "TrueTrue"
    assert written("{{ tools | length }}", normalise(request(user("Hi"), tools=TOOLS))) == "2"


def test_time_stands_still() -> None:
    """`strftime_now` formats the moment that the caller gave, every time."""
    assert written("{{ strftime_now('%H:%M:%S') }} {{ strftime_now('%d %b %Y') }}") == "12:30:00 29 Nov 2026"


@pytest.mark.parametrize(
    "source",
    [
        "{% if %}",
        "{{ 'a",
        "{% for x in y %}",
        "{{ x | nofilter }}",
        "{% call %}",
        "{% for x in y %}" * 25 + "{% endfor %}" * 25,
    ],
)
def test_a_broken_template_is_found_when_it_is_loaded(source) -> None:
    """A template that does not compile is an error for the operator, not for each client."""
    with pytest.raises(BrokenTemplateError):
        ChatTemplate(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('secret words') }}",
        "{{ 1 / 0 }}",
        "{{ missing.attribute }}",
        "{{ 'a' + 1 }}",
        "{{ messages[5].content }}",
        "{{ messages | tojson | from_json(1, 2) }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ {} | tojson(indent='x' * 3, separators=5) }}",
    ],
)
def test_a_template_that_fails_is_a_refusal_in_our_words(source) -> None:
    """Neither the template's words nor the library's reach a client."""
    with pytest.raises(Refusal) as caught:
        written(source)

    assert caught.value.code == "invalid_request"
    assert caught.value.param == "input"
    assert caught.value.message == "This model's chat template cannot write this conversation."


def test_writing_stops_at_the_limit() -> None:
    """A template cannot write without end."""
    source = (
        "{% for a in range(100000) %}{% for b in range(100000) %}xxxxxxxxxx{{ b }}{% endfor %}{% endfor %}"
    )

    assert 10_000 < len(written(source)) < 10_100


def test_a_mapping_printed_as_it_is_keeps_its_owner() -> None:
    """Python's repr would escape the private alphabet; the characters come out as the client wrote them."""
    arguments: dict[str, object] = {"<a>": "Ö 'x'", "b": ["\u200b\u202e\ufeff\xa0\xad", '"', "\U0001f9ff"]}
    conversation = Conversation("", (AssistantTurn(calls=(ToolCall("c", "f", arguments),)),))
    source = "{{ messages[0].tool_calls[0].function.arguments }}"

    assert plain(written(source, conversation)) == str(arguments)
    assert "<" not in written(source, conversation)
