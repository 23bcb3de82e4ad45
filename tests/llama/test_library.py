"""What this build of llama.cpp does and what this room relies on, so that an upgrade shows what it
changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from b3node.config import EngineOptions
from b3node.engine.plan import Drop, Plan, Share
from b3node.llama import library
from b3node.llama.library import lib
from b3node.llama.model import LoadError, Model
from tests.llama import damaged
from tests.llama.loaded import EXACT, chunk, ids, loaded
from tests.zoo import reference
from tests.zoo.architectures import ARCHITECTURES, Arch
from tests.zoo.zoo import Zoo

ROOT = Path(__file__).parents[2]
ABORTED = -6
ENDINGS = {
    "a good step": 0,
    "a batch beyond n_batch": ABORTED,
    "more rows than n_outputs_max": ABORTED,
    "fewer outputs than sequences": ABORTED,
    "a step in a sequence beyond n_seq_max": 0,
    "a step with a token beyond the vocabulary": 0,
    "forgetting a sequence beyond n_seq_max": 0,
    "forgetting a sequence beyond 256": ABORTED,
    "the piece of a token beyond the vocabulary": ABORTED,
    "the piece of a token below 0": ABORTED,
    "257 sequences": 0,
    "a file with two equal tokens": ABORTED,
}


@pytest.fixture(scope="module")
def endings(zoo: Zoo, tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """How each child of `aborts.py` ended."""
    twins = tmp_path_factory.mktemp("twins") / "x.gguf"
    damaged.with_twins(twins)
    ran = subprocess.run(
        [sys.executable, ROOT / "tests/llama/aborts.py", zoo.random("llama"), twins],
        env={**os.environ, "GGML_NO_BACKTRACE": "1"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    found: dict[str, int] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("what", ENDINGS)
def test_what_ends_the_process_is_known(endings: dict[str, int], what: str) -> None:
    """What aborts must be checked before it is passed on; where this changes, checks may go or must come."""
    assert endings[what] == ENDINGS[what]


def test_every_ending_is_expected(endings: dict[str, int]) -> None:
    """The program tries what the table says, and nothing else."""
    assert endings.keys() == ENDINGS.keys()


def test_the_library_is_quiet_and_its_last_words_are_kept(
    tmp_path: Path, zoo: Zoo, capfd: pytest.CaptureFixture[str]
) -> None:
    """Loads, good and bad, print nothing; the newest few warnings and errors are there for the log."""
    (tmp_path / "x.gguf").write_bytes(b"no model")
    with loaded(zoo.random("llama")):
        pass
    for _ in range(9):
        with pytest.raises(LoadError):
            Model.load(str(tmp_path / "x.gguf"), EXACT, lambda _: None)
    assert capfd.readouterr() == ("", "")
    assert "x.gguf" in library.last_words()
    assert 1 <= len(library.last_words().split("; ")) <= 8


def test_only_warnings_and_errors_are_kept() -> None:
    """Debug and information lines, dots of progress and empty lines are no words; broken UTF-8 is bridged."""
    library.begin()
    for level in range(6):
        library._on_log(level, b"level %d\n" % level, None)
    for text in (None, b"", b".....", b" \n"):
        library._on_log(4, text, None)
    library._on_log(4, b"ca\xc3", None)
    assert library.last_words() == "level 3; level 4; level 5; ca\ufffd"


def test_no_debugger_is_started_for_a_backtrace() -> None:
    """An abort ends the process at once: the library was told so before it was loaded."""
    assert os.environ["GGML_NO_BACKTRACE"] == "1"


def _positions(model: Model, slot: int) -> tuple[int, int]:
    memory = lib.llama_get_memory(model.backend._pointer)
    return lib.llama_memory_seq_pos_min(memory, slot), lib.llama_memory_seq_pos_max(memory, slot)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_windows_lose_what_is_behind_them(zoo: Zoo, arch: Arch) -> None:
    """Once others want the room, a slot of a windowed model is left with its end, in a full-size cache too.

    A share from its middle is then wrong without an error: the reason why such models need states.
    """
    path = zoo.random(arch)
    with loaded(
        path, EngineOptions(ctx=256, cells=512, threads=1, flash_attention=False, kv_type="f32")
    ) as model:
        run = model.backend.run
        run(Plan(chunks=(chunk(0, 0, ids(5, 100)),)))
        run(Plan(chunks=(chunk(1, 0, ids(1, 100)),)))
        run(Plan((Drop(0),), (chunk(2, 0, ids(6, 150)),)))
        run(Plan(chunks=(chunk(2, 150, ids(7, 50)),)))
        first, last = _positions(model, 1)
        assert last == 99
        if ARCHITECTURES[arch].recurrent:
            assert first == 99
            return
        assert first == (85 if ARCHITECTURES[arch].window else 0)
        row = run(Plan((Share(1, 3, 50),), (chunk(3, 50, [5]),)))[0]
        wrong = np.abs(row - reference.logits(path, [*ids(1, 50), 5])).max() > 0.1
        assert wrong == ARCHITECTURES[arch].window


@pytest.mark.parametrize("arch", ["qwen35", "qwen35moe", "qwen3next"])
def test_a_recurrent_state_cannot_be_cut(zoo: Zoo, arch: Arch) -> None:
    """Removing the end of a hybrid's sequence is refused and changes nothing; removing all of it works."""
    with loaded(zoo.random(arch)) as model:
        model.backend.run(Plan(chunks=(chunk(0, 0, ids(1, 50)),)))
        memory = lib.llama_get_memory(model.backend._pointer)
        assert not lib.llama_memory_seq_rm(memory, 0, 30, -1)
        assert _positions(model, 0) == (49, 49)
        assert lib.llama_memory_seq_rm(memory, 0, -1, -1)
        assert _positions(model, 0) == (-1, -1)


def test_the_packages_model_classes_are_not_imported() -> None:
    """An engine imports the C functions alone; whoever asks for the package gets it, over the same
    library.
    """
    program = (
        "import sys; from b3node.llama.library import lib; early = 'llama_cpp.llama' in sys.modules; "
        "import llama_cpp; print(early, llama_cpp.llama_cpp is lib, 'llama_cpp.llama' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "False True True\n"
