"""Loading: what a model says of itself, how far it is, and every file that cannot be served."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from b3node.config import EngineOptions
from b3node.engine.plan import Plan
from b3node.llama import model as module
from b3node.llama.model import LoadError, Model
from tests.llama import damaged
from tests.llama.loaded import EXACT, chunk, ids, loaded
from tests.zoo import reference
from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.zoo import Zoo


def silent(_: float) -> None:
    """Progress that nobody follows."""


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_family_is_loaded_and_described(zoo: Zoo, arch: Arch) -> None:
    """Sizes, training length, device and description are those of the file and of what was asked."""
    with loaded(zoo.random(arch, context=1234)) as model:
        assert (model.n_ctx, model.cells, model.n_ctx_train) == (512, 1024, 1234)
        assert model.vocabulary.n_vocab == 281
        assert model.vocabulary.eog == {274, 276}
        assert model.device == "CPU, 1 thread"
        assert arch in model.description


def test_a_model_is_ready_for_its_first_request(zoo: Zoo) -> None:
    """The decode that proves a model leaves nothing behind: the first prompt is computed as if alone."""
    for arch in ("llama", "qwen35"):
        path = zoo.random(arch)
        with loaded(path) as model:
            row = model.backend.run(Plan(chunks=(chunk(0, 0, ids(1, 30)),)))[0]
            assert np.abs(row - reference.logits(path, ids(1, 30))).max() < 1e-4


def test_one_sequence_is_no_longer_than_all_cells(zoo: Zoo) -> None:
    """A short training length bounds a sequence, the cache is what llama.cpp rounds it up to."""
    with loaded(zoo.random("llama", context=100), EngineOptions(threads=1)) as model:
        assert (model.n_ctx, model.cells) == (100, 256)


@pytest.mark.parametrize("n_layer", [1, 40])
def test_progress_goes_from_nothing_to_all(zoo: Zoo, n_layer: int) -> None:
    """Shares rise, each by a hundredth at least, and the last one is 1, however many tensors there are."""
    reported: list[float] = []
    Model.load(str(zoo.random("llama", n_layer=n_layer)), EXACT, reported.append)
    assert reported == sorted(set(reported))
    assert reported[0] == 0
    assert reported[-1] == 1
    assert len(reported) <= 102


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "only a magic": lambda good: good[:4],
    "half a header": lambda good: good[:3000],
    "half": lambda good: good[: len(good) // 2],
    "one byte short": lambda good: good[:-1],
    "garbage": lambda _: bytes(np.random.default_rng(0).integers(0, 256, 5000, np.uint8)),
    "text": lambda _: b"It was the best of times, it was the worst of times." * 99,
    "of another version": lambda good: good[:4] + b"\xff\0\0\0" + good[8:],
    "with endless keys": lambda good: good[:16] + b"\xff" * 8 + good[24:],
    "with endless tensors": lambda good: good[:8] + b"\xff" * 8 + good[16:],
    "of an unknown family": lambda good: good.replace(b"llama", b"lloma"),
    "with an unknown tokenizer": lambda good: good.replace(b"gpt2", b"gpt9"),
    "without a tensor": lambda good: good.replace(b"blk.1.attn_q.weight", b"blk.1.attn_Q.weight"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_is_no_model_is_a_load_error(zoo: Zoo, tmp_path: Path, what: str) -> None:
    """Whatever is wrong with a file, loading it says that it cannot be loaded, names it, and keeps quiet."""
    path = tmp_path / "x.gguf"
    path.write_bytes(BROKEN[what](zoo.random("llama").read_bytes()))
    with pytest.raises(LoadError, match=r"x\.gguf is not a model") as caught:
        Model.load(str(path), EXACT, silent)
    assert "llama_model_load" in str(caught.value)


def test_a_file_cut_anywhere_is_a_load_error(zoo: Zoo, tmp_path: Path) -> None:
    """A download that stopped is refused wherever it stopped."""
    path, good = tmp_path / "x.gguf", zoo.random("llama").read_bytes()
    for size in sorted(int(size) for size in np.random.default_rng(1).integers(1, len(good), 40)):
        path.write_bytes(good[:size])
        with pytest.raises(LoadError):
            Model.load(str(path), EXACT, silent)


@pytest.mark.parametrize("path", ["/nonexistent/x.gguf", "/", "/dev/null", ""])
def test_what_is_no_file_is_a_load_error(path: str) -> None:
    """A missing file, a folder and a device are not opened at all."""
    with pytest.raises(LoadError, match="there is no file"):
        Model.load(path, EXACT, silent)


def test_errors_of_an_earlier_load_are_not_told_again(tmp_path: Path) -> None:
    """Each refusal gives the library's words on its own file."""
    (tmp_path / "first.gguf").write_bytes(b"")
    (tmp_path / "second.gguf").write_bytes(b"nothing of that kind")
    for name in ("first.gguf", "second.gguf"):
        with pytest.raises(LoadError) as caught:
            Model.load(str(tmp_path / name), EXACT, silent)
    assert "first" not in str(caught.value)


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (damaged.with_nan, "invalid data"),
        (damaged.overflowing, "gave no numbers"),
        (damaged.without_vocabulary, "no vocabulary"),
    ],
)
def test_a_model_that_would_say_nothing_is_a_load_error(
    tmp_path: Path, write: Callable[[Path], None], words: str
) -> None:
    """Weights that are not numbers or give none, or that come without tokens, are found before serving."""
    write(tmp_path / "x.gguf")
    with pytest.raises(LoadError, match=words):
        Model.load(str(tmp_path / "x.gguf"), EXACT, silent)


@pytest.mark.parametrize("flash_attention", [True, False])
def test_a_context_that_cannot_be_made_is_a_load_error(zoo: Zoo, flash_attention: bool) -> None:
    """A cache whose blocks are wider than the heads, or that needs flash attention, is told with the
    reason.
    """
    settings = msgspec.structs.replace(EXACT, kv_type="q8_0", flash_attention=flash_attention)
    with pytest.raises(LoadError, match=r"1024 cells can be made: .*(q8_0|quantized)"):
        Model.load(str(zoo.random("llama")), settings, silent)


def test_a_model_may_be_replaced_while_it_is_served(zoo: Zoo, tmp_path: Path) -> None:
    """Renaming another file over a loaded one, as an update does, changes nothing for who has it loaded."""
    path = tmp_path / "x.gguf"
    path.write_bytes(zoo.random("llama").read_bytes())
    with loaded(path) as model:
        (tmp_path / "new").write_bytes(b"something else")
        (tmp_path / "new").replace(path)
        row = model.backend.run(Plan(chunks=(chunk(0, 0, ids(1, 30)),)))[0].copy()
    assert np.abs(row - reference.logits(zoo.random("llama"), ids(1, 30))).max() < 1e-4


@pytest.mark.parametrize("room", [0, 1 << 40])
def test_weights_are_read_or_mapped_as_there_is_room(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """A file that is mapped stays so while it is served; one that was read is not in the process any more."""
    path = zoo.random("llama")
    monkeypatch.setattr(module, "free_memory", lambda: room)
    with loaded(path) as model:
        model.prove()
        mapped = str(path) in Path("/proc/self/maps").read_text()
    assert mapped == (room == 0)
