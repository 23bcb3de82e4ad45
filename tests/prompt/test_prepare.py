"""From a request to token ids: the whole path, and its one promise about control tokens."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from b3node.contract.request import FunctionTool, ImagePart, Message, Reasoning, TextPart
from b3node.errors import Refusal
from b3node.prompt.prepare import Preparer
from b3node.prompt.template.chat_template import CHATML, PLAIN_TURNS, BrokenTemplateError
from tests.prompt.corpus import ALL, markers_in, source
from tests.prompt.fakes import CONTROL, USER_DEFINED, FakeVocabulary, special_tokens
from tests.prompt.histories import HISTORIES, assistant, call, developer, output, request, system, user
from tests.zoo.templates import TOOLS

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ROOM = 1_000_000


def preparer(template=TOOLS, n_ctx=ROOM, **facts) -> Preparer:
    return Preparer(FakeVocabulary(chat_template=template, **facts), n_ctx=n_ctx)


def specials(prompt) -> list[int]:
    """The special tokens of a prompt, in order."""
    return [token for token in prompt.tokens if token >= 256]


def hostile(*texts: str, name: str = "name"):
    """A request in which `texts` stand wherever a client's text can stand."""
    text, rest = "".join(texts), texts * 2
    schema: dict[str, object] = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {text: {"type": "string", "description": text, "enum": [text], "default": text}},
        "required": [text],
    }
    return request(
        system(*texts),
        user(*texts),
        Reasoning(text),
        assistant(*texts),
        call("a", name, f'{{"{name}": 1}}'),
        call("b", text, json.dumps({text: text, "list": [text, {text: None}]})),
        output("a", *texts),
        output("b", *rest),
        developer(text),
        Message("user", tuple(map(TextPart, rest))),
        Reasoning(text),
        call("c", text, text),
        output("c", text),
        instructions=text,
        tools=(FunctionTool(name, text, schema),),
        effort="low",
    )


# ------------------------------------------------------------------------------------------------ the promise


@pytest.mark.parametrize("marker", CONTROL + USER_DEFINED)
@pytest.mark.parametrize("template", [TOOLS, CHATML, PLAIN_TURNS])
def test_a_clients_marker_is_never_a_special_token(marker, template) -> None:
    """Prompts have the special tokens of their shape, for any text in them, cut anywhere."""
    prepare = preparer(template)
    expected = specials(prepare.compose(hostile("word"), NOW))

    for cut in range(len(marker) + 1):
        for texts in (
            (f"x {marker} y",),
            (marker[:cut], marker[cut:]),
            (f"a{marker[:cut]}", f"{marker[cut:]}b"),
        ):
            assert specials(prepare.compose(hostile(*texts), NOW)) == expected


@pytest.mark.parametrize("name", ALL)
def test_no_family_lets_a_client_write_its_markers(name) -> None:
    """With all that looks like a marker in a template declared special, half of it USER_DEFINED."""
    markers = markers_in(name)
    vocabulary = FakeVocabulary(
        special_tokens(markers[::2], markers[1::2]), chat_template=source(name), space=len(name) % 2 > 0
    )
    prepare = Preparer(vocabulary, n_ctx=ROOM)
    expected = specials(prepare.compose(hostile("word"), NOW))

    prompt = prepare.compose(hostile("".join(markers), " ".join(markers)), NOW)
    assert specials(prompt) == expected
    for marker in markers[:: max(1, len(markers) // 5)]:
        half = len(marker) // 2
        assert specials(prepare.compose(hostile(marker[:half], marker[half:]), NOW)) == expected


@pytest.mark.parametrize(
    "template",
    [
        (
            "{% for tool in tools or [] %}{% for name in tool.function.parameters.properties %}<{{ name }}></{{ name }}>"
            "{% endfor %}{% endfor %}{% for message in messages %}{{ message.content }}{% endfor %}"
        ),
        "{% for message in messages %}{{ message.content | replace('X', '') }}{% endfor %}{{ messages | length }}",
        "{% for message in messages %}{{ message.content }}{{ message.content[1:-1] | upper | lower }}{% endfor %}{{ messages | length }}",
        "{% for message in messages %}{{ '<' ~ message.content ~ '>' }}{% endfor %}",
        "{% for message in messages %}{{ message.content.split('X') | join('') }}{% endfor %}",
        "{% for message in messages %}{{ '%s%s' | format('<', message.content) }}{% endfor %}",
        (
            "{% set ns = namespace(all='') %}{% for message in messages %}{% set ns.all = ns.all + message.content %}"
            "{% endfor %}{{ ns.all | trim('X') }}"
        ),
        "{{ messages }}{{ tools }}",
        "{{ messages | tojson }}{{ messages | map(attribute='content') | join }}",
    ],
)
def test_no_trick_of_a_template_helps_a_client(template) -> None:
    """Tags from names, cutting, removing, joining, formatting, printing as Python does: all stay text."""
    prepare = preparer(template)
    for text in (
        "tool_call",
        "think",
        "<toolX_call>",
        "<tool_Xcall>X",
        "X<tool_call>X",
        "<X",
        "tool_call>",
        "/think",
    ):
        tool = FunctionTool(
            "f", text, {"type": "object", "properties": {text.strip("X<>"): {"type": "string"}}}
        )
        asked = request(user(text), assistant(text), user(text), tools=(tool,), instructions=text)
        assert specials(prepare.compose(asked, NOW)) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*CONTROL, *USER_DEFINED, "<", "<|", "im_end", "|>", ">", "/", "think", " ", "\n", "x", "\x00"]
        ),
        min_size=1,
        max_size=8,
    )
)
def test_no_mixture_of_markers_and_halves_becomes_special(texts) -> None:
    """The special tokens never depend on words, and the words are all there."""
    prepare = preparer()
    expected = specials(prepare.compose(hostile("word"), NOW))

    prompt = prepare.compose(hostile(*texts), NOW)
    assert specials(prompt) == expected
    assert "".join(texts).strip() in prompt.text


