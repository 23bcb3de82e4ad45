"""The outline of a prepared request: the answer's reading, its grammar, and where that applies."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

import pytest

from b3node.config import Budgets
from b3node.contract.request import FunctionTool, TextFormat, ToolChoice
from b3node.dialects.dialect import GENERIC, Span
from b3node.dialects.outline import MARK, Reading
from b3node.errors import Refusal
from b3node.grammar import schema_to_gbnf
from b3node.prompt.outline import literals
from b3node.prompt.prepare import Preparer
from b3node.prompt.prepared import Prepared
from b3node.prompt.template.chat_template import CHATML
from tests.prompt.corpus import ALL, compiled, learned, source
from tests.prompt.fakes import FakeVocabulary, special_tokens
from tests.prompt.histories import BARE, WEATHER, request, user
from tests.zoo.templates import TOOLS

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
PLAIN_WORDS = FakeVocabulary(special_tokens(user_defined=()), chat_template=CHATML)
THINKER = FakeVocabulary(chat_template=TOOLS)
FORMAT = TextFormat("json_schema", "n", {"type": "integer"})
FORCED = ToolChoice("required")


def prepared(vocabulary, *, n_ctx=100_000, budgets=Budgets(), **asked) -> Prepared:  # noqa: B008 - a frozen value
    preparer = Preparer(vocabulary, n_ctx=n_ctx, budgets=budgets)
    return preparer.prepare(request(user("Hi"), **asked), NOW)


def test_a_plain_answer_of_a_plain_model_needs_nothing() -> None:
    """No outline, no reading, and a format's grammar as it is."""
    free, formed = prepared(PLAIN_WORDS), prepared(PLAIN_WORDS, text_format=FORMAT)

    assert (free.outline, free.reading, free.grammar) == (None, Reading(), None)
    assert (formed.outline, formed.grammar) == (None, schema_to_gbnf(FORMAT.schema, param=""))
    unused = prepared(PLAIN_WORDS, tools=(BARE,), tool_choice=ToolChoice("none"))
    assert (unused.outline, unused.reading.calls) == (None, False)


def test_functions_wait_for_the_calls_marker() -> None:
    """With `auto` anything may be written until a call begins."""
    got = prepared(PLAIN_WORDS, tools=(BARE,))

    assert got.outline is not None
    assert (got.outline.triggered, got.outline.must, got.outline.thinking) == (True, False, None)
    assert got.reading.calls
    assert got.reading.dialect.calls == GENERIC
    assert got.grammar is not None


@pytest.mark.parametrize("choice", [FORCED, ToolChoice("function", "ping")])
def test_a_forced_call_begins_at_once(choice) -> None:
    """The grammar holds from the beginning, and the answer may not end before it."""
    got = prepared(PLAIN_WORDS, tools=(BARE,), tool_choice=choice)

    assert got.outline is not None
    assert (got.outline.triggered, got.outline.must) == (False, True)


def test_a_format_with_functions_leaves_the_choice_to_the_model() -> None:
    """A call or an answer that conforms: the grammar holds from the beginning."""
    got = prepared(PLAIN_WORDS, tools=(BARE,), text_format=FORMAT)

    assert got.outline is not None
    assert (got.outline.triggered, got.outline.must) == (False, True)
    assert got.grammar is not None
    assert "answer" in got.grammar


def test_special_tokens_of_the_dialect_may_be_written_and_no_others() -> None:
    """Their ids for the engine, their texts for the reader; those of calls only where calls are asked for."""
    free, calling = prepared(THINKER), prepared(THINKER, tools=(BARE,))

    assert free.reading.specials == ("<think>", "</think>")
    assert calling.reading.specials == ("<think>", "</think>", "<tool_call>", "</tool_call>")
    assert free.outline is not None
    assert free.outline.specials == (259, 260)
    assert free.outline.reading == free.reading


def test_thinking_is_bounded_and_closed_as_the_family_closes_it() -> None:
    r"""`\n</think>\n\n`, the tag as its token; the bound is the effort's."""
    for effort, budget in (("low", 7), ("medium", 4096)):
        got = prepared(THINKER, effort=effort, budgets=Budgets(low=7))
        assert got.reading.thinking
        assert got.outline is not None
        assert got.outline.thinking is not None
        assert got.outline.thinking.budget == budget
        closing = struct.unpack("<4i", got.outline.thinking.closing)
        assert closing == (10, 260, 10, 10)


def test_thinking_leaves_room_for_the_answer() -> None:
    """Of what the context leaves for both, a quarter at least; unlimited only if the operator says so."""
    room = 100
    n_ctx = prepared(THINKER, effort="high").prompt_tokens + room
    short = prepared(THINKER, effort="high", n_ctx=n_ctx).outline
    endless = prepared(THINKER, effort="high", n_ctx=n_ctx, budgets=Budgets(high="unlimited")).outline

    assert short is not None
    assert short.thinking is not None
    assert short.thinking.budget == 71
    assert endless is not None
    assert endless.thinking is not None
    assert endless.thinking.budget > 1 << 30


def test_a_limit_of_the_client_cuts_thinking_and_does_not_shorten_it() -> None:
    """Cut thinking is reported as cut; shortened thinking would look like all that the model had to think."""
    free, limited = (prepared(THINKER, effort="high", max_output_tokens=most).outline for most in (None, 100))
    assert free == limited


