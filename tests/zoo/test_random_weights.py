"""Models with random weights: each family is what it claims to be, and feels every token of its prompt."""

from __future__ import annotations

import ctypes
from pathlib import Path

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it
import numpy as np
import pytest

from tests.zoo.architectures import ARCHITECTURES, EXPERTS, WINDOW, Arch
from tests.zoo.random_weights import random_model
from tests.zoo.reference import Model, logits, opened
from tests.zoo.zoo import Zoo

ALL = pytest.mark.parametrize("arch", ARCHITECTURES)
PROMPT = [int(token) for token in np.random.default_rng(5).integers(0, 256, 100)]


def _meta(model: Model, key: str) -> str | None:
    buffer = ctypes.create_string_buffer(64)
    size = L.llama_model_meta_val_str(model.handle, key.encode(), buffer, len(buffer))
    return None if size < 0 else buffer.value.decode()


@ALL
@pytest.mark.parametrize("position", [0, 3, 50, 97])
def test_every_prompt_token_changes_the_logits(zoo: Zoo, arch: Arch, position: int) -> None:
    """One token replaced, early or late, moves some logit far beyond the noise of summation (1e-4)."""
    changed = [*PROMPT[:position], (PROMPT[position] + 1) % 256, *PROMPT[position + 1 :]]
    before, after = (logits(zoo.random(arch), prompt) for prompt in (PROMPT, changed))
    assert np.isfinite(before).all()
    assert before.std() > 1
    assert np.abs(before - after).max() > 0.01


@ALL
def test_positions_matter(zoo: Zoo, arch: Arch) -> None:
    """A prompt without its first token, or with two tokens swapped, gives other logits."""
    whole = logits(zoo.random(arch), PROMPT)
    swapped = [*PROMPT[:10], PROMPT[11], PROMPT[10], *PROMPT[12:]]
    for other in (PROMPT[1:], swapped):
        assert np.abs(whole - logits(zoo.random(arch), other)).max() > 0.005


@ALL
def test_a_seed_is_a_file(tmp_path: Path, arch: Arch) -> None:
    """The same seed gives the same bytes, another seed another model, and nothing else is left behind."""
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        random_model(tmp_path / name, arch, seed)
    a, b, c = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert a == b
    assert a != c


@ALL
def test_a_family_has_its_kind_of_memory(zoo: Zoo, arch: Arch) -> None:
    """Hybrids hold one state, at the last position; the rest hold every position."""
    with opened(zoo.random(arch)) as model, model.context(len(PROMPT)) as context:
        context.decode(PROMPT)
        hybrid = ARCHITECTURES[arch].recurrent
        assert L.llama_model_is_hybrid(model.handle) is hybrid
        assert context.positions == (99 if hybrid else 0, 99)


@ALL
def test_a_family_has_its_window(zoo: Zoo, arch: Arch) -> None:
    """Gemma's small cache forgets what its windows have passed; the others have no window."""
    traits = ARCHITECTURES[arch]
    with opened(zoo.random(arch)) as model, model.context(1024, swa_full=False) as context:
        assert L.llama_model_n_swa(model.handle) == (WINDOW if traits.window else 0)
        context.decode(PROMPT * 10)
        first, last = context.positions
        assert last == 999
        if traits.window:
            assert 0 < first <= 1000 - WINDOW
        else:
            assert first == (999 if traits.recurrent else 0)


@ALL
def test_a_family_has_its_experts(zoo: Zoo, arch: Arch) -> None:
    """Mixtures say how many experts they have, dense models say nothing."""
    with opened(zoo.random(arch), vocab_only=True) as model:
        stored = _meta(model, f"{arch}.expert_count")
        assert stored == (str(EXPERTS) if ARCHITECTURES[arch].experts else None)


def test_layers_and_context_are_chosen(zoo: Zoo) -> None:
    """The number of layers and the trained context are in the file."""
    with opened(zoo.random(n_layer=3, context=1000)) as model:
        assert L.llama_model_n_layer(model.handle) == 3
        assert L.llama_model_n_ctx_train(model.handle) == 1000


@pytest.mark.parametrize(("arch", "n_layer"), [("llama", 0), ("qwen35", 1), ("gemma3", 1)])
def test_too_few_layers_are_refused(tmp_path: Path, arch: Arch, n_layer: int) -> None:
    """A model without layers would abort llama.cpp; one layer shows one kind only."""
    with pytest.raises(ValueError, match="layers"):
        random_model(tmp_path / "x", arch, n_layer=n_layer)
    assert not list(tmp_path.iterdir())
