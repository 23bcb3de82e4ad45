"""The bodies of the zoo's models: what llama.cpp asks of each architecture, at toy size.

`ARCHITECTURES` says how the families differ; `body` draws the layers. Both kinds of model are made of it:
random ones keep the layers as drawn, scripted ones silence them (`silence`), so that a layer still reads,
writes and remembers like a real one while the residual stream passes unchanged.

Key and tensor names, and the shapes, are llama.cpp's; shapes here are in numpy's order, rows first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from tests.zoo.gguf_file import Tensor, Value, Weights

Arch = Literal["llama", "qwen3", "qwen3moe", "gemma3", "gemma4", "qwen35", "qwen35moe", "qwen3next"]

WINDOW: Final = 16
"""Tokens that a layer with a sliding window sees, itself included: few, so that short tests leave it."""
EXPERTS: Final = 4
EXPERTS_USED: Final = 2

_STATE, _GROUPS, _CONV = 16, 2, 4
_KEY = _VALUE = _STATE * _GROUPS  # a gated delta net with as many value heads as key heads


@dataclass(frozen=True, slots=True)
class Traits:
    """How a family's layer differs from a plain Llama layer."""

    layers: int = 2  # of a random model
    qk_norm: bool = False  # queries and keys are normalised per head
    post_norms: bool = False  # each half of a layer is normalised before it is added
    window: bool = False  # every other layer, the first included, attends to WINDOW tokens only
    recurrent: bool = False  # every other layer, the first included, is a gated delta net
    experts: bool = False
    shared_expert: bool = False
    fused_beta_alpha: bool = False

    @property
    def min_layers(self) -> int:
        """Fewer would leave out one of the family's two kinds of layer."""
        return 2 if self.window or self.recurrent else 1


