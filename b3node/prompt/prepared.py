"""What a prepare worker hands back: everything the engine needs of a prompt, ready to be submitted."""

from __future__ import annotations

import msgspec

from b3node.dialects.outline import Outline, Reading


class Prepared(msgspec.Struct, frozen=True):
    """A prompt as tokens.

    `tokens` are little-endian int32 ids; `prompt_tokens` is their number (at least 1); `marks` are
    ascending token counts at which the prompt has a boundary worth coming back to (end of the system
    prompt, ends of turns, before the generation prompt), for the prefix cache. `grammar` is the GBNF text that
    the answer must keep to, or None for free text; `outline` says when it holds and how a thought is bounded, `reading`
    how the answer is read. `loosened` says what of the functions' schemas the grammar does not enforce.
    """

    tokens: bytes
    prompt_tokens: int
    marks: tuple[int, ...] = ()
    grammar: str | None = None
    outline: Outline | None = None
    reading: Reading = Reading()
    loosened: tuple[str, ...] = ()
