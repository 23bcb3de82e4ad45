"""Decides which of llama.cpp's two implementations of attention is faster on this CPU.

The fused kernel reads a cell only where a token may see it, one cell after the other, and keeps no scores.
Plain matrix products read every cell up to the last one in use for every token, several at once. Which one
wins depends on the CPU and on the width of the heads, by factors rather than percents: the kernel takes 32
halves at a time if the processor has AVX2, 64 with AVX-512 and 128 with AVX-512's half floats
(simd-mappings.h), and the rest of a head number by number. So heads of 64 were six times as slow for a token
after 1,500 others on a virtual machine that presumably had the last, and made a step of sixteen after a
common prefix take 2.5 times as long. On one with AVX-512 alone the kernel takes 1.3 to 1.7 times as long for
the same, a third for sixteen short sequences, and a node with it writes 9 to 30 % more tokens. A context has
one of the two for as long as it lives. So the choice is made at the load by measuring both on a node's
workloads: one layer of the model's shape, with random numbers.

The measurement flatters the plain products, whose cells come out of a warm cache: so they must be
`MAX_KERNEL_SLOWNESS` times as fast. Found so far are 1.0 to 1.2 where the heads fit the kernel's width, and
2.1 to 3 where they do not.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import geometric_mean
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from b3node.llama.library import lib
from b3node.llama.vocab import metadata

MAX_KERNEL_SLOWNESS: Final = 1.5
"""How many times as long as plain products the fused kernel may take."""
_MAX_HEADS: Final = 8
"""Query heads that are computed, of a layer that has more: the others cost the same again."""
_MAX_ROW_FLOATS: Final = 1024
"""Floats of a cell's keys that are computed, in fewer heads if these are wide: bounds memory and time. No
model has a wider head than that, and none is measured."""
_CACHE_CELLS: Final = 16_384
"""Cells between two dimensions of a value, as plain products keep them: those of a whole cache."""
_POOL_BYTES: Final = 128 << 20
"""Memory for ggml's tensors, since ggml ends the process if it does not suffice: 32 MiB of values a
`_MAX_ROW_FLOATS` wide, and the needs of four runs. Pages that are never written take no memory."""
_RUNS: Final = 3
"""How often each is computed. The first run finds its memory; of the others the shortest counts."""
_SCORE_DEVIATION: Final = 3.0
"""Standard deviation of the scores: most weights of a softmax are tiny then, as those of a real layer are,
and sums of tiny half floats are slow on some processors."""
_CELL_MULTIPLE: Final = 256
"""llama.cpp reads a multiple of this many cells."""

_F32: Final = 0
_F16: Final = 1
"""Number types (ggml.h, `ggml_type`)."""
_PREC_F32: Final = 10
"""Sums are kept in single floats (ggml.h, `ggml_prec`), as llama.cpp asks for attention."""

AnyArray = npt.NDArray[Any]


class Heads(msgspec.Struct, frozen=True):
    """One layer: its query heads, its heads of keys and values, and the floats of one head."""

    query: int
    stored: int
    width: int

    def fewer(self) -> Heads:
        """Returns as many query heads for each stored one, but no more than are measured."""
        stored = max(self.stored, 1)
        group = min(max(self.query // stored, 1), _MAX_HEADS)
        stored = min(_MAX_HEADS // group, max(_MAX_ROW_FLOATS // self.width, 1), stored)
        return Heads(stored * group, stored, self.width)


class Workload(msgspec.Struct, frozen=True):
    """Tokens of one step, each of a sequence of its own, and the cells that they see."""

    tokens: int
    own: int
    """Cells that each token alone sees."""
    common: int = 0
    """Cells that all tokens see."""

    def seen(self) -> npt.NDArray[np.bool_]:
        """Returns the mask of cells that each token sees: bool, tokens x cells."""
        used = self.common + self.tokens * self.own
        seen = np.zeros((self.tokens, -(-used // _CELL_MULTIPLE) * _CELL_MULTIPLE), np.bool_)
        seen[:, : self.common] = True
        for token in range(self.tokens):
            begin = self.common + token * self.own
            seen[token, begin : begin + self.own] = True
        return seen


WORKLOADS: Final = (Workload(1, 1500), Workload(16, 80), Workload(16, 20, 831))
"""A long conversation, many short ones, and many with a common prefix."""


def kernel_is_slow(model: Any) -> bool:
    """Returns whether this CPU attends faster without the fused kernel, for a loaded model's shape."""
    query, stored = int(lib.llama_model_n_head(model)), int(lib.llama_model_n_head_kv(model))
    stated = metadata(model, f"{metadata(model, 'general.architecture')}.attention.key_length")
    width = int(stated) if stated.isdigit() else int(lib.llama_model_n_embd(model)) // max(query, 1)
    if not query or not 0 < width <= _MAX_ROW_FLOATS:
        return False
    return fused_slowness(Heads(query, stored, width)) > MAX_KERNEL_SLOWNESS


