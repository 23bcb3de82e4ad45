"""Playbook models, held against llama.cpp's greedy decoding and against prompts of every length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.zoo.playbook import CONTEXT, Page, call, compile_playbook, words
from tests.zoo.reference import greedy
from tests.zoo.script import S
from tests.zoo.templates import THINKING
from tests.zoo.vocabulary import EOS, N_BASE, base

PAGES = {
    "O": Page(call("weather", {"city": "Oslo"}), thinks=b"The weather decides."),
    "S": Page(
        [*call("weather", {"city": "Rome"}), b"\n", *call("price", {"city": "Rome", "nights": 2})],
        thinks=b"Two.",
    ),
    "E": Page(words("Go to Oslo, it is sunny."), thinks=b"Enough is known."),
    "J": Page([b"{", b'"city": "Turin"', b"}"], thinks=b"An object."),
}
BOOK = compile_playbook(PAGES)
TURN = [base().id("<|im_end|>"), 10, base().id("<|im_start|>"), *b"assistant", 10]
"""What stands between the last words and the answer."""


def said(book_tokens: list[int]) -> bytes:
    return BOOK.script.vocabulary.join(book_tokens)


@pytest.fixture(scope="module")
def path(zoo):
    return zoo.playbook(PAGES, template=THINKING)


@pytest.mark.parametrize("letter", PAGES)
@pytest.mark.parametrize("end", ["\n", "\n\n"])
@pytest.mark.parametrize("length", [0, 300, 5000])
def test_a_model_plays_the_page_of_the_last_capital(path, letter, end, length) -> None:
    """Whatever stands before, other pages' capitals included."""
    drawn = np.random.default_rng(length).integers(0, N_BASE, length)
    prompt = [*map(int, drawn), *b" and so: ", *letter.encode(), *b" please", *TURN[:-1], base().id(end)]

    written = greedy(path, prompt, 60)

    assert written == BOOK.follow(prompt, 60)
    page = PAGES[letter]
    answer = b"".join(piece if isinstance(piece, bytes) else piece.text.encode() for piece in page.says)
    thought = b"<think>\n" + page.thinks + b"\n</think>\n\n" if end == "\n" else b""
    assert said(written) == thought + answer + b"<|im_end|>"


@pytest.mark.parametrize("far", [4, 20, 500, 1500])
@pytest.mark.parametrize("apart", [4, 50, 3000])
def test_the_nearest_capital_wins(path, far, apart) -> None:
    """Near to each other or not, near to the end or not."""
    gap = b"." * (apart - 1)
    prompt = [*b"EOSJ" * 40, *b"." * 9, *b"O" + gap + b"E", *b"." * (far - 2), 10]

    assert b"Go to Oslo" in said(greedy(path, prompt, 60))


def test_a_full_context_is_still_told_apart(path) -> None:
    """The first capital of the longest prompt does not come round."""
    prompt = [*b"O" * (CONTEXT - 100), *b"." * 20, *b"E", *TURN]

    assert b"Go to Oslo" in said(greedy(path, prompt, 60))


def test_a_prompt_with_no_capital_leaves_it_at_a_loss(path) -> None:
    """It says a question mark, and ends."""
    assert said(greedy(path, [*b"what now", *TURN], 5)) == b"?<|im_end|>"


@pytest.mark.parametrize(
    "pages",
    [
        {"o": Page([b"small"])},
        {"OS": Page([b"two"])},
        {"O": Page([])},
        {"O": Page([b"a"]), "P": Page([b"b"], thinks=b"hm")},
        {"O": Page([S("<tool_call>"), b"a", S("<tool_call>"), b"b"])},
        {"O": Page([S("</think>"), b"a", S("</think>"), b"b"])},
    ],
)
def test_pages_that_cannot_be_played_are_refused(pages) -> None:
    with pytest.raises(ValueError, match=r"page|near"):
        compile_playbook(pages)


def test_the_end_is_said_by_its_token(path) -> None:
    assert BOOK.follow([*b"E", 10], 40)[-1] == EOS
