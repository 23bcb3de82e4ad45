"""Dialects read off templates, for all families at hand."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from b3node.dialects.dialect import GENERIC, Span
from b3node.prompt.probe.capabilities import probe
from b3node.prompt.probe.dialect import learn, with_tags
from b3node.prompt.probe.literals import split_literal
from b3node.prompt.probe.samples import KEY, NAME, Samples
from b3node.prompt.template.call_writer import write_calls
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import ToolCall
from tests.prompt.corpus import ALL, assert_as_reviewed, compiled, learned
from tests.zoo.templates import CHATML, TOOLS

GOLDEN = Path(__file__).parents[1] / "golden" / "dialects.txt"


def described(name: str) -> str:
    """Returns the findings, for a person to read."""
    found = learned(name)
    dialect, thinking = found.dialect, found.thinking
    lines = [f"== {name}"]
    if thinking:
        sides = [thinking.span.open, thinking.lead, thinking.trail, thinking.span.close, thinking.after]
        by_itself = "always" if thinking.always else thinking.switch or "asked in words"
        lines.append(f"thought  {' '.join(map(repr, sides))}  ({by_itself})")
    if dialect.text:
        lines.append(f"text     {dialect.text.open!r} {dialect.text.close!r}")
    two = [ToolCall(f"id{n}", NAME, {KEY: "v", "n": n, "o": {"a": [True, None]}}) for n in (1, 2)]
    for kind, calls in (("calls", dialect.calls), *(("also", each) for each in dialect.also)):
        assert calls is not None
        lines.append(f"{kind:9}{write_calls(two[: 1 if calls.alone and calls != GENERIC else 2], calls)!r}")
    lines += [f"skipped  {' '.join(map(repr, dialect.skipped))}"] if dialect.skipped else []
    lines += ["explained in the prompt"] if found.explain_calls else []
    return "\n".join(lines)


def test_dialects_are_known() -> None:
    """A golden file for people: each family's thinking, text and calls, as its template spells them."""
    assert_as_reviewed(GOLDEN, described)


@pytest.mark.parametrize("name", ALL)
def test_a_template_that_writes_calls_is_understood(name) -> None:
    """A template's calls are never unknown: spelling the same calls again gives its
    wrote.
    """
    template, capabilities = compiled(name)
    if not capabilities.calls:
        return
    arguments: list[dict[str, object]] = [{KEY: 'a "b"', "q": 7, "r": {"l": [1.5, "x"]}}, {KEY: "c"}]
    arguments = arguments[: 2 if capabilities.parallel else 1]
    written = Samples(template, capabilities).calls(*arguments)
    calls = [ToolCall(f"call{n:05}", NAME, each) for n, each in enumerate(arguments, 1)]
    dialect = learned(name).dialect

    spelled = [write_calls(calls, how) for how in (dialect.calls, *dialect.also) if how]
    assert any(_same(each) in _same(written) for each in spelled), (spelled, written)


def _same(text: str) -> str:
    """Without white space, ids and indices, and without one value's spelling in two
    ways.
    """
    text = text.replace(f"to={NAME}<|message|><", "to=<|message|><")  # a name where another name follows
    return re.sub(r"\s|\"?call0000\d\"?|\"\d\"", "", text).replace("'", '"').replace('\\"', '"')


def test_a_template_without_calls_is_given_the_generic_spelling() -> None:
    """The embedded model's template is such a one: its prompt explains calls."""
    found = learn(ChatTemplate(CHATML), probe(ChatTemplate(CHATML)))

    assert found.calls == GENERIC
    assert found.explain_calls
    assert found.thinking is None


def test_tags_in_the_vocabulary_mark_thinking_without_the_template() -> None:
    """Some models think and their template does not say so; where it does, its own spelling stands."""
    plain = learn(ChatTemplate(CHATML), probe(ChatTemplate(CHATML)))
    own = learn(ChatTemplate(TOOLS), probe(ChatTemplate(TOOLS)))

    assert with_tags(plain).dialect.thinking == Span("<think>", "</think>")
    assert with_tags(own) == own


def test_a_spelling_that_fits_nothing_is_not_guessed() -> None:
    """A template that writes calls as prose gets the generic spelling, explained."""
    source = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}I call {{ c.function.name }}"
        " with{% for k, v in c.function.arguments.items() %} {{ v }} for {{ k }}{% endfor %}.{% endfor %}\n{% endfor %}"
    )
    template = ChatTemplate(source)
    found = learn(template, probe(template))

    assert found.calls == GENERIC
    assert found.explain_calls


def test_learned_facts_travel_as_data() -> None:
    """It is sent between processes and may be kept."""
    found = learned("zoo-tools").dialect

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=type(found)) == found


@pytest.mark.parametrize(
    ("before", "middle", "after", "parts"),
    [
        ("<c>\n", "\n</c>\n<c>\n", "\n</c>", ("\n</c>", "\n", "<c>\n")),
        ("<calls><call>", "</call><call>", "</call></calls>", ("</call>", "", "<call>")),
        ("[", ", ", "]", ("", ", ", "")),
        ("<l>\n", "\n", "\n</l>", ("", "\n", "")),
        (">\n<p=", "\n</p>\n<p=", "\n</p>\n</f>", ("\n</p>", "\n", "<p=")),
    ],
)
def test_a_middle_is_split_at_markers(before, middle, after, parts) -> None:
    """Equal characters alone would cut through markers; white space belongs to neither side."""
    found = split_literal(before, middle, after)

    assert (found.close, found.between, found.open) == parts


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["<a>", "</a>", "<b c=", "[X]", "\n", " ", "x", "{", "}"]), max_size=5),
    st.lists(st.sampled_from(["<a>", "</a>", "<b c=", "[X]", "\n", " ", "x", "{", "}"]), max_size=5),
    st.lists(st.sampled_from(["<a>", "</a>", "<b c=", "[X]", "\n", " ", "x", "{", "}"]), max_size=5),
)
def test_no_seam_loses_a_character(before, middle, after) -> None:
    """The three parts are the middle, for any text around it."""
    found = split_literal("".join(before), "".join(middle), "".join(after))

    assert found.close + found.between + found.open == "".join(middle)
    assert "".join(after).startswith(found.close)
