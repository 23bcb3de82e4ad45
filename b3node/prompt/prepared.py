"""What a prepare worker hands back: everything the engine needs of a prompt, ready to be submitted."""

from __future__ import annotations

import msgspec


class Prepared(msgspec.Struct, frozen=True):
    """A prompt as tokens.

    `tokens` are little-endian int32 ids; `prompt_tokens` is their number (at least 1); `marks` are
    ascending token counts at which the prompt has a boundary worth coming back to (end of the system
    prompt, ends of turns, before the generation prompt), for the prefix cache. `grammar` is the GBNF text that
    the answer must keep to, or None for free text.
    """

    tokens: bytes
    prompt_tokens: int
    marks: tuple[int, ...] = ()
    grammar: str | None = None
