"""The limit: a bare loop around `llama_decode`, as fast as Python can drive it, with nothing around it.

    python -m bench.raw MODEL.gguf CLIENTS PROMPT_TOKENS OUTPUT_TOKENS CELLS THREADS

Computes CLIENTS prompts, then OUTPUT_TOKENS steps of one token for each, greedily, in a cache of CELLS cells,
and prints one JSON line: the median step in milliseconds, and tokens a second with the prompts included.
It runs as a process of its own because OpenMP reads its settings once, when the library is loaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bench.servers import CELLS, environment

BATCH: Final = 512
ROOT: Final = Path(__file__).resolve().parent.parent


def measure(
    model: Path,
    *,
    clients: int,
    prompt: int,
    output: int,
    threads: int,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, float]:
    """Runs the loop in a child with `settings` added to its environment: `step_ms` and `tokens_s`."""
    numbers = [str(number) for number in (clients, prompt, output, CELLS, threads)]
    child = subprocess.run(
        [sys.executable, "-m", "bench.raw", str(model), *numbers],
        cwd=ROOT,
        env={**environment(), **settings},
        stdout=subprocess.PIPE,
        check=True,
    )
    values: dict[str, float] = json.loads(child.stdout)
    return values


class Loop:
    """A model in a context, and one batch that is filled in place."""

    def __init__(self, lib: Any, path: str, *, clients: int, cells: int, threads: int) -> None:
        self._lib = lib
        model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = cells, BATCH, BATCH
        params.n_seq_max = params.n_outputs_max = clients
        params.kv_unified = params.no_perf = True
        params.n_threads = params.n_threads_batch = threads
        self._context = lib.llama_init_from_model(model, params)
        self._clients = clients
        self._n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
        self._batch = lib.llama_batch_init(BATCH, 0, 1)
        for i in range(BATCH):
            self._batch.n_seq_id[i] = 1

    def prefill(self, prompt: int) -> None:
        """Computes a prompt for each client, in full batches."""
        draw = np.random.default_rng(0)
        tokens = draw.integers(1000, self._n_vocab, (self._clients, prompt)).tolist()
        rows = [(tokens[slot][at], at, slot) for slot in range(self._clients) for at in range(prompt)]
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            for i, (token, position, slot) in enumerate(part):
                self._set(i, token, position, slot, logits=position == prompt - 1)
            self._decode(len(part))

    def step(self, last: list[int], position: int) -> list[int]:
        """One more token for each client."""
        for slot, token in enumerate(last):
            self._set(slot, token, position, slot, logits=True)
        self._decode(self._clients)
        rows: npt.NDArray[np.float32] = np.ctypeslib.as_array(
            self._lib.llama_get_logits(self._context), shape=(self._clients, self._n_vocab)
        )
        return [int(row.argmax()) for row in rows]

    def _set(self, i: int, token: int, position: int, slot: int, *, logits: bool) -> None:
        batch = self._batch
        batch.token[i], batch.pos[i], batch.logits[i] = token, position, logits
        batch.seq_id[i][0] = slot

    def _decode(self, count: int) -> None:
        self._batch.n_tokens = count
        if status := self._lib.llama_decode(self._context, self._batch):
            sys.exit(f"llama_decode gave {status}")


def main(path: str, clients: int, prompt: int, output: int, cells: int, threads: int) -> None:
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    from llama_cpp import llama_cpp as lib  # noqa: PLC0415 - the environment comes first

    quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    lib.llama_backend_init()
    loop = Loop(lib, path, clients=clients, cells=cells, threads=threads)
    begun = time.perf_counter()
    loop.prefill(prompt)
    last, steps = [1000] * clients, []
    for i in range(output):
        step_begun = time.perf_counter()
        last = loop.step(last, prompt + i)
        steps.append(time.perf_counter() - step_begun)
    seconds = time.perf_counter() - begun
    step_ms = statistics.median(steps) * 1000
    print(json.dumps({"step_ms": step_ms, "tokens_s": clients * output / seconds}))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:7]))
