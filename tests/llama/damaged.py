"""Model files with one fault each, made of the zoo's parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFWriter

from tests.zoo.architectures import ARCHITECTURES, Arch, Shape, body
from tests.zoo.gguf_file import Weights, _add_keys, write
from tests.zoo.vocabulary import N_BASE, Vocabulary, base

POISON = 255
"""The token of a poisoned model that nothing can be computed after."""
_N_EMBD = 64


def healthy(arch: Arch = "llama") -> Weights:
    """The weights of a random model."""
    rng = np.random.default_rng(0)
    weights = body(arch, Shape(n_embd=_N_EMBD, n_layer=ARCHITECTURES[arch].layers), rng)
    embedding = rng.standard_normal((N_BASE, _N_EMBD), dtype=np.float32)
    output = rng.standard_normal((N_BASE, _N_EMBD), dtype=np.float32) * np.float32(0.25)
    weights.tensors |= {"token_embd.weight": embedding, "output.weight": output}
    return weights


def with_nan(path: Path) -> None:
    """One weight is not a number."""
    weights = healthy()
    weights.tensors["blk.1.ffn_up.weight"][3, 5] = np.nan
    write(path, weights, base(), None)


def overflowing(path: Path) -> None:
    """All weights are numbers, but no logit is."""
    weights = healthy()
    for name in ("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"):
        weights.tensors[name][:] = 1e30
    write(path, weights, base(), None)


def poisoned(path: Path, arch: Arch = "llama") -> None:
    """A model of `arch` whose numbers overflow at the token `POISON` and from then on; all else is well.

    The last feature is that token's alone, no attention writes to it, and the first layer multiplies it by
    itself until it is infinite.
    """
    weights = healthy(arch)
    tensors, last = weights.tensors, _N_EMBD - 1
    tensors["token_embd.weight"][:, last] = 0
    tensors["token_embd.weight"][POISON] = np.eye(_N_EMBD, dtype=np.float32)[last]
    for name in ("blk.0.attn_output.weight", "blk.0.ssm_out.weight"):
        if name in tensors:
            tensors[name][last] = 0
    for name in ("blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"):
        tensors[name][0] = 0
        tensors[name][0, last] = 1e30
    write(path, weights, base(), None)


def without_vocabulary(path: Path) -> None:
    """Weights that come with no tokens at all."""
    weights = healthy()
    writer = GGUFWriter(path, weights.arch)
    _add_keys(writer, weights.arch, weights.keys)
    writer.add_vocab_size(N_BASE)
    writer.add_tokenizer_model("none")
    for name, tensor in weights.tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def with_twins(path: Path) -> None:
    """Two tokens have the same text: llama.cpp does not refuse such a file, it ends the process."""
    tokens = base().tokens
    write(path, healthy(), Vocabulary((*tokens[:-1], tokens[5])), None)
