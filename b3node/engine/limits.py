"""The bounds of an engine, which follow from the model, the machine and the operator's options."""

from __future__ import annotations

import msgspec


class EngineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed for an engine's life; counts are tokens, cells and sequences unless they say bytes."""

    n_ctx: int
    """Tokens of one sequence, prompt and output together; at most `cells`, so that one always fits."""
    cells: int
    """Cells of the KV cache."""
    parallel: int
    """Sequences that run at once."""
    slots: int
    """llama.cpp sequence ids: `parallel` of them run, the others keep prefixes. At least one more than
    `parallel`, so that a slot can be evicted while another keeps the prefix of the sequence that enters."""
    waiting: int
    """Sequences that wait in the queue, those that ran before not counted."""
    batch: int
    """Tokens that one step can hold."""
    image_cells: int = 0
    """Cells of the largest image that a step can hold together with a token of each stream; 0 where the
    backend computes none."""
    drafts: bool
    """Whether likely tokens are computed before they are drawn; not with `stateful`, where no computed
    position can be taken back."""
    stateful: bool
    """Whether a prefix can be entered only where its state was copied (recurrent and windowed layers)."""
    window: int
    """Tokens of the sliding window of some layers, 0 without."""
    kept_cells: int
    """Cells of finished sequences that stay in the cache while others run: every step computes over them."""
    host_cache_bytes: int
    """Host memory for the prefixes that leave the cache."""
    token_bytes: int
    """Bytes of one position's cells."""
    state_bytes: int
    """Bytes of one sequence's state, 0 where there is none."""
