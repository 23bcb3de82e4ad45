"""A grammar that is a list of texts, and token tables of the zoo's vocabulary with a test's own tokens."""

from __future__ import annotations

import itertools
from collections import abc
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from b3node.dialects.outline import MARK
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import ForcedText, Mask, TokenIds
from tests.zoo.vocabulary import EOG, N_BASE, Token as Entry, TokenType, Vocabulary, base, stored


def token_table(*more: str | bytes, strict: bool = True) -> TokenTable:
    """The base vocabulary's, with plain tokens behind it that read `more`."""
    vocabulary = base(strict=strict)
    plain = [piece.encode() if isinstance(piece, str) else piece for piece in more]
    return token_table_of(
        vocabulary.extended([Entry(stored(piece), TokenType.NORMAL, piece) for piece in plain])
    )


def token_table_of(vocabulary: Vocabulary) -> TokenTable:
    controls = [i for i, token in enumerate(vocabulary.tokens) if token.type == TokenType.CONTROL]
    specials = {
        i: token.piece.decode()
        for i, token in enumerate(vocabulary.tokens)
        if token.type in {TokenType.CONTROL, TokenType.USER_DEFINED}
    }
    pieces = [b"" if i in controls else token.piece for i, token in enumerate(vocabulary.tokens)]
    return TokenTable(pieces, specials, controls, EOG)


def spell(token_table: TokenTable, text: bytes) -> list[int]:
    """The tokens of a text, one a byte but for specials behind a `MARK`."""
    tokens: list[int] = []
    while text:
        fitting = [token for token, marked in token_table.marked.items() if text.startswith(marked)]
        tokens.append(fitting[0] if fitting else text[0])
        text = text[len(token_table.marked[fitting[0]]) if fitting else 1 :]
    return tokens


@dataclass
class TextGrammar:
    """Implements `engine.sampling.constraint.Grammar`: what is written becomes one of `texts`, specials with
    `MARK`.
    """

    token_table: TokenTable
    texts: Collection[bytes]
    written: bytes = b""
    accepted: list[int] = field(default_factory=list)
    _passed: set[int] = field(default_factory=set)

    def says(self, token: int) -> bytes:
        return self.token_table.marked.get(token) or self.token_table.pieces[token].replace(MARK, b"")

    def takes(self, token: int) -> bool:
        if token in self.token_table.eog:
            return self.written in self.texts
        said = self.says(token)
        return bool(said) and any(text.startswith(self.written + said) for text in self.texts)

    def allows(self, tokens: TokenIds) -> Mask:
        mask = np.array([self.takes(token) for token in tokens.tolist()], bool)
        self._passed.update(tokens[mask].tolist())
        return mask

    def narrow(self) -> TokenIds | None:
        tokens = np.arange(len(self.token_table.pieces), dtype=np.int32)
        return tokens[[self.takes(token) for token in tokens.tolist()]]

    def accept(self, token: int) -> None:
        if token not in self._passed:
            raise ValueError("a token was accepted that nobody asked about")
        self._passed.clear()
        self.accepted.append(token)
        if token not in self.token_table.eog:
            self.written += self.says(token)

    def refused(self) -> None:
        return None

    def forced(self, most: int) -> ForcedText:
        behind = [text[len(self.written) :] for text in self.texts if text.startswith(self.written)]
        same = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*behind, strict=False))
        text = bytes(column[0] for column in same).partition(MARK)[0][:most]
        left = [each[len(text) :] for each in behind]
        if len(text) == most:
            return ForcedText(text)
        plain = frozenset(each[0] for each in left if each and not each.startswith(MARK))
        fitting = [
            t for t, said in self.token_table.marked.items() if any(each.startswith(said) for each in left)
        ]
        return ForcedText(text, plain, (*(sorted(self.token_table.eog)[:1] if b"" in left else ()), *fitting))

    def after(self, text: bytes) -> TextGrammar | None:
        written = self.written + text
        if MARK in text or not any(each.startswith(written) for each in self.texts):
            return None
        return TextGrammar(self.token_table, self.texts, written)


def ids(tokens: Iterable[int]) -> TokenIds:
    return np.array(list(tokens), np.int32)


def everything(token_table: TokenTable) -> TokenIds:
    return np.arange(len(token_table.pieces), dtype=np.int32)


def new(token_table: TokenTable, *pieces: str | bytes) -> abc.Sequence[int]:
    """The ids of tokens that a test has added."""
    wanted = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
    return [token_table.pieces.index(piece, N_BASE) for piece in wanted]
