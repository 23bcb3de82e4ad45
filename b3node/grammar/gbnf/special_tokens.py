"""Literals of a dialect as GBNF: plain text spelled out, special tokens as `<[ID]>`, which is that token alone.

Whoever runs the grammar sees to it that a special token is never taken for its text (`llama.special_token_chars`); in turn no text
here has a control character, because they stand for special tokens there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from b3node.grammar.gbnf.rules import Symbols
from b3node.grammar.gbnf.strings import literal


class SpecialTokens:
    """The special tokens of one vocabulary.

    Args:
        tokens: the texts of the special tokens that a model may write, with their ids.
        ends: the texts of the tokens that end a generation: they are never written, they end the grammar.
    """

    def __init__(self, tokens: Mapping[str, int], ends: Collection[str] = ()) -> None:
        self._tokens = {text: number for text, number in tokens.items() if text and text not in ends}
        self._ends = _any_of(ends)
        self._specials = _any_of(self._tokens)

    def row(self, text: str) -> Symbols:
        """`text` up to where it ends a generation, as symbols."""
        pieces = self._specials.split(self._before_end(text))
        return tuple(self._symbol(piece) for piece in pieces if piece)

    def is_end(self, text: str) -> bool:
        """Whether nothing can follow `text`."""
        return self._ends.search(text) is not None

    def _symbol(self, piece: str) -> str:
        number = self._tokens.get(piece)
        return literal(piece) if number is None else f"<[{number}]>"

    def _before_end(self, text: str) -> str:
        found = self._ends.search(text)
        return text[: found.start()] if found else text


def _any_of(texts: Collection[str]) -> re.Pattern[str]:
    """Matches any of the texts, the longest first; never anything without texts."""
    longest = sorted((text for text in texts if text), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest))})" if longest else "((?!))")


NO_SPECIAL_TOKENS: Final = SpecialTokens({})
"""A vocabulary without special tokens: every marker is plain text."""
