"""Models that say what a script says, whatever the prompt.

How it works. Every layer is silent (`architectures.silence`), so the residual stream at the end is the last
token's embedding: a constant one and a one-hot of the token's *class*. The output matrix maps a class to the
logits of what comes next: 40 + log p for what the script allows, 0 for the rest, so that greedy sampling is
exact and sampling at temperature 1 leaves the script once in 1e15 tokens. All tokens that the script does
not mention share class 0, which leads to the script's beginning.

Order 2 has one layer that is not silent: attention that looks exactly one token back. Query and key are the
same constants, the query turned back by one position, so that the rotary score peaks at distance 1, 44 above
its neighbours'; the value copies the class into a second block of the stream. Llama only.

Speed is set by the number of layers, since almost all of a step's time is overhead per layer. On one quiet
core 1 layer runs at some 20 000 tokens a second, 64 at 1 000 to 1 500: use 64 to have something to cancel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from pathlib import Path
from typing import Final

import numpy as np

from tests.zoo.architectures import ARCHITECTURES, Arch, Shape, body, silence
from tests.zoo.gguf_file import Tensor, Weights, write
from tests.zoo.script import Next, Piece, Routes, S, Script, compile_script
from tests.zoo.templates import CHATML
from tests.zoo.vocabulary import EOG, EOS, N_BASE, SPECIALS, base

MARGIN: Final = 40.0
"""Logits between what a script says and everything else."""
HEAD: Final = 16
ROPE_BASE: Final = 100.0
_LOOK_BACK_AMPLITUDE: Final = 16.0


def scripted(
    path: Path,
    pieces: Sequence[Piece],
    *,
    end: int | S | None = None,
    routes: Routes | None = None,
    order: int = 1,
    arch: Arch = "llama",
    n_layer: int | None = None,
    context: int = 4096,
    strict: bool = False,
    template: str | None = CHATML,
) -> Script:
    """Write a model that says `pieces` and return its script; the same arguments give the same bytes.

    `pieces`, `end`, `routes`, `order` and `strict` are those of `compile_script`, which says what it raises.
    `n_layer` None takes the fewest that show all kinds of layer of `arch`; `context` is the trained context
    in tokens. Raises ValueError also if the script needs order 2 and `arch` is not llama.
    """
    script = compile_script(pieces, end=end, routes=routes, order=order, strict=strict)
    layers = ARCHITECTURES[arch].min_layers if n_layer is None else n_layer
    if _order(script) == 2:
        if arch != "llama":
            raise ValueError("scripts of order 2 are for llama only")
        weights = _looking_back(script, layers, context)
    else:
        weights = _last_token_only(script, arch, layers, context)
    write(path, weights, script.vocabulary, template)
    return script


def free_choice(
    path: Path,
    favour: Mapping[str, float] | None = None,
    *,
    strict: bool = False,
    template: str | None = CHATML,
) -> None:
    """Write a model without an opinion, for sampling under a grammar: the same logits after any prompt.

    They are 0, but for +6 on what ends things (`"`, `}`, `]`, eos), so that random JSON stays short, and -60
    on what no text should hold (bytes from 0x80, specials other than eos). `favour` adds to the logit of
    base tokens, by their text. Raises KeyError for a text that is no base token.
    """
    vocabulary = base(strict=strict)
    logits = np.zeros(N_BASE, np.float32)
    logits[0x80:0x100] = -60
    logits[[vocabulary.id(text) for text in SPECIALS]] = -60
    logits[[vocabulary.id('"'), vocabulary.id("}"), vocabulary.id("]"), EOS]] = 6
    for text, amount in (favour or {}).items():
        logits[vocabulary.id(text)] += amount
    classes = dict.fromkeys(range(N_BASE), 0)
    weights = silent("llama", shape_of(2, 1, 4096))
    weights.tensors |= matrices(classes, logits[:, None], None, 32)
    write(path, weights, vocabulary, template)


def _order(script: Script) -> int:
    return 2 if any(before is not None for before, _ in script.states) else 1


def _last_token_only(script: Script, arch: Arch, n_layer: int, context: int) -> Weights:
    classes = classes_of(script)
    shape = shape_of(1 + count_of(classes), n_layer, context)
    weights = silent(arch, shape)
    if arch == "gemma4":  # its default squeezes logits into +-30
        weights.keys["final_logit_softcapping"] = 0.0
    by_last = np.zeros((len(script.vocabulary), count_of(classes)), np.float32)
    _put(by_last, 0, script.start, MARGIN)
    for (_, last), following in script.states.items():
        _put(by_last, classes[last], following, MARGIN)
    weights.tensors |= matrices(classes, by_last, None, shape.n_embd)
    return weights


def _looking_back(script: Script, n_layer: int, context: int) -> Weights:
    classes = classes_of(script)
    count = count_of(classes)
    shape = shape_of(1 + 2 * count, n_layer, context, heads=-(-count // HEAD))
    weights = silent("llama", shape)
    weights.tensors |= _look_back(shape, count)
    by_last, by_before = pair_logits(script, classes)
    _check(script, classes, by_last, by_before)
    weights.tensors |= matrices(classes, by_last, by_before, shape.n_embd)
    return weights


def classes_of(script: Script) -> dict[int, int]:
    """The class of each token: 0 for those that the script's states do not mention."""
    mentioned = {token for state in script.states for token in state if token is not None}
    classes = dict.fromkeys(range(len(script.vocabulary)), 0)
    return classes | {token: number for number, token in enumerate(sorted(mentioned), start=1)}


