"""Literals of a dialect as GBNF: plain text as it is, special tokens as `<[ID]>`.

Only the token itself matches `<[ID]>`: the engine ensures that a special token never matches its text
(`llama.special_token_chars`). In turn no text here may have a control character, because the engine uses
those in place of special tokens.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from b3node.grammar.gbnf.rules import Symbols
from b3node.grammar.gbnf.strings import literal


class SpecialTokens:
    """Special tokens of one vocabulary, and the texts that end a generation.

    Args:
        tokens: the texts of the special tokens that a model may write, with their ids.
        ends: the texts of the tokens that end a generation: they end the grammar and are never written.
    """

    def __init__(self, tokens: Mapping[str, int], ends: Collection[str] = ()) -> None:
        self._tokens = {text: number for text, number in tokens.items() if text and text not in ends}
        self._ends = _any_of(ends)
        self._specials = _any_of(self._tokens)

    def row(self, text: str) -> Symbols:
        """Returns the symbols of `text` up to the first text that ends a generation."""
        pieces = self._specials.split(self._before_end(text))
        return tuple(self._symbol(piece) for piece in pieces if piece)

    def is_end(self, text: str) -> bool:
        """Returns whether `text` ends the generation, so that nothing can follow."""
        return self._ends.search(text) is not None

    def _symbol(self, piece: str) -> str:
        number = self._tokens.get(piece)
        return literal(piece) if number is None else f"<[{number}]>"

    def _before_end(self, text: str) -> str:
        found = self._ends.search(text)
        return text[: found.start()] if found else text


def _any_of(texts: Collection[str]) -> re.Pattern[str]:
    """Returns a pattern of the texts, the longest first; it matches nothing if there are none."""
    longest = sorted((text for text in texts if text), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest))})" if longest else "((?!))")


NO_SPECIAL_TOKENS: Final = SpecialTokens({})
"""A vocabulary without special tokens: every marker is plain text."""
