from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from b3node.service.timing import Phase, Stopwatch

PARTS: tuple[Phase, ...] = ("read", "parse", "prepare", "queue", "prefill")


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_phases_are_milliseconds_from_the_head() -> None:
    """A phase is what its block took, and the total counts from the moment the stopwatch was made."""
    clock = Hands()
    watch = Stopwatch(clock)
    clock.now += 0.010
    with watch.phase("parse"):
        clock.now += 0.0021

    assert pytest.approx(2.1) == watch.get("parse")
    assert watch.get("queue") is None
    assert watch.header(total=True) == "parse;dur=2.1, total;dur=12.1"


def test_a_phase_counts_even_when_it_fails() -> None:
    """A refusal in the middle of a phase still leaves the time that it took."""
    clock = Hands()
    watch = Stopwatch(clock)

    def fail() -> None:
        with watch.phase("prepare"):
            clock.now += 0.5
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert watch.header(total=False) == "prepare;dur=500.0"


@given(st.floats(-1e3, 1e12, allow_nan=False))
def test_durations_are_fixed_point_and_never_negative(milliseconds: float) -> None:
    """Whatever a duration is, it is written in fixed point with one decimal, without sign or exponent."""
    watch = Stopwatch(Hands())
    watch.set("queue", milliseconds)

    assert re.fullmatch(r"queue;dur=\d+\.\d", watch.header(total=False))


@given(st.lists(st.floats(0, 5), min_size=len(PARTS), max_size=len(PARTS)))
def test_the_parts_sum_to_no_more_than_the_total(durations: list[float]) -> None:
    """Phases that do not overlap cannot take longer than the whole, give or take rounding."""
    clock = Hands()
    watch = Stopwatch(clock)
    for phase, seconds in zip(PARTS, durations, strict=True):
        with watch.phase(phase):
            clock.now += seconds
    spent = dict(re.findall(r"(\w+);dur=([\d.]+)", watch.header(total=True)))

    assert sum(float(spent[phase]) for phase in PARTS) <= float(spent["total"]) + 1


def test_the_extension_has_the_first_token_on_streams_and_the_model_without() -> None:
    """`b3os.timing` carries `ttft_ms` on a stream and `model_ms` in a body, and the total in both."""
    clock = Hands()
    watch = Stopwatch(clock)
    watch.set("ttft", 12.34)
    watch.set("model", 56.78)
    clock.now += 0.1

    stream, body = watch.of_stream(), watch.of_body()

    assert (stream.ttft_ms, stream.total_ms) == (12.3, 100.0)
    assert (body.model_ms, body.total_ms) == (56.8, 100.0)
