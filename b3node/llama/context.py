"""The engine's backend on llama.cpp: one context, one unified KV cache, one batch that is filled anew.

The batch's arrays are numpy arrays, passed to llama.cpp by address, so a step costs no copy and no ctypes
object a token. Logits are a view of llama.cpp's own buffer.

Plans that would kill the process are refused: more tokens than the batch holds, more rows of logits than were
reserved, a sequence id out of range, an empty batch. So are those that llama.cpp would compute into nonsense:
position -1 is its mark of a free cell, and makes every sequence's logits NaN.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from b3node.config import KvType
from b3node.engine.backend import CellsFullError, DecodeError, Rows
from b3node.engine.plan import (
    Checkpoint,
    Chunk,
    Clear,
    Drop,
    Forget,
    Load,
    Move,
    Plan,
    Restore,
    Save,
    Share,
    Trim,
)
from b3node.llama.library import last_words, lib
from b3node.llama.settings import Fit
from b3node.llama.threads import CpuMonitor, ThreadCount

_STATUS_FULL: Final = 1
"""`llama_decode`: no room in the cache; nothing was changed."""
_WHOLE, _PARTIAL = 0, 1
"""llama_state_seq flags: all of a sequence, or only its state beside the cells (recurrent, windows)."""
_KV_TYPES: Final[dict[KvType, int]] = {
    "f16": lib.GGML_TYPE_F16,
    "f32": lib.GGML_TYPE_F32,
    "q8_0": lib.GGML_TYPE_Q8_0,
}


SequenceState = npt.NDArray[np.uint8]
"""A copied state, as llama.cpp wrote it."""
_logits_address: Final = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ctypes.cast(lib.llama_get_logits, ctypes.c_void_p).value or 0
)
"""`llama_get_logits` as a plain number: a step only checks whether it has changed, and needs no pointer
object."""


class Batch:
    """A llama_batch over arrays of `size` tokens, each in one sequence."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.tokens = np.zeros(size, np.int32)
        self.positions = np.zeros(size, np.int32)
        self.slots = np.zeros(size, np.int32)
        self.logits = np.zeros(size, np.int8)
        self._counts = np.ones(size, np.int32)
        # llama.cpp takes an array of pointers to each token's sequence ids: they point into `slots`.
        self._slot_pointers = self.slots.ctypes.data + 4 * np.arange(size, dtype=np.uint64)
        self.native: Any = lib.llama_batch(
            0,
            _pointer(self.tokens, ctypes.c_int32),
            None,
            _pointer(self.positions, ctypes.c_int32),
            _pointer(self._counts, ctypes.c_int32),
            ctypes.cast(self._slot_pointers.ctypes.data, ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
            _pointer(self.logits, ctypes.c_int8),
        )

    def fill(self, chunks: tuple[Chunk, ...]) -> int:
        """Writes the chunks one after the other; returns how many rows of logits they ask for."""
        at = rows = 0
        for chunk in chunks:
            size = len(chunk.tokens)
            if size == 1:  # the usual case: setting an element takes a tenth of the time of a slice
                self.tokens[at], self.positions[at], self.slots[at] = chunk.tokens[0], chunk.start, chunk.slot
            else:
                end = at + size
                self.tokens[at:end] = chunk.tokens
                self.positions[at:end] = np.arange(chunk.start, chunk.start + size, dtype=np.int32)
                self.slots[at:end] = chunk.slot
                self.logits[at:end] = 0
            at += size
            self.logits[at - max(chunk.rows, 1) : at] = chunk.logits
            rows += chunk.rows
        self.native.n_tokens = at
        return rows


class Context:
    """Implements `engine.backend.Backend` on a loaded model.

    Args:
        model: a llama_model pointer; must outlive the context.
        n_vocab: its vocabulary's size.
        fit: sizes of the context.
        offloaded: whether layers are on a GPU.
    """

    def __init__(self, model: Any, n_vocab: int, fit: Fit, *, offloaded: bool = False) -> None:
        self.overlaps = offloaded
        params = lib.llama_context_default_params()
        params.n_ctx = fit.cells
        params.n_batch = fit.batch
        params.n_ubatch = fit.batch
        params.n_seq_max = params.n_outputs_max = fit.slots + 1  # fewer outputs abort; one to copy through
        params.n_threads = params.n_threads_batch = fit.threads
        params.type_k = params.type_v = _KV_TYPES[fit.kv_type]
        if fit.flash_attention is not None:
            params.flash_attn_type = int(fit.flash_attention)  # disabled 0, enabled 1 (llama.h)
        params.kv_unified = True
        params.no_perf = True
        self._pointer = lib.llama_init_from_model(model, params)
        if not self._pointer:
            raise MemoryError(last_words())
        self._memory = lib.llama_get_memory(self._pointer)
        self._cells = int(lib.llama_n_ctx(self._pointer))
        self._n_vocab = n_vocab
        self._slots = fit.slots
        self._scratch = fit.slots
        self._saved: dict[int, SequenceState] = {}
        self._monitor: CpuMonitor | None = None
        self._threads: ThreadCount | None = None
        self._batch = Batch(fit.batch)
        self._row_count = 0
        self._logits_at = 0
        self._logits: Rows = np.empty((0, n_vocab), np.float32)
        self._no_rows: Rows = np.empty((0, n_vocab), np.float32)

    @property
    def cells(self) -> int:
        """Cells of the cache, as llama.cpp rounded them."""
        return self._cells

    def run(self, plan: Plan) -> Rows:
        """Calls `start`, then `rows`."""
        self.start(plan)
        return self.rows()

    def start(self, plan: Plan) -> None:
        """Begins to carry a plan out; see `engine.backend.Backend`. On a CPU it is done when this returns."""
        self._check(plan)
        self._adapt()
        self._row_count = 0
        for move in plan.moves:
            self._apply(move)
        if not plan.chunks:
            return
        count = self._batch.fill(plan.chunks)
        status = lib.llama_decode(self._pointer, self._batch.native)
        if status == _STATUS_FULL:
            raise CellsFullError
        if status:
            raise DecodeError(f"llama_decode gave {status}: {last_words()}")
        self._row_count = count

    def rows(self) -> Rows:
        """Returns the started plan's logits; see `engine.backend.Backend`."""
        if not self._row_count:
            return self._no_rows
        address = _logits_address(self._pointer)
        if address != self._logits_at:  # llama.cpp reuses its buffer; making a view costs more than a draw
            pointer = ctypes.cast(address, ctypes.POINTER(ctypes.c_float))
            whole = np.ctypeslib.as_array(pointer, shape=(self._slots + 1, self._n_vocab))
            self._logits, self._logits_at = whole, address
        return self._logits[: self._row_count]

    def on_idle(self) -> None:
        """Stops the measurement of other processes; see `engine.backend.Backend`."""
        if self._monitor is not None:
            self._monitor.rest()

    def share_cores(self, monitor: CpuMonitor, threads: ThreadCount) -> None:
        """Makes later steps compute with as many threads as other processes leave cores for."""
        self._monitor, self._threads = monitor, threads

    def _adapt(self) -> None:
        if self._monitor is None or self._threads is None or (others := self._monitor.look()) is None:
            return
        before = self._threads.count
        if (count := self._threads.observe(others=others)) != before:
            lib.llama_set_n_threads(self._pointer, count, count)

    def state_size(self, slot: int, *, partial: bool) -> int:
        """Returns the bytes of a copy of a slot: of all of it, or of the parts outside its cells."""
        return int(lib.llama_state_seq_get_size_ext(self._pointer, slot, _PARTIAL if partial else _WHOLE))

    def _apply(self, move: Move) -> None:
        match move:
            case Clear():
                lib.llama_memory_clear(self._memory, True)
                self._saved.clear()
            case Drop(slot=slot):
                lib.llama_memory_seq_rm(self._memory, slot, -1, -1)
            case Trim(slot=slot, length=length):
                self._trim(slot, length)
            case Share(source=source, target=target, length=length):
                lib.llama_memory_seq_cp(self._memory, source, target, 0, length)
            case Save(slot=slot, start=start, end=end, key=key):
                lib.llama_memory_seq_cp(self._memory, slot, self._scratch, start, end)
                self._saved[key] = self._read(self._scratch, _WHOLE)
                lib.llama_memory_seq_rm(self._memory, self._scratch, -1, -1)
            case Load(slot=slot, start=start, end=end, key=key):
                self._write(self._scratch, self._saved[key], _WHOLE)
                lib.llama_memory_seq_cp(self._memory, self._scratch, slot, start, end)
                lib.llama_memory_seq_rm(self._memory, self._scratch, -1, -1)
            case Checkpoint(slot=slot, key=key):
                self._saved[key] = self._read(slot, _PARTIAL)
            case Restore(slot=slot, key=key):
                self._write(slot, self._saved[key], _PARTIAL)
            case Forget(key=key):
                del self._saved[key]

    def _trim(self, slot: int, length: int) -> None:
        """Removes the end of a slot. Raises `DecodeError` for a state that cannot be taken back."""
        if not lib.llama_memory_seq_rm(self._memory, slot, length, -1):
            raise DecodeError("the end of a sequence could not be forgotten")

    def _read(self, slot: int, flags: int) -> SequenceState:
        """Returns a copy of a slot's state. Raises `DecodeError` if llama.cpp gives none."""
        size = int(lib.llama_state_seq_get_size_ext(self._pointer, slot, flags))
        state: SequenceState = np.empty(size, np.uint8)  # neither filled before nor copied again afterwards
        if lib.llama_state_seq_get_data_ext(self._pointer, _bytes(state), size, slot, flags) != size:
            raise DecodeError("a state could not be copied")
        return state

    def _write(self, slot: int, state: SequenceState, flags: int) -> None:
        """Puts a copied state into a slot. Raises `DecodeError` if llama.cpp does not take it."""
        if not lib.llama_state_seq_set_data_ext(self._pointer, _bytes(state), state.size, slot, flags):
            raise DecodeError("a state could not be restored")

    def _check(self, plan: Plan) -> None:
        """Raises `ValueError` for a plan that would abort the process, or be computed into nonsense."""
        tokens = rows = 0
        for move in plan.moves:
            for slot in _slots_of(move):
                self._check_slot(slot)
        for chunk in plan.chunks:
            self._check_chunk(chunk)
            tokens += len(chunk.tokens)
            rows += chunk.rows
        if tokens > self._batch.size:
            raise ValueError("a plan does not fit into the batch")
        if rows > self._slots:
            raise ValueError("a plan asks for more rows than there are slots")

    def _check_slot(self, slot: int) -> None:
        if not 0 <= slot < self._slots:
            raise ValueError("a plan names a slot that does not exist")

    def _check_chunk(self, chunk: Chunk) -> None:
        self._check_slot(chunk.slot)
        if chunk.image is not None:
            raise ValueError("a plan has an image, and only text is computed here")
        if not 0 <= chunk.drafted < len(chunk.tokens):
            raise ValueError("a plan has a chunk of nothing")
        if not 0 <= chunk.start <= self._cells - len(chunk.tokens):
            raise ValueError("a plan names a position that does not exist")
        if not (min(chunk.tokens) >= 0 and max(chunk.tokens) < self._n_vocab):
            raise ValueError("a plan names a token that does not exist")


def _slots_of(move: Move) -> tuple[int, ...]:
    match move:
        case Share(source=source, target=target):
            return source, target
        case Forget() | Clear():
            return ()
    return (move.slot,)


def _bytes(state: SequenceState) -> Any:
    return _pointer(state, ctypes.c_uint8)


def _pointer(array: Any, kind: Any) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(kind))
