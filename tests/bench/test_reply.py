from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from bench.reply import Answer, read
from tests.bench.wire import answer, completed, delta, event

BODY = event("response.created") + delta("Hé") + delta("llo") + delta(" you") + completed()


def arrivals(data, cuts=()):
    ends = sorted({*cuts, len(data)})
    starts = [0, *ends[:-1]]
    return [(float(at), data[start:end]) for at, (start, end) in enumerate(zip(starts, ends, strict=True))]


@given(st.none() | st.integers(1, 90), st.data())
def test_any_cutting_of_the_bytes_reads_the_same(chunk, data) -> None:
    """However HTTP frames the stream and the network cuts it, the same answer is read, times aside."""
    wire = answer(BODY, chunk=chunk)
    cuts = data.draw(st.lists(st.integers(1, len(wire) - 1), max_size=12))

    found = read(arrivals(wire, cuts), sent=0.0)

    assert msgspec.structs.replace(found, times=(), ended=0.0) == Answer(
        sent=0.0, ended=0.0, text="Héllo you", input_tokens=7, output_tokens=3, cached_tokens=2
    )
    assert len(found.times) == 3


def test_times_are_those_of_the_pieces() -> None:
    """First token, gaps and total are taken from when the bytes came."""
    parts = [answer(event("response.created")), delta("a"), delta("b") + delta("c"), completed()]

    found = read(zip([1.0, 2.0, 5.0, 9.0], parts, strict=True), sent=0.5)

    assert (found.first, found.total, found.gaps) == (1.5, 8.5, [3.0, 0.0])


def test_gaps_within_a_time_are_those_that_overlap_it() -> None:
    """A gap that begins before the time or ends after it counts, one that lies outside does not."""
    found = Answer(sent=0.0, ended=9.0, times=(1.0, 2.0, 4.0, 7.0, 7.5))

    assert found.gaps_within(2.5, 5.0) == [2.0, 3.0]


def test_an_empty_delta_is_no_token() -> None:
    """What carries no text does not count as a piece of it."""
    assert len(read(arrivals(answer(delta("") + delta("a") + completed())), sent=0.0).times) == 1


def test_an_answer_that_was_cut_short_is_an_answer() -> None:
    """`response.incomplete` is how every answer ends that reaches its limit of tokens."""
    wire = answer(delta("a") + completed(kind="response.incomplete"))

    assert read(arrivals(wire), sent=0.0).failure == ""


def test_the_mark_behind_the_last_event_is_no_event() -> None:
    """Servers that write `[DONE]` at the end are understood."""
    assert read(arrivals(answer(delta("a") + completed() + b"data: [DONE]\n\n")), sent=0.0).output_tokens == 3


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (answer(b'{"error":"no"}', status=503, chunk=5), '503: {"error":"no"}'),
        (answer(delta("a")), "the stream broke off"),
        (answer(delta("a") + event("response.failed", response={"error": "bad"})), "bad"),
        (answer(completed()), "not one piece of text"),
        (b"", "0: "),
    ],
    ids=["refused", "broken off", "failed", "empty", "nothing"],
)
def test_an_answer_of_no_use_says_why(wire, said) -> None:
    """A refusal, a stream that ends early, a failure and an answer without text are failures."""
    assert said in read(arrivals(wire), sent=0.0).failure
