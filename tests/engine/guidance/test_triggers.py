"""Markers of calls from which on a grammar holds: whole, cut by tokens, in other spellings, or bare."""

from __future__ import annotations

import pytest

from b3node.dialects.dialect import Calls, Dialect, JsonArguments, NamedBody, ObjectBody, Span
from tests.engine.fake_grammar import everything, new, token_table
from tests.engine.guidance.guides import (
    ALL,
    BODY,
    PLAIN,
    TAGGED,
    TEXTS,
    THOUGHT,
    TOKEN_TABLE,
    allowed,
    guide,
    outline,
    thinking,
    write,
)
from tests.zoo.vocabulary import END_THINK, END_TOOL_CALL, EOG, IM_START, THINK, TOOL_CALL, base


def test_a_grammar_holds_from_the_marker_of_a_call() -> None:
    """Before it anything goes, behind it what the grammar takes, and the end where it is complete."""
    guided = guide(outline(triggered=True), TEXTS)

    write(guided, "Let me see. a < b <tool", " call> or <think>hm</think>")
    write(guided, " <tool_call>")

    assert allowed(guided) == {ord("\n"), ord("{"), base().id('{"')}
    assert allowed(write(guided, BODY)) == set(EOG)


def test_special_tokens_trigger_where_the_dialect_has_them() -> None:
    """Then the same letters are text."""
    guided = guide(outline(PLAIN, ALL, triggered=True), TEXTS)

    write(guided, "<tool_call>", "x")
    write(guided, TOOL_CALL)

    assert allowed(guided) == {ord("\n"), ord("{"), base().id('{"')}


def test_a_token_with_bytes_behind_the_marker_needs_the_grammar() -> None:
    """It may complete the marker where the grammar begins with those bytes, and then they are read
    already.
    """
    guided = write(guide(outline(triggered=True), TEXTS), "<tool_cal")
    good = set(new(TOKEN_TABLE, "l>"))
    late = {
        token: TOKEN_TABLE.pieces[token] for token in new(TOKEN_TABLE, ">{", '>{"name"', ">\n", ">\n\n", ">x")
    }

    assert good <= allowed(guided)
    write(guided, "l")
    assert allowed(guided) & late.keys() == set(new(TOKEN_TABLE, ">{", '>{"name"', ">\n"))
    refused = guided.refused()
    assert refused is not None
    assert set(refused.tolist()) & late.keys() == set(new(TOKEN_TABLE, ">\n\n", ">x"))
    write(guided, *new(TOKEN_TABLE, '>{"name"'))
    assert allowed(guided) == {ord(":")}


def test_a_token_with_all_of_the_marker_in_it_needs_the_grammar_too() -> None:
    """At any place, at its beginning or in its middle."""
    guided = guide(outline(triggered=True), TEXTS)
    tokens = new(TOKEN_TABLE, '<tool_call>{"', "a<tool_call>{", "a<tool_call>x")

    assert allowed(guided) & set(tokens) == set(tokens[:2])
    write(guided, tokens[1])
    assert allowed(guided) == {ord('"')}


def test_other_tokens_stay_free_while_a_marker_is_written() -> None:
    """Only what would complete it is asked about."""
    guided = write(guide(outline(triggered=True), TEXTS), "<tool_call")
    free = set(everything(TOKEN_TABLE).tolist()) - {
        0xFF,
        IM_START,
        THINK,
        END_THINK,
        TOOL_CALL,
        END_TOOL_CALL,
    }

    assert allowed(guided) == free - {*new(TOKEN_TABLE, ">\n\n", ">x", "a<tool_call>x")}


@pytest.mark.parametrize("text", ["<think>we may <tool_call>", "`<tool_call>", "```\n<tool_call>"])
def test_markers_that_mean_nothing_trigger_nothing(text) -> None:
    """In thoughts and in code a call's marker is text, and the tokens that complete it are free."""
    guided = write(guide(outline(triggered=True, bound=thinking()), TEXTS), text[:-1])
    assert {*new(TOKEN_TABLE, ">x", ">{")} <= allowed(guided)

    assert len(allowed(write(guided, ">"))) > 200


def test_a_thought_before_a_call() -> None:
    """The marker counts again when the thought is over."""
    guided = guide(outline(triggered=True, thinking=True, bound=thinking()), TEXTS)

    write(guided, "a <tool_call> it is</think>\n<tool_call>")

    assert allowed(guided) == {ord("\n"), ord("{"), base().id('{"')}


