"""Jump-forward decoding: what a constraint leaves no choice about is written, not drawn.

The keys of a JSON object, the name of the only function, the rest of an enum's value, the end of an answer that is
complete: where every byte is the only one that may come, so is the text, whatever the model would have drawn. Its
tokens are appended at once and computed in one step: on a CPU a token costs half of what it does alone, on a GPU
next to nothing.

Where one token ends and the next begins was the model's to choose, too, and it goes on best from what it would have
written. So the text is tokenized as it would be in a prompt, and what a token could span that goes on behind its end
is left to the model: `":` may yet become `":"`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import Constraint

MAX_FORCED: Final = 64
"""Bytes that are looked ahead at once, each for a question to the grammar (some 0.03 ms), and tokens of a jump."""
_KNOWN: Final = 1024
"""Texts whose tokens are remembered."""

Tokenize = Callable[[str], abc.Sequence[int]]
"""The tokens of plain text that goes on where other text ended: no special ones, no space before it."""


class JumpForward:
    """Jumps over what is forced, for any number of sequences.

    Args:
        tokenize: the model's.
        lexicon: of the same vocabulary.
    """

    def __init__(self, tokenize: Tokenize, token_table: TokenTable) -> None:
        self._tokenize = tokenize
        self._token_table = token_table
        self.tokens = lru_cache(_KNOWN)(self._tokens)

    def advance(self, constraint: Constraint) -> list[int]:
        """The tokens that come next whatever is drawn, accepted by the constraint; often none.

        They may end the answer.
        """
        taken: list[int] = []
        while len(taken) < MAX_FORCED:
            text, following, specials = constraint.forced(MAX_FORCED)
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
        """The tokens that `text` is sure to be written with, whichever of the bytes `following` come behind it."""
        try:
            tokens = self._tokenize(text.decode())
        except UnicodeDecodeError:  # it ends, or begins, in the middle of a character
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
        """Whether a token could begin before `place` and go on behind the end of `text`."""
        return any(self._token_table.has_extension(text[start:], following) for start in range(place))
