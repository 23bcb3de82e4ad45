"""The result of a prepare worker: everything that the engine needs of a prompt, ready to be submitted."""

from __future__ import annotations

import msgspec

from b3node.dialects.outline import Outline, Reading


class Prepared(msgspec.Struct, frozen=True):
    """A prompt as tokens, and the constraints of its answer."""

    tokens: bytes
    """Little-endian int32 ids."""
    prompt_tokens: int
    """The number of `tokens`; at least 1."""
    cache_boundaries: tuple[int, ...] = ()
    """Ascending token counts at which another prompt may branch off (end of the system prompt, ends of turns,
    before the generation prompt), for the prefix cache."""
    grammar: str | None = None
    """The GBNF text that the answer must keep to, or None for free text."""
    outline: Outline | None = None
    """When the grammar holds, and how thinking is bounded."""
    reading: Reading = Reading()
    """How the answer is read."""
    loosened: tuple[str, ...] = ()
    """The parts of the functions' schemas that the grammar does not enforce."""
