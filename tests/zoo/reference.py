"""The independent judge: what llama.cpp itself says of a model, one sequence in one fresh context at a time.

Nothing is shared, batched, reused or sampled, flash attention is off and the cache is F32, so that what an
engine computes in any other way can be held against it: greedy tokens exactly, logits to about 1e-4.

Every argument that would end the process inside llama.cpp is refused here with ValueError first. One thread:
more only spin on a small machine, and a child forked from a process with a threaded context hangs.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it
import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]

MAX_CONTEXT: Final = 65536
_BATCH: Final = 512
# Otherwise each load prints 268 lines. The binding's table of levels is one off: ERROR would let warnings by.
logging.getLogger("llama-cpp-python").setLevel(logging.CRITICAL)


def greedy(path: Path, tokens: Sequence[int], n: int) -> list[int]:
    """The likeliest continuation of `tokens`: `n` ids, or fewer with an end-of-generation token last."""
    with opened(path) as model, model.context(len(tokens) + n) as context:
        return context.greedy(tokens, n)


def logits(path: Path, tokens: Sequence[int]) -> Logits:
    """The logits of the token after `tokens`, by id."""
    with opened(path) as model, model.context(len(tokens)) as context:
        return context.decode(tokens)


def tokenize(path: Path, text: str | bytes, *, special: bool = False) -> list[int]:
    """The ids of `text`, without any token added; `special` is llama.cpp's parse_special."""
    with opened(path, vocab_only=True) as model:
        return model.tokenize(text, special=special)


@contextmanager
def opened(path: Path, *, vocab_only: bool = False) -> Iterator[Model]:
    """The model at `path`, freed at the end. Raises ValueError if llama.cpp cannot load it."""
    L.llama_backend_init()
    params = L.llama_model_default_params()
    params.n_gpu_layers = 0
    params.load_mode = L.LLAMA_LOAD_MODE_NONE  # not mapped: the file may be replaced meanwhile
    params.vocab_only = vocab_only
    handle = L.llama_model_load_from_file(str(path).encode(), params)
    if not handle:
        raise ValueError(f"llama.cpp cannot load {path.name}")
    try:
        yield Model(handle)
    finally:
        L.llama_model_free(handle)


class Model:
    """A loaded model; made by `opened`."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.vocab = L.llama_model_get_vocab(handle)
        self.n_vocab = int(L.llama_vocab_n_tokens(self.vocab))

    def tokenize(self, text: str | bytes, *, special: bool = False) -> list[int]:
        """The ids of `text`, without any token added."""
        raw = text.encode() if isinstance(text, str) else text
        room = len(raw) + 8
        ids = (ctypes.c_int32 * room)()
        count = L.llama_tokenize(self.vocab, raw, len(raw), ids, room, False, special)
        if count < 0:
            raise ValueError("llama.cpp cannot tokenize this")
        return list(ids[:count])

    def piece(self, token: int, *, special: bool = True) -> bytes:
        """The bytes of `token`; with `special` False those of control tokens are empty."""
        self._check(token)
        room = 4096
        buffer = ctypes.create_string_buffer(room)
        size = L.llama_token_to_piece(self.vocab, token, buffer, room, 0, special)
        if size < 0:
            raise ValueError("a token of more than 4096 bytes")
        return buffer.raw[:size]

    def ends(self, token: int) -> bool:
        """Whether `token` is an end of generation."""
        self._check(token)
        return bool(L.llama_vocab_is_eog(self.vocab, token))

    @contextmanager
    def context(self, size: int, *, exact: bool = True, swa_full: bool = True) -> Iterator[Context]:
        """A fresh context for `size` tokens (llama.cpp rounds up to 256), freed at the end.

        `exact` False leaves flash attention and the cache's type to llama.cpp, as a server does.
        """
        if not 0 < size <= MAX_CONTEXT:
            raise ValueError(f"a context of 1 to {MAX_CONTEXT} tokens")
        params = L.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = size, _BATCH, _BATCH, 1
        params.n_threads = params.n_threads_batch = 1
        if exact:
            params.flash_attn_type = L.LLAMA_FLASH_ATTN_TYPE_DISABLED
            params.type_k = params.type_v = L.GGML_TYPE_F32
        params.swa_full = swa_full
        params.offload_kqv = params.op_offload = False
        handle = L.llama_init_from_model(self.handle, params)
        if not handle:
            raise ValueError("llama.cpp cannot make this context")
        try:
            yield Context(self, handle)
        finally:
            L.llama_free(handle)

    def _check(self, *tokens: int) -> None:
        if not all(0 <= token < self.n_vocab for token in tokens):
            raise ValueError(f"token ids are 0 to {self.n_vocab - 1}")


@dataclass(frozen=True)
class Context:
    """One sequence from position 0 on; made by `Model.context`."""

    model: Model
    handle: int

    def decode(self, tokens: Sequence[int]) -> Logits:
        """Appends `tokens`; the logits after the last of them. Raises ValueError if they do not fit."""
        self.model._check(*tokens)
        if not tokens:
            raise ValueError("at least one token")
        size = min(_BATCH, int(L.llama_n_batch(self.handle)))
        for begin in range(0, len(tokens), size):
            some = tokens[begin : begin + size]
            ids = (ctypes.c_int32 * len(some))(*some)  # the batch only points to it
            batch = L.llama_batch_get_one(ids, len(some))
            if (code := L.llama_decode(self.handle, batch)) != 0:
                raise ValueError(f"llama.cpp answers {code} to a decode")
        row = L.llama_get_logits_ith(self.handle, -1)
        return np.ctypeslib.as_array(row, (self.model.n_vocab,)).copy()

    def greedy(self, tokens: Sequence[int], n: int) -> list[int]:
        """Appends `tokens` and what is likeliest after them: `n` ids, or fewer with an end last."""
        said: list[int] = []
        more = list(tokens)
        while len(said) < n:
            more = [int(self.decode(more).argmax())]
            said += more
            if self.model.ends(said[-1]):
                break
        return said

    @property
    def positions(self) -> tuple[int, int]:
        """The first and the last position that memory still holds."""
        memory = L.llama_get_memory(self.handle)
        return int(L.llama_memory_seq_pos_min(memory, 0)), int(L.llama_memory_seq_pos_max(memory, 0))