def fused_slowness(heads: Heads) -> float:
    """Returns the ratio of the fused kernel's time to that of plain products, averaged over all workloads.

    1.0 if this build does not let them be measured. Takes one thread for 40 to 120 ms. Two threads would wait
    for each other while other processes run, more often for plain products (0.6 instead of 0.8 to 1.0 during
    three busy processes; one thread measures 1.0 to 1.1 with and without them).

    Args:
        heads: at least one float wide and at most `_MAX_ROW_FLOATS`.
    """
    try:
        ggml = _Ggml(lib._lib)  # noqa: SLF001 - the binding declares llama.h alone; ggml has the same handle
    except AttributeError:
        return 1.0
    few = heads.fewer()
    return geometric_mean(
        _seconds(ggml, _fused, few, seen) / _seconds(ggml, _plain, few, seen)
        for seen in (workload.seen() for workload in WORKLOADS)
    )


class _Init(ctypes.Structure):
    """`ggml_init_params`."""

    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


class _Ggml:
    """The few functions of ggml.h that are needed, by their own names.

    Raises `AttributeError` if one is missing.
    """

    def __init__(self, library: Any) -> None:
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
        whole, real = ctypes.c_int, ctypes.c_float
        four = (number,) * 4

        def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
            # A handle of its own: the binding's declaration of the same function stays as it is.
            return ctypes.CFUNCTYPE(result, *arguments)((name, library))

        self.init = function("ggml_init", pointer, _Init)
        self.free = function("ggml_free", None, pointer)
        self.tensor = function("ggml_new_tensor_4d", pointer, pointer, whole, *four)
        self.data = function("ggml_get_data", pointer, pointer)
        self.view = function("ggml_view_4d", pointer, pointer, pointer, *four, *(size,) * 4)
        self.permute = function("ggml_permute", pointer, pointer, pointer, *(whole,) * 4)
        self.cont = function("ggml_cont_2d", pointer, pointer, pointer, number, number)
        self.mul_mat = function("ggml_mul_mat", pointer, *(pointer,) * 3)
        self.soft_max = function("ggml_soft_max_ext", pointer, *(pointer,) * 3, real, real)
        self.attend = function("ggml_flash_attn_ext", pointer, *(pointer,) * 5, real, real, real)
        self.precise = function("ggml_prec_set_acc", None, pointer, whole)
        self.graph = function("ggml_new_graph", pointer, pointer)
        self.expand = function("ggml_build_forward_expand", None, pointer, pointer)
        self.compute = function("ggml_graph_compute_with_ctx", whole, pointer, pointer, whole)


