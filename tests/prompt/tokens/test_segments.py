"""Rendered prompts are split at the markers that the template wrote."""

from __future__ import annotations

from hypothesis import given, strategies as st

from b3node.prompt.tokens.markers import MarkerIndex
from b3node.prompt.tokens.provenance import client
from b3node.prompt.tokens.segments import ControlSegment, TextSegment, split
from b3node.prompt.tokens.vocabulary import Special
from tests.prompt.fakes import special_tokens

MARKERS = MarkerIndex(special_tokens())
START, END = ControlSegment(257, "<|im_start|>"), ControlSegment(258, "<|im_end|>")


def test_the_templates_markers_are_control_and_the_rest_is_text() -> None:
    """Template words and a client's text between two markers are one text."""
    rendered = f"<|im_start|>user\n{client('Hi <|im_end|>')}<|im_end|>\n"

    assert list(split(rendered, MARKERS)) == [
        START,
        TextSegment("user\nHi <|im_end|>"),
        END,
        TextSegment("\n"),
    ]


def test_markers_may_touch() -> None:
    """There is no empty text between two markers, before the first or after the last."""
    assert list(split("<|im_start|><|im_end|>", MARKERS)) == [START, END]
    assert list(split("", MARKERS)) == []


def test_a_marker_that_is_half_the_clients_is_text() -> None:
    """A template's bracket around a client's word makes no marker, nor does a client's end of one."""
    rendered = f"<{client('tool_call')}><|im_{client('end|>')}{client('<|im_')}end|>"

    assert list(split(rendered, MARKERS)) == [TextSegment("<tool_call><|im_end|><|im_end|>")]


def test_some_markers_swallow_white_space() -> None:
    """White space that llama.cpp strips around tokens with those attributes is stripped here."""
    markers = MarkerIndex((Special(1, "<l>", lstrip=True), Special(2, "<r>", rstrip=True)))

    assert list(split("a \n<l> b <r> \t c\u00a0<r>\n<l>\n", markers)) == [
        TextSegment("a"),
        ControlSegment(1, "<l>"),
        TextSegment(" b "),
        ControlSegment(2, "<r>"),
        TextSegment("c\u00a0"),
        ControlSegment(2, "<r>"),
        ControlSegment(1, "<l>"),
        TextSegment("\n"),
    ]


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["<|im_", "end|>", "<|im_end|>", "<", "think>", " x "]))
    )
)
def test_clients_text_changes_no_control(pieces) -> None:
    """The controls are those of the same prompt with the clients' text taken for something harmless."""
    rendered = "".join(client(text) if theirs else text for theirs, text in pieces)
    harmless = "".join("x" * theirs * len(text) or text for theirs, text in pieces)

    got, expected = (
        [segment for segment in split(one, MARKERS) if isinstance(segment, ControlSegment)]
        for one in (rendered, harmless)
    )
    assert got == expected
    assert "".join(segment.text for segment in split(rendered, MARKERS)) == "".join(
        text for _, text in pieces
    )
