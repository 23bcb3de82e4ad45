"""Literals of a dialect as GBNF: plain text spelled out, special tokens as token elements.

A special token of a vocabulary stands as `<[ID]>`, which llama.cpp matches by id alone. Two properties of its
engine (0.3.36, read in its source) bind whoever writes and whoever enforces such elements:

* A character class or a literal matches a special token by its text, so the enforcer must refuse a special that
  the plain spelling of its text would pass for.
* The engine looks at a candidate's id wherever a token element is reached, even behind characters of that same
  candidate, and then aborts when the token is accepted. So what stands before a token element here never ends in
  the way that the token's text begins (see `overlaps`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from b3node.grammar.rules import Row
from b3node.grammar.strings import literal


class Marks:
    """The special tokens of one vocabulary.

    Args:
        tokens: the texts of the special tokens that a model may write, with their ids.
        ends: the texts of the tokens that end a generation: they are never written, they end the grammar.
    """

    def __init__(self, tokens: Mapping[str, int], ends: Collection[str] = ()) -> None:
        self._tokens = {text: number for text, number in tokens.items() if text and text not in ends}
        self._ends = _any_of(ends)
        self._specials = _any_of(self._tokens)

    def row(self, text: str) -> Row:
        """`text` up to where it ends a generation, as symbols."""
        out: list[str] = []
        before = ""
        for piece in self._specials.split(self._before_end(text)):
            number = self._tokens.get(piece)
            if number is not None and not overlaps(before, piece):
                out.append(f"<[{number}]>")
            elif piece:
                out.append(literal(piece))
            before = piece or before
        return tuple(out)

    def is_end(self, text: str) -> bool:
        """Whether nothing can follow `text`."""
        return self._ends.search(text) is not None

    def first(self, text: str) -> str:
        """The special token that `text` begins with, or ""."""
        text = self._before_end(text)
        found = self._specials.match(text)
        return found[0] if found else ""

    def _before_end(self, text: str) -> str:
        found = self._ends.search(text)
        return text[: found.start()] if found else text


def overlaps(before: str, after: str) -> bool:
    """Whether `before` ends in the way that `after` begins."""
    return any(before.endswith(after[:size]) for size in range(1, min(len(before), len(after)) + 1))


def _any_of(texts: Collection[str]) -> re.Pattern[str]:
    """Matches any of the texts, the longest first; never anything without texts."""
    longest = sorted((text for text in texts if text), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest))})" if longest else "((?!))")


NO_MARKS: Final = Marks({})
"""A vocabulary without special tokens: every marker is plain text."""