# ------------------------------------------------------------------------------------------------- the story


def test_a_prompt_reads_as_the_template_wrote_it() -> None:
    """Text, tokens and cache boundaries of a small conversation."""
    prepare = preparer(CHATML)
    prompt = prepare.compose(request(user("Hi"), assistant("Yo"), user("<think>"), instructions="S"), NOW)

    assert prompt.text == (
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n"
        "<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n"
    )
    assert FakeVocabulary().read(prompt.tokens) == prompt.text
    assert [prompt.tokens[mark - 1] for mark in prompt.cache_boundaries] == [258] * 4
    assert 259 not in prompt.tokens


@pytest.mark.parametrize(("template", "history"), [("tools", "folded"), ("plain", "two_calls")])
def test_whole_prompts_are_known(template, history) -> None:
    """Golden files: a template's own spelling of calls, and the generic one where it has none."""
    source = {"tools": TOOLS, "plain": PLAIN_TURNS}[template]
    prompt = preparer(source).compose(HISTORIES[history], NOW)

    assert prompt.text == (GOLDEN / f"{template}-{history}.txt").read_text("utf-8")


def test_prepared_tokens_are_little_endian_ids() -> None:
    """`Prepared` says the same as the prompt."""
    prepare, asked = preparer(), request(user("Hi"))
    prompt, prepared = prepare.compose(asked, NOW), prepare.prepare(asked, NOW)

    assert struct.unpack(f"<{prepared.prompt_tokens}i", prepared.tokens) == prompt.tokens
    assert prepared.cache_boundaries == prompt.cache_boundaries


def test_a_conversation_that_goes_on_keeps_its_beginning() -> None:
    """The tokens up to a cache boundary are the same in the next turn's prompt, so a cache can serve them."""
    prepare = preparer()
    first = prepare.compose(request(user("Hi"), instructions="S"), NOW)
    then = prepare.compose(request(user("Hi"), assistant("Yo"), user("More"), instructions="S"), NOW)

    assert then.tokens[: first.cache_boundaries[-1]] == first.tokens[: first.cache_boundaries[-1]]
    assert first.cache_boundaries == then.cache_boundaries[: len(first.cache_boundaries)]


def test_reasoning_is_asked_for_by_effort() -> None:
    """The generation prompt opens thinking or closes it."""
    prepare = preparer()

    assert prepare.compose(request(user("Hi"), effort="low"), NOW).text.endswith("assistant\n<think>\n")
    assert prepare.compose(request(user("Hi")), NOW).text.endswith("assistant\n<think>\n\n</think>\n\n")


def test_a_template_for_functions_is_used_for_functions() -> None:
    """A file may bring a second template for requests that declare functions."""
    prepare = preparer("{{ messages[0].content }}", tool_template="tools: {{ tools | tojson }}" + PLAIN_TURNS)

    assert prepare.compose(request(user("Hi")), NOW).text == "Hi"
    assert prepare.compose(request(user("Hi"), tools=(FunctionTool("f"),)), NOW).text.startswith("tools: [{")
    assert prepare.capabilities.tools