def test_a_call_in_another_spelling_goes_on_in_it() -> None:
    """Each has a grammar of its own; bytes behind a marker are held to the one that belongs to it."""
    lex = token_table("]f", "]g", ">{", ">f", "x[TALK]", "x[TALK]f", "x[TALK]{")
    also = tuple(Calls(NamedBody((), JsonArguments()), open=(marker,)) for marker in ("[CALL]", "[TALK]"))
    outlined = outline(Dialect(calls=TAGGED, also=also), triggered=True)
    others = [[b"g{}"], [b"f()"]]

    for marker, good, bad, rest in (
        ("<tool_call>", ">{", ">f", BODY[1:]),
        ("[CALL]", "]g", "]f", b"{}"),
        ("[TALK]", "]f", "]g", b"()"),
    ):
        whole = write(guide(outlined, [BODY], lex, others), "Hm. ", marker, lex=lex)
        assert len(allowed(whole, lex)) <= 2
        cut = write(guide(outlined, [BODY], lex, others), "Hm. ", marker[:-1], lex=lex)
        assert allowed(cut, lex) & set(new(lex, good, bad)) == set(new(lex, good))
        assert allowed(write(cut, *new(lex, good), rest, lex=lex), lex) == set(EOG)
    one = guide(outlined, [BODY], lex, others)
    assert allowed(one, lex) & set(new(lex, "x[TALK]", "x[TALK]f", "x[TALK]{")) == set(
        new(lex, "x[TALK]", "x[TALK]f")
    )


def test_a_call_in_a_spelling_without_a_grammar_ends() -> None:
    """It never becomes free text."""
    other = Calls(NamedBody((), JsonArguments()), open=("[CALL]",))
    guided = guide(outline(Dialect(calls=TAGGED, also=(other,)), triggered=True), TEXTS)

    assert not allowed(write(guided, "[CALL]"))


BARE = Dialect(thinking=THOUGHT, calls=Calls(ObjectBody(), bare=True))
BARE_TEXTS = [
    start + name
    for start in (b'{"name": "', b'{ "name":"', b'{"type": "function", "name": "')
    for name in (b'f"}', b'go"}')
]


def test_a_bare_call_is_held_to_the_grammar_from_its_name_on() -> None:
    """However its beginning is spelled; before it everything may be written, behind it what the grammar
    takes.
    """
    lex = token_table('"f', '"go', '"x', ' "f', ' "x', '{"name":"x', '{"name":"f', 'n "quoted" word')
    free = set(new(lex, '"f', '"go', '"x', ' "f', ' "x', 'n "quoted" word'))
    for begun in ("{", '{"na', '{"name"', "{ ", '{"type": "function", '):
        guided = write(guide(outline(BARE, triggered=True), BARE_TEXTS, lex), begun, lex=lex)
        assert free <= allowed(guided, lex)
        assert guided.refused() is None
    start = guide(outline(BARE, triggered=True), BARE_TEXTS, lex)
    assert allowed(start, lex) & set(new(lex, '{"name":"x', '{"name":"f')) == set()

    spaced = write(guide(outline(BARE, triggered=True), BARE_TEXTS, lex), '{"name":', lex=lex)
    assert allowed(spaced, lex) & free == set(new(lex, ' "f', 'n "quoted" word'))
    tight = write(guide(outline(BARE, triggered=True), BARE_TEXTS, lex), '{ "name":', lex=lex)
    assert allowed(tight, lex) & free == set(new(lex, '"f', '"go', 'n "quoted" word'))
    assert allowed(write(tight, *new(lex, '"go'), lex=lex), lex) == {ord('"')}
    typed = write(
        guide(outline(BARE, triggered=True), BARE_TEXTS, lex), '{"type": "function", "name": ', lex=lex
    )
    assert allowed(write(typed, '"', lex=lex), lex) == {ord("f"), ord("g")}


def test_what_is_no_bare_call_is_free() -> None:
    """Once the answer is text, or the object is another one, nothing is tried any longer."""
    for text in ("Look: ", '{"nom', "<think>", '["'):
        guided = write(guide(outline(BARE, triggered=True, bound=thinking()), BARE_TEXTS), text)
        assert guided.refused() is not None
        assert len(allowed(write(guided, '{"name": "x'))) > 200


def test_markers_of_a_section_trigger_at_their_end() -> None:
    """White space between a section's marker and a call's is the model's."""
    spelled = Calls(ObjectBody(), section=Span("<tool_call>", "</tool_call>"), open=("CALL ",))
    for between in (b"", b"\n"):
        guided = guide(outline(Dialect(calls=spelled), ["<tool_call>"], triggered=True), [b" " + BODY, BODY])
        write(guided, TOOL_CALL, between)
        assert len(allowed(guided)) > 200
        write(guided, "CALL")
        assert allowed(guided) == {ord(" "), ord("{"), base().id('{"')}
