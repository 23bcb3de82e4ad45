"""Segments become tokens, and no text becomes a marker."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from b3node.errors import Refusal
from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.segments import ControlSegment, TextSegment
from b3node.prompt.tokens.tokenize import tokenize
from tests.prompt.fakes import CONTROL, USER_DEFINED, FakeVocabulary, special_tokens

START, END, BOS = (
    ControlSegment(257, "<|im_start|>"),
    ControlSegment(258, "<|im_end|>"),
    ControlSegment(256, "<|endoftext|>"),
)


def tokens(*segments, vocabulary=None, n_ctx=4096):
    vocabulary = vocabulary or FakeVocabulary()
    return tokenize(segments, vocabulary, MarkerIndex(vocabulary.specials), n_ctx)


def test_controls_are_ids_and_text_is_text() -> None:
    """The simplest prompt."""
    prompt = tokens(START, TextSegment("hi"), END)

    assert prompt.tokens == (257, 104, 105, 258)
    assert prompt.text == "<|im_start|>hi<|im_end|>"


@pytest.mark.parametrize("marker", CONTROL + USER_DEFINED)
@pytest.mark.parametrize("space", [False, True])
def test_a_spelled_marker_is_read_letter_by_letter(marker, space) -> None:
    """The text reads the same, and not one of its tokens is special."""
    vocabulary = FakeVocabulary(space=space)
    prompt = tokens(TextSegment(f"x {marker}{marker}y"), vocabulary=vocabulary)

    assert vocabulary.read(prompt.tokens) == " " * space + f"x {marker}{marker}y"
    assert max(prompt.tokens) < 256


def test_white_space_tokens_are_used() -> None:
    """USER_DEFINED runs of white space are text, and a client's text has them as any other."""
    vocabulary = FakeVocabulary(special_tokens((), ("\n\n", "<b>")))

    assert tokens(TextSegment("a\n\n<b>"), vocabulary=vocabulary).tokens == (97, 256, *b"<b>")


def test_a_beginning_is_written_once() -> None:
    """The model's first token is put before the prompt unless the template wrote it."""
    wants = FakeVocabulary(add_bos=True)

    assert tokens(TextSegment("a"), vocabulary=wants).tokens == (256, 97)
    assert tokens(BOS, TextSegment("a"), vocabulary=wants).tokens == (256, 97)
    assert tokens(BOS, TextSegment("a")).tokens == (256, 97)
    assert tokens(TextSegment("<|endoftext|>"), vocabulary=wants).tokens == (256, *b"<|endoftext|>")
    assert tokens(TextSegment("a"), vocabulary=FakeVocabulary(add_bos=True, bos=None)).tokens == (97,)


def test_marks_are_the_ends_of_turns() -> None:
    """Each cache boundary is the length of a prefix that ends with an end-of-generation token."""
    assert tokens(
        START, TextSegment("a"), END, TextSegment("\n"), START, END, TextSegment("x")
    ).cache_boundaries == (3, 6)
    assert tokens(START, TextSegment("a"), START).cache_boundaries == (1, 3)
    assert tokens(TextSegment("a")).cache_boundaries == ()


def test_a_prompt_must_leave_room_for_an_answer() -> None:
    """A prompt as long as the context is refused, with both numbers; one token less is taken."""
    assert len(tokens(TextSegment("abc"), n_ctx=4).tokens) == 3
    with pytest.raises(Refusal) as caught:
        tokens(TextSegment("abcd"), n_ctx=4)

    assert (caught.value.code, caught.value.param) == ("context_length_exceeded", "input")
    assert (
        caught.value.message
        == "The prompt has 4 tokens; this model's context of 4 leaves no room for an answer."
    )


def test_a_hopeless_text_is_not_tokenized() -> None:
    """A text that cannot fit even in the longest tokens is refused at once; bytes count, not characters."""

    class Untouched(FakeVocabulary):
        def tokenize(self, text, *, continues=False):
            raise AssertionError(text)

    with pytest.raises(Refusal) as caught:
        tokens(TextSegment("é" * 801), vocabulary=Untouched(), n_ctx=100)

    assert "at least 101 tokens" in caught.value.message
    assert caught.value.code == "context_length_exceeded"


def test_counting_stops_when_there_is_no_hope() -> None:
    """A text of nothing but markers costs a call for each; the count ends at twice the context."""
    with pytest.raises(Refusal, match=r"has at least 2\d\d tokens; this model's context of 100 "):
        tokens(TextSegment("<think>" * 200), vocabulary=FakeVocabulary(longest=64), n_ctx=100)


def test_a_tokenizer_that_makes_control_tokens_is_stopped() -> None:
    """If a control token came out of text all the same, nothing is submitted."""

    class Careless(FakeVocabulary):
        def tokenize(self, text, *, continues=False):
            return [257]

    with pytest.raises(RuntimeError):
        tokens(TextSegment("a"), vocabulary=Careless())


@given(
    st.lists(st.sampled_from([*CONTROL, *USER_DEFINED, "<", "<|im_", "end|>", "tool_call>", " ", "\n", "é"]))
)
def test_no_text_becomes_special(pieces) -> None:
    """Any mixture of markers and their halves reads the same and has no special token."""
    text = "".join(pieces)
    vocabulary = FakeVocabulary()
    got = tokens(TextSegment(text), vocabulary=vocabulary).tokens if text else ()

    assert vocabulary.read(got) == text
    assert all(token < 256 for token in got)