def count_of(classes: Mapping[int, int]) -> int:
    return max(classes.values()) + 1


def shape_of(width: int, n_layer: int, context: int, *, heads: int = 1) -> Shape:
    return Shape(
        n_embd=-(-width // 32) * 32,
        n_layer=n_layer,
        n_head=heads,
        n_head_kv=heads,
        head=HEAD,
        n_ff=32,
        context=context,
        rope_base=ROPE_BASE,
    )


def silent(arch: Arch, shape: Shape) -> Weights:
    weights = body(arch, shape, np.random.default_rng(0))
    silence(weights)
    return weights


def _put(logits: Tensor, column: int, following: Next, level: float) -> None:
    for token, share in following.items():
        logits[token, column] = level + log(share)


def matrices(
    classes: Mapping[int, int], by_last: Tensor, by_before: Tensor | None, n_embd: int
) -> dict[str, Tensor]:
    """Embedding and output. The final norm multiplies a stream of k ones by sqrt(n_embd / k)."""
    count = by_last.shape[1]
    embedding = np.zeros((len(classes), n_embd), np.float32)
    embedding[:, 0] = 1
    embedding[list(classes), [1 + number for number in classes.values()]] = 1
    output = np.zeros((len(classes), n_embd), np.float32)
    output[:, 1 : 1 + count] = by_last
    if by_before is not None:
        output[:, 1 + count : 1 + 2 * count] = by_before
    ones = 2 if by_before is None else 3
    return {
        "token_embd.weight": embedding,
        "output.weight": output * np.float32(np.sqrt(ones / n_embd)),
    }


def _look_back(shape: Shape, count: int) -> dict[str, Tensor]:
    """The first layer's attention, which copies the class of the token before the last."""
    angles = ROPE_BASE ** (-np.arange(0, HEAD, 2) / HEAD)
    key = np.stack([np.ones_like(angles), np.zeros_like(angles)], axis=1).ravel()
    query = np.stack([np.cos(angles), -np.sin(angles)], axis=1).ravel()
    scale = np.sqrt(2 / shape.n_embd)  # undoes the norm of a stream of two ones
    width = shape.n_head * HEAD
    q, k, v = (np.zeros((width, shape.n_embd), np.float32) for _ in range(3))
    q[:, 0] = np.tile(query, shape.n_head) * _LOOK_BACK_AMPLITUDE * scale
    k[:, 0] = np.tile(key, shape.n_head) * _LOOK_BACK_AMPLITUDE * scale
    out = np.zeros((shape.n_embd, width), np.float32)
    each = np.arange(count)
    v[each, 1 + each] = scale
    out[1 + count + each, each] = 1
    layer = {"attn_q": q, "attn_k": k, "attn_v": v, "attn_output": out, "attn_norm": np.ones(shape.n_embd)}
    return {f"blk.0.{name}.weight": np.asarray(tensor, np.float32) for name, tensor in layer.items()}


def pair_logits(script: Script, classes: Mapping[int, int]) -> tuple[Tensor, Tensor]:
    """Logits by the last token's class and by the one before; a state's logits are the sum of two columns.

    What the last token settles alone has 2 margins. Where the one before decides, the token's fallback
    has 1.5, a pair's own continuation 1 from either side: half a margin parts them both ways.
    """
    shape = (len(script.vocabulary), count_of(classes))
    by_last, by_before = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    paired = {last for before, last in script.states if before is not None}
    for last in [0, *(token for token, number in classes.items() if number)]:
        level = 1.5 if last in paired else 2
        _put(by_last, classes[last], script.states.get((None, last), script.start), level * MARGIN)
    pairs = [(before, last, after) for (before, last), after in script.states.items() if before is not None]
    for _, last, after in pairs:
        for token in after:
            by_last[token, classes[last]] = max(by_last[token, classes[last]], MARGIN)
    for before, last, after in pairs:
        for token, share in after.items():
            rest = 2 * MARGIN + log(share) - by_last[token, classes[last]]
            by_before[token, classes[before]] = max(by_before[token, classes[before]], rest)
    return by_last, by_before


def _check(script: Script, classes: Mapping[int, int], by_last: Tensor, by_before: Tensor) -> None:
    """Raises ValueError if a sum of two columns does not say what the script says."""
    for before, last in _possible_pairs(script):
        logits = by_last[:, classes[last]] + by_before[:, classes[before]]
        chances = np.exp(logits.astype(np.float64) - logits.max())
        expected = np.zeros_like(chances)
        for token, share in script.after(before, last).items():
            expected[token] = share
        if np.abs(chances / chances.sum() - expected).max() > 1e-6:
            text = script.vocabulary.join([before, last])
            raise ValueError(f"the weights cannot tell what follows {text!r}")


def _possible_pairs(script: Script) -> set[tuple[int, int]]:
    """Every two tokens that may stand at the end: of any prompt, of the script's start, or within it."""
    own = {token for state in script.states for token in state if token is not None}
    in_prompts = {token for token in own if token < N_BASE} | {0}
    pairs = {(before, last) for before in in_prompts for last in in_prompts | set(script.start)}
    for (before, last), following in script.states.items():
        pairs |= {(last, token) for token in following if token not in EOG}
        pairs |= {(before, last)} if before is not None else set()
    return pairs
