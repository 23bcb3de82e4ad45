"""Models with random weights: their output means nothing, but it depends on every token of the prompt.

That is what proves a cache right: a prefix restored wrongly, one token missing or one position off, changes
the logits. (A scripted model would not notice: it looks at the last token only.)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.zoo.architectures import ARCHITECTURES, Arch, Shape, body
from tests.zoo.gguf_file import write
from tests.zoo.templates import CHATML
from tests.zoo.vocabulary import N_BASE, base


def random_model(
    path: Path,
    arch: Arch = "llama",
    seed: int = 0,
    *,
    n_layer: int | None = None,
    context: int = 4096,
    strict: bool = False,
    template: str | None = CHATML,
) -> None:
    """Write a model of `arch` to `path`; the same arguments give the same bytes.

    `n_layer` None takes the family's usual 2 or 4; `context` is the trained context in tokens; `strict`
    selects the vocabulary (see `vocabulary.base`). Raises ValueError for fewer layers than the family needs.
    """
    shape = Shape(
        n_embd=64, n_layer=ARCHITECTURES[arch].layers if n_layer is None else n_layer, context=context
    )
    rng = np.random.default_rng(seed)
    weights = body(arch, shape, rng)
    embedding = rng.standard_normal((N_BASE, shape.n_embd), dtype=np.float32)
    output = rng.standard_normal((N_BASE, shape.n_embd), dtype=np.float32)
    if arch in {"gemma3", "gemma4"}:  # which multiply embeddings by sqrt(n_embd)
        embedding /= np.float32(np.sqrt(shape.n_embd))
    # Scaled so that logits have a spread of about 2: sampling has something to choose from.
    weights.tensors |= {"token_embd.weight": embedding, "output.weight": output * np.float32(0.25)}
    write(path, weights, base(strict=strict), template)
