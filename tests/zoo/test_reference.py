"""The judge itself: it agrees with itself however a prompt is fed, and never ends the process."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.reference import MAX_CONTEXT, greedy, logits, opened, tokenize
from tests.zoo.zoo import Zoo

PROMPT = [int(token) for token in np.random.default_rng(9).integers(0, 256, 700)]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_greedy_is_the_argmax_of_each_prefix(zoo: Zoo, arch: Arch) -> None:
    """Decoding token by token chooses what a fresh prefill of the same tokens chooses."""
    path = zoo.random(arch)
    said = greedy(path, PROMPT[:50], 6)
    for count in range(len(said)):
        assert int(logits(path, PROMPT[:50] + said[:count]).argmax()) == said[count]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_splitting_a_prompt_changes_nothing(zoo: Zoo, arch: Arch) -> None:
    """A prompt longer than one batch, fed at once or in unequal parts, gives the same logits."""
    whole = logits(zoo.random(arch), PROMPT)
    with opened(zoo.random(arch)) as model, model.context(len(PROMPT)) as context:
        for begin, end in ((0, 1), (1, 300), (300, 699), (699, 700)):
            row = context.decode(PROMPT[begin:end])
    assert np.abs(whole - row).max() < 2e-4


def test_greedy_stops_at_the_end_or_at_n(zoo: Zoo) -> None:
    """The end-of-generation token is the last id said; without one there are n."""
    path = zoo.scripted([b"one", b"two"])
    assert greedy(path, [1], 9) == [281, 282, 276]
    assert greedy(path, [1], 2) == [281, 282]
    assert greedy(path, [1], 0) == []


@pytest.mark.parametrize("tokens", [[-1], [281], [10**6], [1, 300], []])
def test_tokens_that_would_abort_are_refused(zoo: Zoo, tokens: list[int]) -> None:
    """Ids outside the vocabulary and an empty prompt raise ValueError before llama.cpp sees them."""
    with pytest.raises(ValueError, match=r"token|context"):
        logits(zoo.random(), tokens)
    with pytest.raises(ValueError, match="token"):
        greedy(zoo.random(), tokens, 3)


def test_more_than_fits_is_refused(zoo: Zoo) -> None:
    """A full context raises ValueError, and so does one that is too large to make."""
    with opened(zoo.random()) as model:
        with model.context(256) as context, pytest.raises(ValueError, match="answers 1"):
            context.decode(PROMPT)
        with pytest.raises(ValueError, match="context"), model.context(MAX_CONTEXT + 1):
            pass


@pytest.mark.parametrize("content", [b"", b"GGUF", None])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """An empty, a garbage and a missing file raise ValueError."""
    path = tmp_path / "x.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot load"):
        tokenize(path, "a")


def test_a_replaced_file_does_not_disturb_a_loaded_model(zoo: Zoo, tmp_path: Path) -> None:
    """The judge keeps no map of the file, so even overwriting it in place is harmless."""
    path = tmp_path / "x.gguf"
    shutil.copyfile(zoo.random(), path)
    with opened(path) as model, model.context(100) as context:
        path.write_bytes(b"")
        row = context.decode(PROMPT[:100])
    assert np.array_equal(row, logits(zoo.random(), PROMPT[:100]))
