"""What bounds an engine: what the model and the machine allow, and what the operator chose."""

from __future__ import annotations

import msgspec


class EngineLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Fixed for an engine's life; counts are tokens, cells and sequences unless they say bytes."""

    n_ctx: int
    """Tokens of one sequence, prompt and output together; at most `cells`, so that one always fits."""
    cells: int
    parallel: int
    """Sequences that run at once."""
    slots: int
    """llama.cpp sequence ids: `parallel` of them run, the others keep prefixes (at least one, so that a slot
    can be given up without giving up the prefix that is asked for)."""
    waiting: int
    image_cells: int = 0
    """Cells of the largest image that a step can hold together with a token of each stream; 0 where the backend
    computes none."""
    batch: int
    """Tokens that one step can hold."""
    drafts: bool
    """Whether what is likely to be said is computed before it is drawn; not with `stateful`, where nothing that was computed
    can be taken back."""
    stateful: bool
    """Whether a prefix can be entered only where its state was copied (recurrent and windowed layers)."""
    window: int
    """Tokens of the sliding window of some layers, 0 without."""
    kept_cells: int
    """Cells of finished sequences that stay in the cache beside running ones: every step looks past them."""
    host_cache: int
    """Bytes of host memory for what leaves the cache."""
    token_bytes: int
    """Bytes of one position's cells."""
    state_bytes: int
    """Bytes of one sequence's state, 0 where there is none."""