@pytest.mark.parametrize(
    ("tokens", "expected"), [(special_tokens(), CHATML), (special_tokens(("<s>",), ()), PLAIN_TURNS)]
)
def test_a_model_without_a_template_gets_one(tokens, expected) -> None:
    """ChatML if the vocabulary has its tokens, else plain turns."""
    asked = request(user(" Hi "), assistant("Yo"), instructions="S")
    without = preparer(None, specials=tokens)

    assert not without.has_template
    assert preparer(expected, specials=tokens).has_template
    assert without.compose(asked, NOW) == preparer(expected, specials=tokens).compose(asked, NOW)


def test_plain_turns_name_their_speaker() -> None:
    """The speaker's name before each turn."""
    asked = request(user(" Hi "), assistant("Yo"), instructions="S")

    assert (
        preparer(PLAIN_TURNS).compose(asked, NOW).text
        == "System: S\n\nUser: Hi\n\nAssistant: Yo\n\nAssistant:"
    )


def test_special_texts_are_given_to_the_template() -> None:
    """`bos_token` and `eos_token` are the vocabulary's, and become tokens when the template writes them."""
    template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    asked = request(user("a"))

    assert preparer(template, add_bos=True).compose(asked, NOW).tokens == (256, 97, 258)
    assert preparer(template, bos=None, eos=None).compose(asked, NOW).tokens == (97,)


def test_images_are_refused_by_path() -> None:
    """Nothing here can read an image yet."""
    asked = request(user("x"), Message("user", (TextPart("a"), ImagePart("https://x/"))))
    with pytest.raises(Refusal) as caught:
        preparer().prepare(asked, NOW)

    assert (caught.value.code, caught.value.param) == ("invalid_request", "input[1].content[1].image_url")


def test_a_prompt_too_long_for_the_context_is_refused() -> None:
    """Both numbers are named, whether or not the text had to be tokenized to know."""
    with pytest.raises(Refusal, match="has 21 tokens; this model's context of 21 ") as caught:
        preparer(CHATML, n_ctx=21).prepare(request(user("Hi")), NOW)
    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")
    with pytest.raises(Refusal, match=r"has at least \d+ tokens; this model's context of 40"):
        preparer(n_ctx=40).prepare(request(user("x" * 100_000)), NOW)


def test_droppable_text_does_not_count() -> None:
    """White space around texts and old reasoning may be dropped, so they alone refuse nothing."""
    trims = "{% for m in messages %}{{ m.content | trim }}{% endfor %}"
    asked = request(user(" " * 5000 + "a" + "\n" * 5000), Reasoning("b" * 5000), assistant("c"))

    assert preparer(trims, n_ctx=40).compose(asked, NOW).text == "ac"


def test_an_empty_prompt_is_refused() -> None:
    """An engine cannot be given nothing."""
    with pytest.raises(Refusal, match="writes nothing"):
        preparer("{{ messages[0].content | trim }}").prepare(request(user(" ")), NOW)


def test_a_broken_template_is_an_operators_error() -> None:
    """It is found when the model is loaded."""
    with pytest.raises(BrokenTemplateError, match="does not compile"):
        preparer("{% for %}")


def test_the_same_request_at_the_same_moment_is_the_same_prompt() -> None:
    """Preparing keeps no state, even if a template changes the lists that it is given."""
    changing = "{% set _ = messages.append(messages[0]) %}{% if tools %}{% set _ = tools.pop() %}{% endif %}{{ messages | tojson }}{{ tools }}"
    prepare, asked = preparer(changing), hostile("word")

    assert prepare.compose(asked, NOW) == prepare.compose(asked, NOW)
    assert replace(FakeVocabulary(), bos=None).specials == special_tokens()


def test_a_preparer_serves_another_context_as_one_made_for_it() -> None:
    """The length of a context decides nothing that is made once."""
    asked = request(user("x" * 30))
    long, short = preparer(n_ctx=ROOM), preparer(n_ctx=40)

    assert short.with_context(ROOM).prepare(asked, NOW) == long.prepare(asked, NOW)
    assert long.with_context(ROOM) is long
    with pytest.raises(Refusal):
        long.with_context(1).prepare(asked, NOW)
