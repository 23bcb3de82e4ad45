"""Loads a GGUF file for the engine: weights, vocabulary, context, and a first decode that proves them."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from b3node.engine.backend import CellsFullError, DecodeError
from b3node.engine.plan import Chunk, Drop, Plan
from b3node.llama import library
from b3node.llama.context import Context
from b3node.llama.library import last_words, lib
from b3node.llama.settings import Fit, Settings, fit
from b3node.llama.vocab import Vocabulary

_ALL_LAYERS: Final = 999
_STEP: Final = 0.01
"""Progress is told each time the share has grown by this much."""


class LoadError(Exception):
    """The model cannot be served; the message is for the operator."""


class Model:
    """A loaded model: what the engine's process needs to know of it, and the backend that runs it."""

    def __init__(self, pointer: Any, fitted: Fit, *, offloaded: bool) -> None:
        self.vocabulary = Vocabulary.of(pointer)
        self.fit = fitted
        self.offloaded = offloaded
        self.n_ctx_train = int(lib.llama_model_n_ctx_train(pointer))
        self.shares = not _recurrent(pointer) and not _windowed(pointer)
        self.description = _description(pointer)
        self._model = pointer
        try:
            self.backend = Context(pointer, self.vocabulary.n_vocab, fitted)
        except MemoryError as error:
            raise LoadError(f"no context of {fitted.cells} cells can be made: {error}") from error

    @classmethod
    def load(cls, path: str, settings: Settings, progress: Callable[[float], None]) -> Model:
        """Loads `path` and decodes one token. Calls `progress` with the share loaded, 0 to 1.

        Raises `LoadError` with words for the operator.
        """
        if not Path(path).is_file():
            raise LoadError(f"there is no file {path}")
        library.begin()
        offloaded = bool(lib.llama_supports_gpu_offload()) and settings.gpu_layers != 0
        pointer = _load(path, settings.gpu_layers if offloaded else 0, progress)
        fitted = fit(
            settings,
            n_ctx_train=int(lib.llama_model_n_ctx_train(pointer)),
            recurrent=_recurrent(pointer),
            offloaded=offloaded,
        )
        model = cls(pointer, fitted, offloaded=offloaded)
        model.prove()
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
        """Where the model computes, for people."""
        return "GPU" if self.offloaded else f"CPU, {self.fit.threads} threads"

    def prove(self) -> None:
        """Decodes one token and forgets it. Raises `LoadError` when the model cannot."""
        chunk = Chunk(0, 0, array("i", [0]), logits=True)
        try:
            self.backend.run(Plan(chunks=(chunk,)))
            self.backend.run(Plan(moves=(Drop(0),)))
        except (CellsFullError, DecodeError) as error:
            raise LoadError(f"the first decode failed: {error}") from error


def _load(path: str, gpu_layers: int | None, progress: Callable[[float], None]) -> Any:
    params = lib.llama_model_default_params()
    params.n_gpu_layers = _ALL_LAYERS if gpu_layers is None else gpu_layers
    params.check_tensors = True
    told = -1.0

    def on_progress(share: float, _: object) -> bool:
        nonlocal told
        if share - told >= _STEP:
            told = share
            progress(share)
        return True

    callback = lib.llama_progress_callback(on_progress)
    params.progress_callback = callback
    pointer = lib.llama_model_load_from_file(path.encode(), params)
    if not pointer:
        raise LoadError(f"{path} is not a model that this build can load: {last_words()}")
    return pointer


def _recurrent(pointer: Any) -> bool:
    return bool(lib.llama_model_is_recurrent(pointer) or lib.llama_model_is_hybrid(pointer))


def _windowed(pointer: Any) -> bool:
    """Whether layers with a sliding window give up cells that have left it.

    They do even in a full-size cache (`swa_full`), once other tokens want the room: what remains of a slot
    is its end, so a prefix of it cannot be read any more, and reading it raises no error.
    """
    return int(lib.llama_model_n_swa(pointer)) > 0


def _description(pointer: Any) -> str:
    buffer = ctypes.create_string_buffer(256)
    lib.llama_model_desc(pointer, buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace")
