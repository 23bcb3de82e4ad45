from __future__ import annotations

from b3node.contract.request import Message, Request, TextPart
from b3node.errors import Refusal
from b3node.workers.orders import Ask, Broke, Refused
from b3node.workers.prepare_process import _answer

ASK = Ask(Request(model="m", input=(Message("user", (TextPart("hi"),)),)), now=0.0, n_ctx=64)


class Failing:
    """A preparer that fails in a given way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def prepare(self, *_: object) -> None:
        raise self._error


def answer(error: Exception) -> object:
    return _answer(Failing(error), ASK)  # type: ignore[arg-type]  # stands in for a Preparer


def test_a_refusal_crosses_the_line_as_it_is() -> None:
    """Code, words and path are the client's to hear."""
    refusal = Refusal("context_length_exceeded", "Too long.", param="input")

    assert answer(refusal) == Refused("context_length_exceeded", "Too long.", "input")


def test_a_lack_of_memory_is_the_requests_fault() -> None:
    """The worker's memory is bounded by its parent, so whoever exceeds it asked for too much."""
    refused = answer(MemoryError())

    assert isinstance(refused, Refused)
    assert (refused.code, refused.param) == ("invalid_request", "input")


def test_a_bug_is_told_with_its_trace_and_survived() -> None:
    """Anything else is ours; the front logs it and tells the client nothing but the request's id."""
    broke = answer(KeyError("lost"))

    assert isinstance(broke, Broke)
    assert "KeyError: 'lost'" in broke.trace
