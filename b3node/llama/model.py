"""Loads a GGUF file for the engine: weights, vocabulary, context, and a first decode that proves them."""

from __future__ import annotations

import ctypes
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from b3node.config import EngineOptions
from b3node.engine.backend import CellsFullError, DecodeError
from b3node.engine.plan import Chunk, Drop, Plan
from b3node.engine.sampling.sampler import NoToken, greedy
from b3node.llama import library
from b3node.llama.attention import kernel_is_slow
from b3node.llama.context import Context
from b3node.llama.huge_pages import small_pages
from b3node.llama.library import last_words, lib
from b3node.llama.settings import Fit, fit, free_memory, undecided
from b3node.llama.threads import CpuMonitor, ThreadCount
from b3node.llama.vocab import Vocabulary, VocabularyError, size

_ALL_LAYERS: Final = 999
_PROOF_TOKENS: Final = 16
"""Tokens of the first decode: computed as a prompt is, not as a single token, and yet soon done."""
_FREE_MEMORY_SHARE: Final = 2
"""Weights are read into memory of their own if they are at most one part in so many of the free memory."""
_PROGRESS_STEP: Final = 0.01
"""Progress is reported each time the share has grown by this much, and at the end."""


class LoadError(Exception):
    """Raised if the model cannot be served; the message is for the operator."""


Read = Callable[[Vocabulary], None]
"""Called with the vocabulary while the context is made."""


def _ignore(_: Vocabulary) -> None:
    """Does nothing with a vocabulary."""