class _Layer:
    """One layer's tensors in a pool of memory, filled at random. Shapes are ggml's, innermost first."""

    def __init__(self, ggml: _Ggml, pool: int, heads: Heads, seen: npt.NDArray[np.bool_]) -> None:
        self.ggml, self.pool, self.heads = ggml, pool, heads
        self.tokens, self.cells = seen.shape
        self.row = heads.stored * heads.width
        self.scale = 1 / math.sqrt(heads.width)
        self._random = np.random.default_rng(0)
        drawn = self._drawn((self.tokens, heads.query, heads.width), np.float32) * np.float32(
            _SCORE_DEVIATION
        )
        query = self.filled(_F32, drawn, heads.width, heads.query, self.tokens)
        self.queries = ggml.permute(pool, query, 0, 2, 1, 3)
        self.keys = self._stored()
        self._seen = seen

    def filled(self, kind: int, values: AnyArray, *shape: int) -> int:
        """Returns a tensor that begins with these values."""
        tensor = self.ggml.tensor(self.pool, kind, *shape, *(1,) * (4 - len(shape)))
        ctypes.memmove(self.ggml.data(tensor), values.ctypes.data, values.nbytes)
        return int(tensor)

    def mask(self, kind: int) -> int:
        """Returns a tensor, cells x tokens: 0 where a token sees a cell, else minus infinity."""
        values = np.where(self._seen, 0, -np.inf).astype(np.float16 if kind == _F16 else np.float32)
        return self.filled(kind, values, self.cells, self.tokens)

    def values(self) -> int:
        """Returns values as the fused kernel reads them, cell by cell."""
        return self._stored()

    def transposed_values(self) -> int:
        """Returns values as plain products read them, dimension by dimension, each a whole cache long."""
        tensor = self.ggml.tensor(self.pool, _F16, _CACHE_CELLS, self.row, 1, 1)
        begin = (ctypes.c_uint16 * (_CACHE_CELLS * self.row)).from_address(self.ggml.data(tensor))
        numbers = np.ctypeslib.as_array(begin).view(np.float16).reshape(self.row, _CACHE_CELLS)
        numbers[:, : self.cells] = self._drawn((self.cells, self.row), np.float16).T
        line = 2 * _CACHE_CELLS
        block = line * self.heads.width
        whole = line * self.row
        shape = (self.cells, self.heads.width, self.heads.stored, 1)
        return int(self.ggml.view(self.pool, tensor, *shape, line, block, whole, 0))

    def _stored(self) -> int:
        """Returns a tensor, width x cells x stored heads, cell by cell."""
        numbers = self._drawn((self.cells, self.row), np.float16)
        tensor = self.filled(_F16, numbers, self.row, self.cells)
        head, cell = 2 * self.heads.width, 2 * self.row
        shape = (self.heads.width, self.heads.stored, self.cells, 1)
        view = self.ggml.view(self.pool, tensor, *shape, head, cell, cell * self.cells, 0)
        return int(self.ggml.permute(self.pool, view, 0, 2, 1, 3))

    def _drawn(self, shape: tuple[int, ...], kind: Any) -> AnyArray:
        return self._random.standard_normal(shape, np.float32).astype(kind)


def _fused(layer: _Layer) -> int:
    ggml, mask = layer.ggml, layer.mask(_F16)
    out = ggml.attend(layer.pool, layer.queries, layer.keys, layer.values(), mask, layer.scale, 0, 0)
    ggml.precise(out, _PREC_F32)
    return int(out)


def _plain(layer: _Layer) -> int:
    ggml, pool = layer.ggml, layer.pool
    scores = ggml.mul_mat(pool, layer.keys, layer.queries)
    ggml.precise(scores, _PREC_F32)
    weights = ggml.soft_max(pool, scores, layer.mask(_F32), layer.scale, 0)
    out = ggml.permute(pool, ggml.mul_mat(pool, layer.transposed_values(), weights), 0, 2, 1, 3)
    return int(ggml.cont(pool, out, layer.heads.query * layer.heads.width, layer.tokens))


def _seconds(
    ggml: _Ggml,
    attention: Callable[[_Layer], int],
    heads: Heads,
    seen: npt.NDArray[np.bool_],
) -> float:
    """Returns the time of one step of one layer."""
    with _pool(ggml) as pool:
        graph = ggml.graph(pool)
        ggml.expand(graph, attention(_Layer(ggml, pool, heads, seen)))
        ggml.compute(pool, graph, 1)
        return min(_timed(lambda: ggml.compute(pool, graph, 1)) for _ in range(_RUNS))


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


@contextmanager
def _pool(ggml: _Ggml) -> Iterator[int]:
    pool = ggml.init(_Init(_POOL_BYTES, None, False))
    try:
        yield pool
    finally:
        ggml.free(pool)
