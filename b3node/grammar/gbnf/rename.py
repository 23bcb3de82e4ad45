"""Renaming of rules, so that a whole grammar can be a part of a larger one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

_PIECE: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[a-zA-Z][a-zA-Z0-9-]*')
_QUOTING: Final = ('"', "[")


def renamed(gbnf: str, prefix: str, kept: Collection[str] = ()) -> dict[str, str]:
    """Returns the rules of a grammar under new names: name to body.

    Args:
        gbnf: the grammar.
        prefix: the new name of `root`; those of the other rules begin with it.
        kept: rules that are referred to under their own names, and left out.
    """

    def one(found: re.Match[str]) -> str:
        piece = found[0]
        return piece if piece[0] in _QUOTING else name(piece)

    def name(own: str) -> str:
        if own in kept:
            return own
        return prefix if own == "root" else f"{prefix}-{own}"

    return {name(own): _PIECE.sub(one, body) for own, body in _lines(gbnf) if own not in kept}


def _lines(gbnf: str) -> Iterator[tuple[str, str]]:
    for line in gbnf.splitlines():
        own, _, body = line.partition(" ::= ")
        yield own, body
