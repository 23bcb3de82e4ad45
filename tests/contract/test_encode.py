"""Values to bytes: frames that every reader can cut, and bodies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from b3node.contract.encode import error_body, response_body, sse_frame
from b3node.contract.events import OutputTextDelta
from b3node.contract.response import Response
from b3node.errors import HTTP, Code, Refusal
from b3node.events.fold import fold
from tests.events.streams import FAILURE, REQUEST, compose, ended, text


def test_a_frame_is_an_event_line_a_data_line_and_an_empty_line() -> None:
    """Exactly these bytes: LF, one line of JSON, the type twice."""
    assert sse_frame(OutputTextDelta(4, "msg_1", 0, 0, "Hi\n")) == (
        b"event: response.output_text.delta\n"
        b'data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,'
        b'"content_index":0,"delta":"Hi\\n","logprobs":[]}\n'
        b"\n"
    )


@given(st.text() | st.sampled_from(["\r\n\r\n", "\x85", "\u2028a\u2029", "\\\u2028", "\x0b\x0c\x1c\x1d\x1e"]))
def test_no_text_can_break_a_frame(written: str) -> None:
    """For any text, bytes and decoded text split into three lines, and the text is unharmed."""
    frame = sse_frame(OutputTextDelta(0, "msg_1", 0, 0, written))
    event, data, empty = frame.decode().splitlines()
    assert (event, empty) == ("event: response.output_text.delta", "")
    assert len(frame.splitlines()) == 3
    assert frame.endswith(b"\n\n")
    assert json.loads(data.removeprefix("data: "))["delta"] == written


def test_all_frames_of_a_stream_are_cut_at_their_empty_lines_alone() -> None:
    """A stream is its frames, one after another; the event line always agrees with the data."""
    events = compose(text("a\n\nb", "\r\n"), FAILURE)
    blocks = b"".join(map(sse_frame, events)).split(b"\n\n")
    assert blocks.pop() == b""
    assert len(blocks) == len(events)
    for block in blocks:
        event, data = block.split(b"\n")
        assert event.removeprefix(b"event: ").decode() == json.loads(data.removeprefix(b"data: "))["type"]


def test_the_body_equals_the_streams_last_response() -> None:
    """With and without streaming a client gets the same bytes of the same response."""
    events = compose(text("Grüße"))
    assert response_body(fold(events)) == response_body(ended(events))
    assert b"Gr\xc3\xbc\xc3\x9fe" in response_body(ended(events))
    assert isinstance(ended(events), Response)
    assert json.loads(response_body(ended(events)))["model"] == REQUEST.model


@pytest.mark.parametrize("code", HTTP)
def test_an_error_body_has_four_keys(code: Code) -> None:
    """Message, type, param and code, in this order, inside `error`."""
    body = error_body(Refusal(code, "No.", param="input[0]"))
    assert body == (
        f'{{"error":{{"message":"No.","type":"{HTTP[code][1]}","param":"input[0]","code":"{code}"}}}}'.encode()
    )


def test_an_error_without_param_says_null() -> None:
    """The key is there all the same."""
    assert b'"param":null' in error_body(Refusal("internal", "No."))
