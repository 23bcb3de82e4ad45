"""Bytes to text across the borders of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from b3node.parse.utf8 import Utf8Decoder

# Texts, random bytes, and bytes that are likely to be nearly UTF-8.
_lead = st.sampled_from(
    [b"\xc3", b"\xe2\x82", b"\xf0\x9f\x99", b"\xed\xa0", b"\xc0", b"\xf8", b"\xff", b"\xef\xbb\xbf"]
)
written = st.one_of(
    st.text().map(str.encode),
    st.binary(),
    st.lists(st.one_of(_lead, st.binary(max_size=2), st.text(max_size=3).map(str.encode))).map(b"".join),
)


def decoded(pieces: list[bytes]) -> str:
    decoder = Utf8Decoder()
    return "".join(decoder.feed(piece) for piece in pieces) + decoder.finish()


def cuts(data: st.DataObject, whole: bytes) -> list[bytes]:
    at = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    return [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]


@given(written, st.data())
def test_any_cutting_gives_what_the_whole_gives(whole: bytes, data: st.DataObject) -> None:
    """However the bytes are cut, the text is that of decoding them at once."""
    assert decoded(cuts(data, whole)) == whole.decode(errors="replace")


@given(written)
def test_one_byte_at_a_time_gives_what_the_whole_gives(whole: bytes) -> None:
    """The finest cutting of all."""
    assert decoded([bytes([byte]) for byte in whole]) == whole.decode(errors="replace")


@pytest.mark.parametrize("character", ["é", "€", "🙂", "\u2028"])
def test_a_character_split_over_tokens_arrives_whole(character: str) -> None:
    """Nothing comes out until its last byte is there, and then all of it."""
    decoder = Utf8Decoder()
    *first, last = [bytes([byte]) for byte in character.encode()]
    assert [decoder.feed(byte) for byte in first] == [""] * len(first)
    assert decoder.feed(last) == character
    assert decoder.finish() == ""


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"a\xff", b"b"], "a\ufffdb"),
        ([b"\xe2\x82"], "\ufffd"),
        ([b"\xe2", b"a"], "\ufffda"),
        ([b"\xf0\x9f", b"\xf0\x9f\x99\x82"], "\ufffd🙂"),
        ([b"\xed\xa0\x80"], "\ufffd\ufffd\ufffd"),
        ([b"\xef\xbb\xbfa"], "\ufeffa"),
    ],
)
def test_what_is_no_utf8_becomes_the_replacement_character(pieces: list[bytes], expected: str) -> None:
    """One U+FFFD for each ill-formed part, a surrogate included, and a mark at the front is kept."""
    assert decoded(pieces) == expected
