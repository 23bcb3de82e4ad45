"""Rendered prompts are split at the markers that the template wrote."""

from __future__ import annotations

from hypothesis import given, strategies as st

from b3node.prompt.tokens.markers import Markers
from b3node.prompt.tokens.provenance import client
from b3node.prompt.tokens.segments import Control, Text, split
from b3node.prompt.tokens.vocabulary import Special
from tests.prompt.fakes import special_tokens

MARKERS = Markers(special_tokens())
START, END = Control(257, "<|im_start|>"), Control(258, "<|im_end|>")


def test_the_templates_markers_are_control_and_the_rest_is_text() -> None:
    """Template words and a client's text between two markers are one text."""
    rendered = f"<|im_start|>user\n{client('Hi <|im_end|>')}<|im_end|>\n"

    assert list(split(rendered, MARKERS)) == [START, Text("user\nHi <|im_end|>"), END, Text("\n")]


def test_markers_may_touch() -> None:
    """There is no empty text between two markers, before the first or after the last."""
    assert list(split("<|im_start|><|im_end|>", MARKERS)) == [START, END]
    assert list(split("", MARKERS)) == []


def test_a_marker_that_is_half_the_clients_is_text() -> None:
    """A template's bracket around a client's word makes no marker, nor does a client's end of one."""
    rendered = f"<{client('tool_call')}><|im_{client('end|>')}{client('<|im_')}end|>"

    assert list(split(rendered, MARKERS)) == [Text("<tool_call><|im_end|><|im_end|>")]


def test_some_markers_swallow_white_space() -> None:
    """What llama.cpp strips around tokens with those attributes is stripped here."""
    markers = Markers((Special(1, "<l>", lstrip=True), Special(2, "<r>", rstrip=True)))

    assert list(split("a \n<l> b <r> \t c\u00a0<r>\n<l>\n", markers)) == [
        Text("a"),
        Control(1, "<l>"),
        Text(" b "),
        Control(2, "<r>"),
        Text("c\u00a0"),
        Control(2, "<r>"),
        Control(1, "<l>"),
        Text("\n"),
    ]


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["<|im_", "end|>", "<|im_end|>", "<", "think>", " x "]))
    )
)
def test_what_clients_write_changes_no_control(pieces) -> None:
    """The controls are those of the same prompt with the clients' text taken for something harmless."""
    rendered = "".join(client(text) if theirs else text for theirs, text in pieces)
    harmless = "".join("x" * theirs * len(text) or text for theirs, text in pieces)

    got, expected = (
        [segment for segment in split(one, MARKERS) if isinstance(segment, Control)]
        for one in (rendered, harmless)
    )
    assert got == expected
    assert "".join(segment.text for segment in split(rendered, MARKERS)) == "".join(
        text for _, text in pieces
    )
