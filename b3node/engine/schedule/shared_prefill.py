"""Whether to wait for somebody else's prompt: those that begin alike are computed once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from b3node.engine.cache.prefix_tree import Ids, common_prefix
from b3node.engine.schedule.sequence import Sequence

MIN_SHARED_TOKENS: Final = 4
"""Shared tokens for which a prompt waits until another one has computed them: a wait costs a step or two,
not waiting costs the tokens once more for every prompt that begins alike."""


def is_prefilling_shared(
    running: Iterable[Sequence], follower: Sequence, known: Ids, matched: int, *, stateful: bool
) -> bool:
    """Whether a running prompt of the same namespace is about to compute much more of what `follower` knows.

    `matched` positions of `known` can be read already. A stateful model can be entered only at its leader's
    marks.
    """
    for leader in running:
        if leader.namespace != follower.namespace or leader.pending <= 1:
            continue
        ahead = common_prefix(np.frombuffer(leader.known, np.int32), known)
        if stateful:
            ahead = max((mark for mark in leader.cache_boundaries if mark <= ahead), default=0)
        if ahead > max(matched, leader.computed) and ahead - matched >= MIN_SHARED_TOKENS:
            return True
    return False
