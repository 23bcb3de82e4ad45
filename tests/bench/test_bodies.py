from __future__ import annotations

import pytest

from b3node import embedded
from b3node.llama.vocab import Vocabulary
from bench import bodies
from bench.scenarios import FULL, PROMPT


@pytest.fixture(scope="module")
def vocabulary():
    try:
        return Vocabulary.load(str(embedded.find()))
    except embedded.EmbeddedModelError as error:
        pytest.skip(str(error))


def test_words_are_tokens(vocabulary) -> None:
    """Each word is one token behind a space, so lengths in words are lengths in tokens."""
    assert [word for word in bodies.WORDS if len(vocabulary.tokenize(f" {word}", continues=True)) != 1] == []


def test_texts_are_repeatable_and_of_their_seed_alone() -> None:
    """Every server is asked the same; two seeds share nothing but by chance."""
    assert bodies.words("a", 50) == bodies.words("a", 50)
    assert bodies.words("a", 50).split()[:8] != bodies.words("b", 50).split()[:8]
    assert len(bodies.words("a", 50).split()) == 50


def test_the_shared_prefix_has_831_tokens(vocabulary) -> None:
    """What sixteen prompts begin with, in the model's template, is as long as the figures say."""
    prefix = bodies.words("any", FULL.prefix)
    text = f"<|im_start|>system\n{prefix}<|im_end|>\n<|im_start|>user\n"

    assert len(vocabulary.tokenize(text, parse_special=True)) == 831


def test_the_raw_loop_computes_prompts_as_long_as_a_storys(vocabulary) -> None:
    """In the model's template, which names its default system prompt, a story's prompt has so many tokens."""
    system = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
    )
    story = bodies.story("any", "seed", output=1)["input"]
    text = f"{system}<|im_start|>user\n{story}<|im_end|>\n<|im_start|>assistant\n"

    assert len(vocabulary.tokenize(text, parse_special=True)) == PROMPT


def test_a_conversation_sends_everything_back() -> None:
    """The history goes in front of the new message, answers as items of the assistant."""
    history = [bodies.result("a", 3), bodies.said("Well."), bodies.result("b", 3)]

    body = bodies.turn("m", "Be an agent.", history, output=5)

    assert body["instructions"] == "Be an agent."
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]
    assert body["input"] is not history
