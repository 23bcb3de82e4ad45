from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from b3node.workers.frames import MAX_PAYLOAD_BYTES, FrameError, FrameReader, frame


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_any_chunking_gives_the_same_payloads(payloads, data) -> None:
    """However the bytes arrive, the same payloads come out, in order."""
    stream = b"".join(map(frame, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = FrameReader()

    heard = [
        payload
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        for payload in reader.feed(stream[start:end])
    ]

    assert heard == payloads


def test_an_unfinished_frame_is_kept() -> None:
    """It is given out once its last byte is there."""
    reader = FrameReader()

    assert reader.feed(frame(b"abc")[:-1]) == []
    assert reader.feed(b"c") == [b"abc"]


def test_a_length_over_the_bound_is_refused_before_its_bytes_come() -> None:
    """A peer cannot announce more than the bound."""
    with pytest.raises(FrameError):
        FrameReader().feed((MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big"))


def test_a_payload_over_the_bound_is_not_sent() -> None:
    """The bound holds on the sending side too."""
    with pytest.raises(FrameError):
        frame(bytes(MAX_PAYLOAD_BYTES + 1))
