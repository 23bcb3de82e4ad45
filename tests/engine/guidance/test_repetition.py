"""What loops is found soon; what merely repeats itself is left alone."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings, strategies as st

from b3node.engine.guidance.repetition import (
    CHECK_EVERY_TOKENS,
    MAX_PERIOD_TOKENS,
    MIN_LOOP_TOKENS,
    MIN_REPEATS,
    Repetition,
    loops,
)


def found(tokens) -> int | None:
    """After how many tokens a loop is found."""
    repetition = Repetition()
    return next((at for at, token in enumerate(tokens, 1) if repetition.feed(token)), None)


def words(text: str) -> list[int]:
    """A token a word, white space and all."""
    seen: dict[str, int] = {}
    return [seen.setdefault(word, len(seen)) for word in text.replace("\n", " \n ").split(" ")]


LOOPS = {
    "a word": "wait " * 300,
    "a sentence": "Wait, let me reconsider. The answer is 17, so the answer is 17. " * 40,
    "a paragraph": (" ".join(f"w{i}" for i in range(100)) + " so, again: ") * 8,
    "after a while": " ".join(str(i) for i in range(500)) + " I think so." * 120,
}
HONEST = {
    "counting": "\n".join(f"{i}. Item number {i} is fine." for i in range(1, 300)),
    "a table": "\n".join(f"| {i} | {i * i} | {i % 3} |" for i in range(200)),
    "a matrix": "\n".join(" ".join("0" * 8) for _ in range(8)),
    "verses": "row row row your boat gently down the stream merrily merrily merrily merrily life is but a dream \n"
    * 4,
    "style": "\n".join(f".c{i} {{ margin: 0; padding: 0; border: 0; }}" for i in range(60)),
    "a proof": "\n".join(f"Is {i} even? {'yes' if i % 2 == 0 else 'no'}." for i in range(200)),
    "long refrains": (" ".join(f"w{i}" for i in range(MAX_PERIOD_TOKENS + 1)) + " ") * 10,
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_what_goes_round_in_circles_is_found(text) -> None:
    """As a word, a sentence or a paragraph."""
    assert found(words(text)) is not None


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_what_changes_or_ends_is_no_loop(text) -> None:
    """Lists, tables and code repeat their form, and short things their content."""
    assert found(words(text)) is None


@settings(max_examples=60, deadline=None)
@given(period=st.integers(1, MAX_PERIOD_TOKENS), before=st.integers(0, 700), seed=st.integers(0, 2**32))
def test_a_loop_is_found_within_its_bound(period, before, seed) -> None:
    """Not before it has gone round often enough, and at the next look after that."""
    source = random.Random(seed)
    stretch = [source.randrange(50_000) for _ in range(period)]
    tokens = [100_000 + i for i in range(before)] + stretch * (MIN_LOOP_TOKENS + 3 * CHECK_EVERY_TOKENS)
    enough = before + max(MIN_REPEATS * period, MIN_LOOP_TOKENS)

    at = found(tokens[: enough + 2 * CHECK_EVERY_TOKENS])

    assert at is not None
    assert enough <= at < enough + CHECK_EVERY_TOKENS


@settings(max_examples=60, deadline=None)
@given(period=st.integers(1, MAX_PERIOD_TOKENS), broken=st.integers(0, 10**6))
def test_one_change_is_no_loop(period, broken) -> None:
    """A stretch that differs in one token anywhere is not the same stretch."""
    span = max(MIN_REPEATS * period, MIN_LOOP_TOKENS)
    tokens = array("i", list(range(period)) * (span // period + 1))[-span:]
    assert loops(tokens.tobytes())

    tokens[broken % span] += 1000
    assert not loops(tokens.tobytes())
