"""The limit: a bare loop around `llama_decode`, as fast as Python can drive it, with nothing around it.

    echo 16 48 64 | python -m bench.raw MODEL.gguf CELLS THREADS

loads the model into a cache of CELLS cells and says `{}` when it is ready. For each line CLIENTS PROMPT
OUTPUT it then computes CLIENTS prompts of PROMPT tokens and OUTPUT steps of one token for each, greedily, and
prints one JSON
line: the median step in milliseconds, and tokens a second with the prompts included. In between it waits in a
read, and OpenMP's threads sleep as soon as their default spin is over (milliseconds), so that it can be asked
in turn with servers. It is a process of its own because OpenMP reads its settings once, when the library is
loaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bench.load import LoadError
from bench.processes import cpu_seconds
from bench.servers import CELLS, SLOTS, environment

BATCH: Final = 512
ROOT: Final = Path(__file__).resolve().parent.parent


class Child:
    """The loop in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._answer()

    @property
    def cpu(self) -> float:
        """CPU seconds that it has used so far."""
        return cpu_seconds(self._process.pid)

    async def pieces(
        self, *, clients: int, prompt: int, output: int, rounds: int
    ) -> AsyncIterator[dict[str, float]]:
        """Yields `step_ms` and `tokens_s` of one series a piece; the event loop waits meanwhile."""
        for _ in range(rounds):
            yield self._ask(f"{clients} {prompt} {output}")

    def _ask(self, line: str) -> dict[str, float]:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise LoadError("the raw loop ended")
        values: dict[str, float] = json.loads(line)
        return values


@contextmanager
def child(model: Path, *, threads: int) -> Iterator[Child]:
    """Starts the loop and ends it. Raises `LoadError`."""
    command = [sys.executable, "-m", "bench.raw", str(model), str(CELLS), str(threads)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Child(process)
    finally:
        process.kill()
        process.communicate()


class Loop:
    """A model in a context, and one batch that is filled in place."""

    def __init__(
        self, lib: Any, path: str, *, cells: int, threads: int, slow_kernel: Callable[[Any], bool]
    ) -> None:
        self._lib = lib
        model = lib.llama_model_load_from_file(path.encode(), lib.llama_model_default_params())
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = cells, BATCH, BATCH
        params.n_seq_max = params.n_outputs_max = SLOTS
        params.kv_unified = params.no_perf = True
        if not lib.llama_supports_gpu_offload() and slow_kernel(model):
            params.flash_attn_type = 0  # as b3node has it then
        params.n_threads = params.n_threads_batch = threads
        self._context = lib.llama_init_from_model(model, params)
        self._n_vocab = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
        self._batch = lib.llama_batch_init(BATCH, 0, 1)
        for i in range(BATCH):
            self._batch.n_seq_id[i] = 1

    def series(self, clients: int, prompt: int, output: int) -> dict[str, float]:
        """Prompts and steps in an empty cache."""
        self._lib.llama_memory_clear(self._lib.llama_get_memory(self._context), True)
        begun = time.perf_counter()
        self._prefill(clients, prompt)
        last, steps = [1000] * clients, []
        for i in range(output):
            step_begun = time.perf_counter()
            last = self._step(last, prompt + i)
            steps.append(time.perf_counter() - step_begun)
        seconds = time.perf_counter() - begun
        return {"step_ms": statistics.median(steps) * 1000, "tokens_s": clients * output / seconds}

    def _prefill(self, clients: int, prompt: int) -> None:
        """Computes a prompt for each client, in full batches."""
        draw = np.random.default_rng(0)
        tokens = draw.integers(1000, self._n_vocab, (clients, prompt)).tolist()
        rows = [(tokens[slot][at], at, slot) for slot in range(clients) for at in range(prompt)]
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            for i, (token, position, slot) in enumerate(part):
                self._set(i, token, position, slot, logits=position == prompt - 1)
            self._decode(len(part))

    def _step(self, last: list[int], position: int) -> list[int]:
        """One more token for each client."""
        for slot, token in enumerate(last):
            self._set(slot, token, position, slot, logits=True)
        self._decode(len(last))
        rows: npt.NDArray[np.float32] = np.ctypeslib.as_array(
            self._lib.llama_get_logits(self._context), shape=(len(last), self._n_vocab)
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


def main(path: str, cells: int, threads: int) -> None:
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    from llama_cpp import llama_cpp as lib  # noqa: PLC0415 - the environment comes first

    from b3node.llama.attention import kernel_is_slow  # noqa: PLC0415 - it would set what OpenMP reads above

    quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
    lib.llama_log_set(quiet, ctypes.c_void_p(0))
    lib.llama_backend_init()
    loop = Loop(lib, path, cells=cells, threads=threads, slow_kernel=kernel_is_slow)
    loop.series(SLOTS, 2, 2)
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(loop.series(*map(int, line.split()))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