ARCHITECTURES: Final[dict[Arch, Traits]] = {
    "llama": Traits(),
    "qwen3": Traits(qk_norm=True),
    "qwen3moe": Traits(qk_norm=True, experts=True),
    "gemma3": Traits(layers=4, qk_norm=True, post_norms=True, window=True),
    "gemma4": Traits(layers=4, qk_norm=True, post_norms=True, window=True),
    "qwen35": Traits(layers=4, qk_norm=True, recurrent=True),
    "qwen35moe": Traits(layers=4, qk_norm=True, recurrent=True, experts=True, shared_expert=True),
    "qwen3next": Traits(
        layers=4, qk_norm=True, recurrent=True, experts=True, shared_expert=True, fused_beta_alpha=True
    ),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes that a model is free to choose. A head is as wide as its rotary embedding."""

    n_embd: int
    n_layer: int
    n_head: int = 4
    n_head_kv: int = 2
    head: int = 16
    n_ff: int = 96
    context: int = 4096
    rope_base: float = 10000.0


def body(arch: Arch, shape: Shape, rng: np.random.Generator) -> Weights:
    """The keys and the layers' tensors of `arch`, drawn from `rng`; embedding and output are the caller's.

    Raises ValueError where `shape.n_layer` is too small for the family. The same `rng` state gives the same
    tensors.
    """
    traits = ARCHITECTURES[arch]
    if shape.n_layer < traits.min_layers:
        raise ValueError(f"{arch} needs at least {traits.min_layers} layers")
    weights = Weights(arch, {**_common_keys(shape), **_family_keys(arch, traits, shape)})
    if arch == "gemma4":
        weights.tensors["rope_freqs.weight"] = np.ones(shape.head // 2, np.float32)
    for index in range(shape.n_layer):
        _Layer(f"blk.{index}.", traits, shape, rng, weights.tensors).draw(recurrent=index % 2 == 0)
    weights.tensors["output_norm.weight"] = np.ones(shape.n_embd, np.float32)
    return weights


def silence(weights: Weights) -> None:
    """Zero every projection into the residual stream, in place: the layers then change nothing."""
    into_stream = ("attn_output.weight", "ssm_out.weight", "ffn_down.weight")
    experts = ("ffn_down_exps.weight", "ffn_down_shexp.weight")
    for name, tensor in weights.tensors.items():
        if name.endswith((*into_stream, *experts)):
            weights.tensors[name] = np.zeros_like(tensor)


def _common_keys(shape: Shape) -> dict[str, Value]:
    return {
        "context_length": shape.context,
        "embedding_length": shape.n_embd,
        "block_count": shape.n_layer,
        "feed_forward_length": shape.n_ff,
        "attention.head_count": shape.n_head,
        "attention.head_count_kv": shape.n_head_kv,
        "attention.key_length": shape.head,
        "attention.value_length": shape.head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.dimension_count": shape.head,
        "rope.freq_base": shape.rope_base,
    }


def _family_keys(arch: Arch, traits: Traits, shape: Shape) -> dict[str, Value]:
    keys: dict[str, Value] = {}
    if traits.experts:
        keys |= {"expert_count": EXPERTS, "expert_used_count": EXPERTS_USED}
        keys |= {"expert_feed_forward_length": shape.n_ff}
    if traits.shared_expert:
        keys |= {"expert_shared_feed_forward_length": shape.n_ff}
    if traits.window:
        keys |= {"attention.sliding_window": WINDOW}
    if arch == "gemma3":
        keys |= {"attention.sliding_window_pattern": 2}
    if arch == "gemma4":
        keys |= {"attention.sliding_window_pattern": [index % 2 == 0 for index in range(shape.n_layer)]}
        keys |= {"attention.key_length_swa": shape.head, "attention.value_length_swa": shape.head}
        keys |= {"rope.dimension_count_swa": shape.head, "embedding_length_per_layer_input": 0}
    if traits.recurrent:
        keys |= {"full_attention_interval": 2, "rope.dimension_sections": [4, 2, 2, 0]}
        keys |= {"ssm.conv_kernel": _CONV, "ssm.state_size": _STATE, "ssm.inner_size": _VALUE}
        keys |= {"ssm.group_count": _GROUPS, "ssm.time_step_rank": _GROUPS}
    return keys


@dataclass(frozen=True, slots=True)
class _Layer:
    """Draws one layer into `into`, each name under `prefix`."""

    prefix: str
    traits: Traits
    shape: Shape
    rng: np.random.Generator
    into: dict[str, Tensor]

    def draw(self, *, recurrent: bool) -> None:
        self.norm("attn_norm", self.shape.n_embd)
        if self.traits.recurrent and recurrent:
            self.delta_net()
        else:
            self.attention()
        self.norms_between()
        if self.traits.experts:
            self.experts()
        else:
            self.feed_forward("")
        if self.traits.shared_expert:
            self.matrix("ffn_gate_inp_shexp", self.shape.n_embd)
            self.feed_forward("_shexp")

    def matrix(self, name: str, *shape: int) -> None:
        """Normal draws that keep the input's magnitude."""
        drawn = self.rng.standard_normal(shape, dtype=np.float32)
        self.into[f"{self.prefix}{name}.weight"] = drawn / np.float32(np.sqrt(shape[-1]))

    def norm(self, name: str, size: int) -> None:
        drawn = self.rng.uniform(0.9, 1.1, size).astype(np.float32)
        self.into[f"{self.prefix}{name}.weight"] = drawn

    def attention(self) -> None:
        shape = self.shape
        gate = 2 if self.traits.recurrent else 1  # these families gate the attention's output
        self.matrix("attn_q", gate * shape.n_head * shape.head, shape.n_embd)
        self.matrix("attn_k", shape.n_head_kv * shape.head, shape.n_embd)
        self.matrix("attn_v", shape.n_head_kv * shape.head, shape.n_embd)
        self.matrix("attn_output", shape.n_embd, shape.n_head * shape.head)
        if self.traits.qk_norm:
            self.norm("attn_q_norm", shape.head)
            self.norm("attn_k_norm", shape.head)

    def delta_net(self) -> None:
        n_embd, rng = self.shape.n_embd, self.rng
        self.matrix("attn_qkv", 2 * _KEY + _VALUE, n_embd)
        self.matrix("attn_gate", _VALUE, n_embd)
        self.matrix("ssm_conv1d", 2 * _KEY + _VALUE, _CONV)
        # A positive decay makes every logit NaN without an error.
        self.into[f"{self.prefix}ssm_a"] = -rng.uniform(0.02, 0.2, _GROUPS).astype(np.float32)
        self.into[f"{self.prefix}ssm_dt.bias"] = rng.uniform(-0.5, 0.5, _GROUPS).astype(np.float32)
        if self.traits.fused_beta_alpha:
            self.matrix("ssm_ba", 2 * _GROUPS, n_embd)
        else:
            self.matrix("ssm_alpha", _GROUPS, n_embd)
            self.matrix("ssm_beta", _GROUPS, n_embd)
        self.norm("ssm_norm", _STATE)
        self.matrix("ssm_out", n_embd, _VALUE)

    def norms_between(self) -> None:
        n_embd, traits = self.shape.n_embd, self.traits
        if traits.post_norms or traits.recurrent:
            self.norm("post_attention_norm", n_embd)
        if not traits.recurrent:
            self.norm("ffn_norm", n_embd)
        if traits.post_norms:
            self.norm("post_ffw_norm", n_embd)

    def feed_forward(self, suffix: str) -> None:
        n_embd, n_ff = self.shape.n_embd, self.shape.n_ff
        self.matrix(f"ffn_gate{suffix}", n_ff, n_embd)
        self.matrix(f"ffn_up{suffix}", n_ff, n_embd)
        self.matrix(f"ffn_down{suffix}", n_embd, n_ff)

    def experts(self) -> None:
        n_embd, n_ff = self.shape.n_embd, self.shape.n_ff
        self.matrix("ffn_gate_inp", EXPERTS, n_embd)
        self.matrix("ffn_gate_exps", EXPERTS, n_ff, n_embd)
        self.matrix("ffn_up_exps", EXPERTS, n_ff, n_embd)
        self.matrix("ffn_down_exps", EXPERTS, n_embd, n_ff)
