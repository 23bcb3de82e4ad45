"""A program that does to llama.cpp what must never be done to it, each in a child of its own.

`python aborts.py MODEL TWINS`: a model, and one whose load ends the process. Prints a JSON object of how each
child ended: its exit status, or minus the signal that killed it. 0 means that llama.cpp refused or survived.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import llama_cpp.llama_cpp as L  # noqa: N812 - the C library, as its users write it


def loaded(path: str) -> Any:
    params = L.llama_model_default_params()
    params.n_gpu_layers = 0
    return L.llama_model_load_from_file(path.encode(), params)


def context(model: Any, **options: int) -> Any:
    params = L.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 256
    params.n_threads = params.n_threads_batch = 1
    params.kv_unified = True
    params.n_seq_max = params.n_outputs_max = 4
    for name, value in options.items():
        setattr(params, name, value)
    return L.llama_init_from_model(model, params)


def decode(model: Any, count: int, *, rows: bool = False, sequence: int = 0, token: int = 1) -> int:
    """Decodes `count` equal tokens; `rows` asks for the logits of each. llama.cpp's status."""
    batch = L.llama_batch_init(count, 0, 1)
    batch.n_tokens = count
    for at in range(count):
        batch.token[at], batch.pos[at], batch.n_seq_id[at], batch.logits[at] = token, at, 1, rows
        batch.seq_id[at][0] = sequence
    return int(L.llama_decode(context(model), batch))


def piece(model: Any, token: int) -> int:
    buffer = ctypes.create_string_buffer(64)
    return int(L.llama_token_to_piece(L.llama_model_get_vocab(model), token, buffer, 64, 0, False))


def forget(model: Any, sequence: int) -> bool:
    return bool(L.llama_memory_seq_rm(L.llama_get_memory(context(model)), sequence, -1, -1))


def cases(path: str, twins: str) -> dict[str, Callable[[], object]]:
    model = loaded(path)
    return {
        "a good step": lambda: decode(model, 256),
        "a batch beyond n_batch": lambda: decode(model, 257),
        "more rows than n_outputs_max": lambda: decode(model, 5, rows=True),
        "fewer outputs than sequences": lambda: context(model, n_outputs_max=3),
        "a step in a sequence beyond n_seq_max": lambda: decode(model, 1, sequence=4),
        "a step with a token beyond the vocabulary": lambda: decode(model, 1, token=281),
        "forgetting a sequence beyond n_seq_max": lambda: forget(model, 4),
        "forgetting a sequence beyond 256": lambda: forget(model, 256),
        "the piece of a token beyond the vocabulary": lambda: piece(model, 281),
        "the piece of a token below 0": lambda: piece(model, -1),
        "257 sequences": lambda: context(model, n_seq_max=257, n_outputs_max=257),
        "a file with two equal tokens": lambda: loaded(twins),
    }


def ending(case: Callable[[], object]) -> int:
    """How a child ends that does `case`."""
    child = os.fork()
    if child == 0:
        case()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    silence = L.llama_log_callback(lambda *_: None)
    L.llama_log_set(silence, ctypes.c_void_p(0))
    print(json.dumps({name: ending(case) for name, case in cases(*sys.argv[1:]).items()}))