class Model:
    """A loaded model: the properties that the engine's process needs, and the backend that runs it."""

    def __init__(
        self, pointer: Any, options: EngineOptions, fitted: Fit, read: Read, *, offloaded: bool
    ) -> None:
        self.fit = fitted
        self.offloaded = offloaded
        self.n_ctx_train = int(lib.llama_model_n_ctx_train(pointer))
        self.window = _window(pointer)
        self.stateful = _recurrent(pointer) or self.window > 0
        self.description = _description(pointer)
        self._threads_note = "" if options.threads else " (the physical cores, fewer while others need them)"
        self._kernel_disabled = undecided(options, offloaded=offloaded) and fitted.flash_attention is False
        self.token_bytes = self.state_bytes = 0
        self._model = pointer
        try:
            # Making a context clears the memory of its cache, and holds no lock of the interpreter meanwhile.
            with ThreadPoolExecutor(1) as executor, small_pages():
                n_vocab, reading = size(pointer), executor.submit(_read, pointer, read)
                self.backend = Context(pointer, n_vocab, fitted, offloaded=offloaded)
            self.vocabulary = reading.result()
        except VocabularyError as error:
            raise LoadError(str(error)) from error
        except MemoryError as error:
            raise LoadError(f"no context of {fitted.cells} cells can be made: {error}") from error

    @classmethod
    def load(
        cls, path: str, options: EngineOptions, progress: Callable[[float], None], read: Read = _ignore
    ) -> Model:
        """Loads `path` and decodes a few tokens.

        Args:
            path: of the GGUF file.
            options: the operator's.
            progress: called with the share loaded, 0 to 1.
            read: called with the vocabulary, on a thread of its own, while the context is made, so that
                tables of it are ready then.

        Raises:
            LoadError: with words for the operator.
        """
        if not Path(path).is_file():
            raise LoadError(f"there is no file {path}")
        library.begin()
        offloaded = bool(lib.llama_supports_gpu_offload()) and options.gpu_layers != 0
        pointer = _load(path, options.gpu_layers if offloaded else 0, progress)
        slow_kernel = undecided(options, offloaded=offloaded) and kernel_is_slow(pointer)
        fitted = fit(
            options,
            n_ctx_train=int(lib.llama_model_n_ctx_train(pointer)),
            n_head=int(lib.llama_model_n_head(pointer)),
            recurrent=_recurrent(pointer),
            offloaded=offloaded,
            slow_kernel=slow_kernel,
        )
        model = cls(pointer, options, fitted, read, offloaded=offloaded)
        model.prove()
        if not options.threads and not offloaded and sys.platform == "linux":
            # Measured from now on only: until now the node's own processes were busy with their start.
            monitor = CpuMonitor()
            threads = ThreadCount(cores=fitted.threads, logical=monitor.logical)
            model.backend.share_cores(monitor, threads)
        return model

    @property
    def n_ctx(self) -> int:
        """Tokens of one sequence."""
        return min(self.fit.n_ctx, self.cells)

    @property
    def cells(self) -> int:
        """Cells of the cache."""
        return self.backend.cells

    @property
    def device(self) -> str:
        """The device that the model computes on and the choices made for it, for people."""
        if self.offloaded:
            return "GPU"
        threads = self.fit.threads
        kernel = ", attention without the fused kernel, which is slow here" * self._kernel_disabled
        return f"CPU, {threads} thread{'s' * (threads > 1)}{self._threads_note}{kernel}"

    def prove(self) -> None:
        """Decodes a few tokens, measures their size in memory, and removes them.

        Raises:
            LoadError: the model cannot decode them.
        """
        tokens = array("i", [0] * min(_PROOF_TOKENS, self.fit.batch, self.cells - 1))
        try:
            rows = self.backend.run(Plan(chunks=(Chunk(0, 0, tokens, logits=True),)))
            if greedy(rows[0]) == NoToken.BROKEN:
                raise LoadError("the first decode gave no numbers: the weights are damaged, or overflow")
            self._measure(len(tokens))
            self.backend.run(Plan(moves=(Drop(0),)))
        except (CellsFullError, DecodeError) as error:
            raise LoadError(f"the first decode failed: {error}") from error

    def _measure(self, tokens: int) -> None:
        """Derives the host memory of a token and of a state from slot 0, which holds so many tokens."""
        whole = self.backend.state_size(0, partial=False)
        state = self.backend.state_size(0, partial=True) if self.stateful else 0
        self.token_bytes = max((whole - (0 if self.window else state)) // tokens, 1)
        self.state_bytes = state * max(self.window, tokens) // tokens if self.window else state

    @property
    def kept_cells(self) -> int:
        """Cells of finished sequences that may stay in the cache while others run.

        The fused kernel of a CPU looks past every cell in use: 750 of them, a sixth of the weights' bytes,
        made a step of SmolLM2-135M with 700 of its own 20 to 30 % longer where the kernel is slow. Without it
        every cell up to the last one in use is computed with, and finished sequences are often the last: a
        thousand cells made a step of one short sequence 15 ms instead of 9. So none stays there.
        """
        if self.fit.flash_attention is False and not self.offloaded:
            return 0
        return int(lib.llama_model_size(self._model)) // (64 * self.token_bytes)


def _read(pointer: Any, read: Read) -> Vocabulary:
    vocabulary = Vocabulary.of(pointer)
    read(vocabulary)
    return vocabulary


def _load(path: str, gpu_layers: int | None, progress: Callable[[float], None]) -> Any:
    params = lib.llama_model_default_params()
    params.n_gpu_layers = _ALL_LAYERS if gpu_layers is None else gpu_layers
    params.check_tensors = True
    params.load_mode = _load_mode(Path(path), gpu_layers)
    reported = -1.0

    def on_progress(share: float, _: object) -> bool:
        nonlocal reported
        if share - reported >= _PROGRESS_STEP or share >= 1.0 > reported:
            reported = share
            progress(share)
        return True

    callback = lib.llama_progress_callback(on_progress)
    params.progress_callback = callback
    pointer = lib.llama_model_load_from_file(path.encode(), params)
    if not pointer:
        raise LoadError(f"{path} is not a model that this build can load: {last_words()}")
    return pointer


def _load_mode(path: Path, gpu_layers: int | None) -> int:
    """Returns how weights are loaded: as llama.cpp chooses (it maps the file), or into memory of their own.

    The latter if a CPU computes and there is room: a file's pages are small ones, and a step reads them all
    (see `workers.tunables`).
    """
    fits = path.stat().st_size <= free_memory() // _FREE_MEMORY_SHARE
    return int(lib.LLAMA_LOAD_MODE_NONE if gpu_layers == 0 and fits else lib.LLAMA_LOAD_MODE_AUTO)


def _recurrent(pointer: Any) -> bool:
    return bool(lib.llama_model_is_recurrent(pointer) or lib.llama_model_is_hybrid(pointer))


def _window(pointer: Any) -> int:
    """Returns the tokens of the sliding window of some layers; 0 without.

    Such layers give up cells that have left the window, even in a full-size cache (`swa_full`), once other
    tokens need the room. Only the end of a slot remains, so a prefix of it cannot be read any more, and
    reading it raises no error.
    """
    return int(lib.llama_model_n_swa(pointer))


def _description(pointer: Any) -> str:
    buffer = ctypes.create_string_buffer(256)
    lib.llama_model_desc(pointer, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")
