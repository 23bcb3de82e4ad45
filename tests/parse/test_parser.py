"""The plain dialect."""

from __future__ import annotations

from hypothesis import given, strategies as st

from b3node.parse.deltas import Delta, TextDelta
from b3node.parse.parser import Parser, TextParser


def parsed(pieces: list[bytes]) -> list[Delta]:
    parser: Parser = TextParser()
    return [delta for piece in pieces for delta in parser.feed(piece)] + parser.finish()


@given(st.lists(st.binary(max_size=4)))
def test_all_that_is_written_is_text(pieces: list[bytes]) -> None:
    """The deltas, joined, are the decoded output; none is empty; markers mean nothing."""
    deltas = parsed([*pieces, b"<think>"])
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta)]
    assert len(texts) == len(deltas)
    assert all(texts)
    assert "".join(texts) == (b"".join(pieces) + b"<think>").decode(errors="replace")


def test_a_piece_that_completes_no_character_says_nothing() -> None:
    """A delta is never empty; a character that stays unfinished is one U+FFFD in the end."""
    parser = TextParser()
    assert parser.feed(b"") == []
    assert parser.feed(b"\xe2\x82") == []
    assert parser.finish() == [TextDelta("\ufffd")]