def test_no_thinking_stands_before_a_grammar_if_none_is_asked_for() -> None:
    """Off: the grammar holds at once; on: after thinking, which must be closed."""
    off = prepared(THINKER, text_format=FORMAT)
    on = prepared(THINKER, text_format=FORMAT, effort="low")

    assert off.outline is not None
    assert (off.reading.thinking, off.outline.thinking) == (False, None)
    assert on.outline is not None
    assert on.outline.thinking is not None
    assert (on.reading.thinking, on.outline.must) == (True, True)


def test_tags_in_the_vocabulary_make_a_thinker() -> None:
    """A template may not know that its model thinks; the model's text is split all the same."""
    got = prepared(FakeVocabulary(chat_template=CHATML))

    assert got.reading.dialect.thinking == Span("<think>", "</think>")


def test_loosened_parts_of_a_schema_are_reported() -> None:
    """With `strict` it is refused at the function's place."""
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(a)\\1"}},
    }
    got = prepared(PLAIN_WORDS, tools=(BARE, FunctionTool("f", None, schema)))
    assert len(got.loosened) == 1
    assert got.loosened[0].startswith("tools[1].parameters#/properties/a/pattern")

    with pytest.raises(Refusal) as caught:
        prepared(PLAIN_WORDS, tools=(BARE, FunctionTool("f", None, schema, strict=True)))
    assert caught.value.param == "tools[1].parameters"


def test_functions_are_compiled_once() -> None:
    """The same functions again give the same grammar; the runtime is asked once, and its refusal is the
    client's.
    """
    shown: list[str] = []

    def accepts(grammar: str) -> bool:
        shown.append(grammar)
        return len(shown) < 2

    preparer = Preparer(PLAIN_WORDS, n_ctx=100_000, accepts=accepts)
    grammars = {preparer.prepare(request(user(word), tools=(WEATHER,)), NOW).grammar for word in "ab"}
    assert grammars == {shown[0]}

    with pytest.raises(Refusal) as caught:
        preparer.prepare(request(user("a"), tools=(BARE,)), NOW)
    assert (caught.value.code, caught.value.param) == ("invalid_request", "tools")


def test_a_prompt_that_ends_in_a_marker_is_read_with_it() -> None:
    """As the bytes that the model would have written."""
    name = "openai-gpt-oss-120b"
    if name not in ALL:
        pytest.skip("the shared templates are not here")
    markers = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>")
    vocabulary = FakeVocabulary(special_tokens(markers, ()), eog=frozenset({260}), chat_template=source(name))
    got = prepared(vocabulary, effort="low", tools=(BARE,))

    assert got.reading.begun == MARK + b"<|start|>assistant"
    assert "<|call|>" not in got.reading.specials
    assert got.outline is not None
    assert 260 not in got.outline.specials


@pytest.mark.parametrize("name", ALL)
def test_every_family_can_be_asked_for_everything(name) -> None:
    """Calls by choice and by force, formats next to them, thinking: each has its outline, for any
    dialect.
    """
    marks = sorted({*literals(learned(name).dialect)} - {""})
    specials = special_tokens(
        tuple(mark for mark in marks if mark.startswith("<") and mark.endswith(">")), ()
    )
    preparer = Preparer(
        FakeVocabulary(specials, eog=frozenset(), chat_template=source(name)), n_ctx=1_000_000
    )
    for fields in (
        {"tools": (WEATHER, BARE)},
        {"tools": (WEATHER, BARE), "tool_choice": FORCED, "effort": "low"},
        {"tools": (WEATHER,), "text_format": FORMAT},
        {"text_format": FORMAT, "effort": "high"},
    ):
        got = preparer.prepare(request(user("Hi"), **fields), NOW)
        assert got.grammar is not None
        if got.outline is not None:
            bare = learned(name).calls.bare
            assert got.outline.triggered == (set(fields) == {"tools"} and (not bare or got.outline.triggered))
            assert (got.outline.reading.thinking, got.outline.must) != (True, got.outline.triggered)
    assert compiled(name)[1] == preparer.capabilities


@pytest.mark.parametrize(("most", "loosened"), [(256 * 1024, 0), (30_000, 1), (7_000, 2)])
def test_a_runtime_that_takes_less_gets_functions_with_any_arguments(most, loosened) -> None:
    """The largest first, as many as it takes; it is refused only where nothing of that kind is taken."""

    def many(name: str, count: int) -> FunctionTool:
        members = {f"member{n}": {"enum": ["yes", "no", "perhaps"]} for n in range(count)}
        return FunctionTool(name, parameters={"type": "object", "properties": members})

    tools = (many("small", 10), many("middle", 100), many("large", 300))
    got = limited(most).prepare(request(user("Hi"), tools=tools), NOW)

    assert got.grammar is not None
    assert len(got.grammar) <= most
    assert len(got.loosened) == loosened
    with pytest.raises(Refusal) as refused:
        limited(100).prepare(request(user("Hi"), tools=tools), NOW)
    assert refused.value.param == "tools"


def limited(most: int) -> Preparer:
    """One whose runtime takes grammars of `most` bytes."""
    vocabulary = FakeVocabulary(special_tokens(user_defined=()), chat_template=CHATML)
    return Preparer(vocabulary, n_ctx=100_000, accepts=lambda grammar: len(grammar) <= most)
