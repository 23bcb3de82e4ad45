"""Phases of a guided sequence except the grammar itself: small constraints for `engine.guidance.guide`."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from b3node.dialects.outline import MARK
from b3node.engine.guidance.token_table import FreeTokens, TokenTable
from b3node.engine.sampling.constraint import ForcedText, Grammar, Mask, TokenIds
from b3node.engine.sampling.sampler import Places

_NONE: Final[Places] = np.empty(0, np.intp)


class Free:
    """Allows every token except those that `free` and `also_refused` refuse.

    The two have no token in common.
    """

    def __init__(self, free: FreeTokens, also_refused: abc.Sequence[int] = ()) -> None:
        self.free: Final = free
        self.also_refused: Final = np.array(also_refused, np.intp) if also_refused else _NONE
        self._refused = np.concatenate((free.refused, self.also_refused)) if also_refused else free.refused

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns True for all but the refused tokens."""
        mask: Mask = self.free.allowed[tokens]
        return mask & ~np.isin(tokens, self.also_refused) if self.also_refused.size else mask

    def narrow(self) -> TokenIds | None:
        """Returns None: nearly every token is allowed."""
        return None

    def refused(self) -> Places | None:
        """Returns all refused tokens."""
        return self._refused

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns no text: hardly any token is refused."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Changes nothing. Raises `ValueError` if the token is refused."""
        if not self.free.allowed[token] or (self.also_refused.size and token in self.also_refused):
            raise ValueError("a token was to be accepted that was not allowed")


class CheckedFree(Free):
    """As `Free`, but tokens of the mask `doubtful` are allowed only if `is_allowed` returns True for them."""

    def __init__(
        self,
        free: FreeTokens,
        also_refused: abc.Sequence[int],
        doubtful: Mask,
        is_allowed: Callable[[int], bool],
    ) -> None:
        super().__init__(free, also_refused)
        self._doubtful = doubtful
        self._is_allowed = is_allowed

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns True for tokens that are not refused; checks the doubtful ones."""
        mask = super().allows(tokens)
        for place in np.flatnonzero(mask & self._doubtful[tokens]):
            mask[place] = self._is_allowed(int(tokens[place]))
        return mask

    def refused(self) -> Places | None:
        """Returns None: not all refused tokens are known."""
        return None

    def accept(self, token: int) -> None:
        """Changes nothing. Raises `ValueError` if the token is refused."""
        super().accept(token)
        if self._doubtful[token] and not self._is_allowed(token):
            raise ValueError("a token was to be accepted that was not allowed")


class Forced:
    """Allows given tokens, at least one, in their order and no others."""

    def __init__(self, tokens: abc.Sequence[int]) -> None:
        self.remaining: Final = list(reversed(tokens))

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns True for the next one."""
        mask: Mask = tokens == self.remaining[-1]
        return mask

    def narrow(self) -> TokenIds | None:
        """Returns the next one."""
        return np.array(self.remaining[-1:], np.int32)

    def refused(self) -> Places | None:
        """Returns None: all others are refused, which are not few."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns no text: tokens are forced, not bytes."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Advances to the next token. Raises `ValueError` if the token is another one."""
        if token != self.remaining[-1]:
            raise ValueError("a token was to be accepted that was not the next one")
        self.remaining.pop()


class NothingAllowed:
    """Allows no token: the sequence ends."""

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns False for every token."""
        return np.zeros(len(tokens), bool)

    def narrow(self) -> TokenIds | None:
        """Returns no token."""
        return np.empty(0, np.int32)

    def refused(self) -> Places | None:
        """Returns None: the refused tokens are not few."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns no text."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Raises `ValueError`."""
        raise ValueError(f"token {token} was to be accepted where nothing is allowed")


class ThinkingOrGrammar:
    """Beginning of an answer whose grammar applies at once unless the model thinks first.

    Both ways are open as long as the text so far fits both.

    Attributes:
        remaining: the bytes that the marker that opens thinking still lacks: b"" once it is complete, None
            once the text does not fit it.
        grammar: advanced by the text; None once it refused a token.

    Args:
        marker: the one that opens thinking, with `MARK` before special tokens; not empty.
        marked: the bytes of the special tokens that may be written.
        grammar: a copy of its own.
    """

    def __init__(
        self, marker: bytes, token_table: TokenTable, marked: Mapping[int, bytes], grammar: Grammar
    ) -> None:
        self.remaining: bytes | None = marker
        self.grammar: Grammar | None = grammar
        self._token_table = token_table
        self._marked = marked
        self._marker_tokens = self._tokens_of_marker(marker)

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns True for tokens that continue the marker, or the grammar."""
        mask: Mask = np.isin(tokens, self._marker_tokens)
        return mask if self.grammar is None else mask | self.grammar.allows(tokens)

    def narrow(self) -> TokenIds | None:
        """Returns the marker's tokens and the grammar's."""
        if self.grammar is None:
            return self._marker_tokens
        narrowed = self.grammar.narrow()
        return None if narrowed is None else np.union1d(narrowed, self._marker_tokens).astype(np.int32)

    def refused(self) -> Places | None:
        """Returns None: the refused tokens are not few."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns no text as long as both ways are open, then the grammar's."""
        return self.grammar.forced(max_bytes) if self.remaining is None and self.grammar else ForcedText()

    def accept(self, token: int) -> None:
        """Advances in all ways that the token leaves open. Raises `ValueError` if it leaves none."""
        asked = np.array([token], np.int32)
        if self.grammar is not None:
            if self.grammar.allows(asked)[0]:
                self.grammar.accept(token)
            else:
                self.grammar = None
        if self.remaining and token in self._marker_tokens:
            written = self._marked.get(token) or self._token_table.pieces[token]
            self.remaining = self.remaining[len(written) :]
            self._marker_tokens = self._tokens_of_marker(self.remaining)
        elif self.grammar is None:
            raise ValueError("a token was to be accepted that was not allowed")
        else:
            self.remaining = None

    def _tokens_of_marker(self, remaining: bytes) -> TokenIds:
        """Returns the tokens that continue with the bytes that the marker still lacks."""
        if not remaining:
            return np.empty(0, np.int32)
        if remaining.startswith(MARK):
            fitting = [token for token, text in self._marked.items() if remaining.startswith(text)]
            longest = max((len(self._marked[token]) for token in fitting), default=0)
            return np.array([token for token in fitting if len(self._marked[token]) == longest], np.int32)
        run, mark, _ = remaining.partition(MARK)
        tokens = (token for token in self._token_table.compatible(run) if token not in self._marked)
        return np.array(
            [token for token in tokens if not mark or len(self._token_table.pieces[token]) <= len(run)],
            np.int32,
        )
