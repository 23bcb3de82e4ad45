"""Where thoughts, text and calls begin and end, and what is text although it looks like a marker."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from b3node.dialects.dialect import GENERIC, PLAIN, Calls, Dialect, JsonArguments, NamedBody, ObjectBody, Span
from b3node.dialects.outline import Reading
from b3node.parse.channels import MAX_SPACE_BYTES, Channels, Piece
from b3node.parse.code import CodeSpans
from b3node.parse.markers import MAX_MARKER_BYTES

SPELLED = Reading(Dialect(Span("<think>", "</think>"), calls=GENERIC), calls=True)
SPECIAL = Reading(
    SPELLED.dialect, calls=True, specials=("<think>", "</think>", "<tool_call>", "</tool_call>")
)
BARE = Reading(Dialect(calls=Calls(ObjectBody(), bare=True)), calls=True)
MARKED = Reading(
    Dialect(
        Span("<|a|>", "<|z|>"),
        Span("<|t|>", "<|z|>"),
        Calls(ObjectBody(), open=("to=",)),
        skipped=("<|s|>who",),
    ),
    calls=True,
    specials=("<|a|>", "<|t|>", "<|z|>", "<|s|>"),
)


def merged(pieces: list[Piece]) -> list[Piece]:
    out: list[Piece] = []
    for channel, data in pieces:
        if out and out[-1][0] == channel:
            out[-1] = (channel, out[-1][1] + data)
        else:
            out.append((channel, data))
    return out


def cut(reading: Reading, data: bytes, size: int = 1) -> list[Piece]:
    channels = Channels(reading)
    pieces = [piece for at in range(0, len(data), size) for piece in channels.feed(data[at : at + size])]
    return merged(pieces + channels.finish())


@pytest.mark.parametrize(
    ("reading", "data", "pieces"),
    [
        (SPELLED, b"a<tool_call>{", [("text", b"a"), ("call", b"{")]),
        (SPELLED, b"a `<tool_call>{` b", [("text", b"a `<tool_call>{` b")]),
        (SPELLED, b"``a ` b`` <tool_call>x", [("text", b"``a ` b``"), ("call", b"x")]),
        (SPELLED, b"```\n<think>\n````\n<tool_call>x", [("text", b"```\n<think>\n````"), ("call", b"x")]),
        (SPELLED, b"````\n```\n<tool_call>\n````", [("text", b"````\n```\n<tool_call>\n````")]),
        (SPELLED, b"  ```py\nx ```\n<tool_call>", [("text", b"  ```py\nx ```\n<tool_call>"[2:])]),
        (SPELLED, b"```one line``` <tool_call>x", [("text", b"```one line```"), ("call", b"x")]),
        (SPELLED, b"a ``` b\n<tool_call>x", [("text", b"a ``` b"), ("call", b"x")]),
        (SPELLED, b"<think>`a</think>b<tool_call>c", [("thinking", b"`a"), ("text", b"b"), ("call", b"c")]),
        (SPECIAL, b"a <tool_call> <think> b", [("text", b"a <tool_call> <think> b")]),
        (SPECIAL, b"`\xff<tool_call>x", [("text", b"`"), ("call", b"x")]),
        (SPECIAL, b"\xff<think>a</think>b\xff</think>c", [("thinking", b"a</think>b"), ("text", b"c")]),
        (SPECIAL, b"a\xff</think>b\xff</tool_call>", [("text", b"ab</tool_call>")]),
        (SPECIAL, b"a\xffb", [("text", b"a\xffb")]),
        (BARE, b' {"name": "f', [("call", b'{"name": "f')]),
        (BARE, b'{"name": 1}', [("text", b'{"name": 1}')]),
        (BARE, b'a {"name": "f', [("text", b'a {"name": "f')]),
        (MARKED, b"\xff<|t|>a to=x \xff<|z|>\xff<|s|>who to={", [("text", b"a to=x"), ("call", b"{")]),
        (MARKED, b"\xff<|t|>a\xff<|z|>\n\xff<|t|>b", [("text", b"ab")]),
        (MARKED, b"odd to=x \xff<|t|>b", [("text", b"odd to=x b")]),
        (MARKED, b"\xff<|s|>what", [("text", b"what")]),
        (Reading(PLAIN), b" <think> \n", [("text", b" <think> \n")]),
    ],
)
def test_a_marker_counts_where_it_stands_for_itself(
    reading: Reading, data: bytes, pieces: list[Piece]
) -> None:
    """Quoted, spelled out where it is a token, or at the wrong place it is text, or nothing."""
    for size in (1, 2, 3, len(data)):
        assert cut(reading, data, size) == pieces


def test_a_call_begins_with_the_bytes_behind_its_marker() -> None:
    """There is one piece for it even if nothing is behind it, and it says how the call is spelled."""
    channels = Channels(SPELLED)
    assert channels.feed(b"Hi <tool_ca") == [("text", b"Hi")]
    assert channels.held == b"<tool_ca"
    assert channels.feed(b"ll>\n{") == [("call", b"\n{")]
    assert (channels.place, channels.calls) == ("call", GENERIC)
    assert Channels(SPELLED).feed(b"<tool_call>") == [("call", b"")]


def test_a_fork_goes_on_by_itself() -> None:
    """Trying bytes on a fork changes nothing for the one it was made from, in a marker and in code too."""
    channels = Channels(SPELLED)
    channels.feed(b"a `b")
    fork = channels.fork()
    fork.feed(b"` <tool_")
    assert fork.feed(b"call>") == [("call", b"")]
    assert merged(channels.feed(b" <tool_call>c")) == [("text", b" <tool_call>c")]
    assert channels.place == "text"


def test_the_end_of_a_thought_is_known_with_its_last_byte() -> None:
    """Who bounds thoughts asks after each token."""
    channels = Channels(Reading(SPECIAL.dialect, thinking=True, specials=SPECIAL.specials))
    assert channels.feed(b"hm\xff</think") == [("thinking", b"hm")]
    before = channels.thinking
    assert channels.feed(b">") == []
    assert (before, channels.thinking, channels.place) == (True, False, "between")


@pytest.mark.parametrize("size", [1, 1000, 10_000])
def test_what_is_held_back_is_bounded(size: int) -> None:
    """White space without an end is told but for its last part; a marker without an end is none."""
    space = b"a" + b"\n" * (3 * MAX_SPACE_BYTES)
    assert cut(SPELLED, space + b"<tool_call>x", size) == [
        ("text", space[:-MAX_SPACE_BYTES]),
        ("call", b"x"),
    ]
    reading = Reading(
        Dialect(calls=Calls(ObjectBody(), section=Span("<s>", "</s>"), open=("<o>",))), calls=True
    )
    assert cut(reading, b"<s>" + b" " * 20 + b"<o>x", size) == [("call", b"x")]
    endless = b"<s>" + b" " * (2 * MAX_MARKER_BYTES) + b"<o>x"
    assert cut(reading, endless, size) == [("text", endless)]


def test_a_prompt_may_end_inside_of_a_marker() -> None:
    """The model completes it, or writes something else: what the prompt had of it is never the answer's
    text.
    """
    dialect = Dialect(
        text=Span(">>>all\n", ""), calls=Calls(NamedBody(("\n",), JsonArguments()), open=(">>>",))
    )
    reading = Reading(dialect, calls=True, begun=b">>>")
    assert cut(reading, b"all\nText") == [("text", b"Text")]
    assert cut(reading, b"alloy\n{") == [("call", b"alloy\n{")]
    assert cut(Reading(dialect, calls=False, begun=b">>>"), b"Text") == [("text", b"Text")]


def test_what_a_call_was_is_told_or_not() -> None:
    """Left, it is gone with the white space around it; refused, it is text as it was written, marks aside."""
    channels = Channels(SPECIAL)
    channels.feed(b"a \n\xff<tool_call>\n{")
    assert channels.refuse(b"\n{", b"} b") == [("text", b" \n<tool_call>\n{"), ("text", b"} b")]
    channels = Channels(SPECIAL)
    channels.feed(b"a \n\xff<tool_call>\n{}")
    assert channels.leave(b"\n b") == [("text", b"b")]


@given(st.lists(st.sampled_from(["`", "```", "~", "\n", " ", "x", "<tool_call>"])))
def test_code_is_followed_alike_in_any_cut(parts: list[str]) -> None:
    """One byte at a time or at once."""
    text = "".join(parts).encode()
    whole, single = CodeSpans(), CodeSpans()
    whole.feed(text)
    for byte in text:
        single.feed(bytes([byte]))
        single.fork().inside()
    assert whole.inside() == single.inside()
