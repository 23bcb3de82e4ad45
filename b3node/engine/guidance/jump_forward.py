"""Jump-forward decoding: text that a constraint forces is appended, not drawn.

The keys of a JSON object, the name of the only function, the rest of an enum's value, the end of a complete
answer: where each byte is the only one allowed, the text is certain, whichever tokens the model would have
drawn. Its tokens are appended at once and computed in one step: on a CPU a token then costs half as much as
alone, on a GPU next to nothing.

Where one token ends and the next begins was the model's choice, too, and it continues best from the tokens it
would have drawn. So the text is tokenized as in a prompt, and its end is left to the model as far as a token
could span it and continue: `":` may yet become `":"`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import Constraint

MAX_JUMP: Final = 64
"""Bytes of one look ahead, each a question to the grammar (some 0.03 ms), and tokens of a jump."""
_MAX_CACHED_TEXTS: Final = 1024
"""Texts whose tokens are cached."""

Tokenize = Callable[[str], abc.Sequence[int]]
"""Returns the tokens of plain text that continues other text: no special ones, no space before it."""


class JumpForward:
    """Appends forced text, for any number of sequences.

    Args:
        tokenize: the model's.
        token_table: of the same vocabulary.
    """

    def __init__(self, tokenize: Tokenize, token_table: TokenTable) -> None:
        self._tokenize = tokenize
        self._token_table = token_table
        self.tokens = lru_cache(_MAX_CACHED_TEXTS)(self._tokens)

    def advance(self, constraint: Constraint) -> list[int]:
        """Returns the forced tokens that come next, accepted by the constraint; often none.

        They may end the answer.
        """
        taken: list[int] = []
        while len(taken) < MAX_JUMP:
            text, following, specials = constraint.forced(MAX_JUMP)
            tokens = self.tokens(text, following) if text else ()
            if following == frozenset() and len(specials) == 1 and self._written(tokens) == text:
                tokens = (*tokens, *specials)
            for token in tokens:
                if not constraint.allows(np.array([token], np.int32))[0]:
                    return taken
                constraint.accept(token)
                taken.append(token)
            if not tokens or tokens[-1] not in specials or tokens[-1] in self._token_table.eog:
                break
        return taken

    def _tokens(self, text: bytes, following: frozenset[int] | None) -> abc.Sequence[int]:
        """Returns the tokens that `text` surely begins with, whichever byte of `following` comes after it."""
        try:
            tokens = self._tokenize(text.decode())
        except UnicodeDecodeError:  # the text begins or ends in the middle of a character
            return ()
        if self._written(tokens) != text:
            return ()
        sure = len(tokens)
        while sure and self._spanned(text, len(self._written(tokens[:sure])), following):
            sure -= 1
        return tuple(tokens[:sure])

    def _written(self, tokens: abc.Sequence[int]) -> bytes:
        return b"".join(self._token_table.pieces[token] for token in tokens)

    def _spanned(self, text: bytes, place: int, following: frozenset[int] | None) -> bool:
        """Returns whether a token could begin before `place` and continue after the end of `text`."""
        return any(self._token_table.has_extension(text[start:], following) for start in range(place))
