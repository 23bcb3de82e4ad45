"""What a guided sequence may write in each of its phases but the grammar's: small constraints for `engine.guidance.guide`."""

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
    """Anything goes but what `free` and `refusing` refuse; they have no token in common."""

    def __init__(self, free: FreeTokens, refusing: abc.Sequence[int] = ()) -> None:
        self.free: Final = free
        self.refusing: Final = np.array(refusing, np.intp) if refusing else _NONE
        self._refused = np.concatenate((free.refused, self.refusing)) if refusing else free.refused

    def allows(self, tokens: TokenIds) -> Mask:
        """Those that are not refused."""
        mask: Mask = self.free.allowed[tokens]
        return mask & ~np.isin(tokens, self.refusing) if self.refusing.size else mask

    def narrow(self) -> TokenIds | None:
        """None: nearly everything is left."""
        return None

    def refused(self) -> Places | None:
        """All of them."""
        return self._refused

    def forced(self, max_bytes: int) -> ForcedText:
        """Nothing: hardly anything is refused."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Changes nothing. Raises `ValueError` if the token is refused."""
        if not self.free.allowed[token] or (self.refusing.size and token in self.refusing):
            raise ValueError("a token was to be accepted that was not allowed")


class Trying(Free):
    """As `Free`, but tokens that are `doubtful`, a mask over the vocabulary, come only where `may_come` says so."""

    def __init__(
        self, free: FreeTokens, refusing: abc.Sequence[int], doubtful: Mask, may_come: Callable[[int], bool]
    ) -> None:
        super().__init__(free, refusing)
        self._doubtful = doubtful
        self._may_come = may_come

    def allows(self, tokens: TokenIds) -> Mask:
        """Those that are not refused; the doubtful ones among them are tried."""
        mask = super().allows(tokens)
        for place in np.flatnonzero(mask & self._doubtful[tokens]):
            mask[place] = self._may_come(int(tokens[place]))
        return mask

    def refused(self) -> Places | None:
        """None: not all of them are known."""
        return None

    def accept(self, token: int) -> None:
        """Changes nothing. Raises `ValueError` if the token is refused."""
        super().accept(token)
        if self._doubtful[token] and not self._may_come(token):
            raise ValueError("a token was to be accepted that was not allowed")


class Forced:
    """Given tokens, at least one, in their order and nothing else."""

    def __init__(self, tokens: abc.Sequence[int]) -> None:
        self.remaining: Final = list(reversed(tokens))

    def allows(self, tokens: TokenIds) -> Mask:
        """The next one."""
        mask: Mask = tokens == self.remaining[-1]
        return mask

    def narrow(self) -> TokenIds | None:
        """The next one."""
        return np.array(self.remaining[-1:], np.int32)

    def refused(self) -> Places | None:
        """None: all others are."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """No text: these are tokens."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Goes on. Raises `ValueError` if the token is another one."""
        if token != self.remaining[-1]:
            raise ValueError("a token was to be accepted that was not the next one")
        self.remaining.pop()


class NothingAllowed:
    """No token at all: the sequence ends."""

    def allows(self, tokens: TokenIds) -> Mask:
        """None of them."""
        return np.zeros(len(tokens), bool)

    def narrow(self) -> TokenIds | None:
        """No token."""
        return np.empty(0, np.int32)

    def refused(self) -> Places | None:
        """None: they are not few."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Nothing comes."""
        del max_bytes
        return ForcedText()

    def accept(self, token: int) -> None:
        """Raises `ValueError`."""
        raise ValueError(f"token {token} was to be accepted where nothing is allowed")


class ThinkingOrGrammar:
    """The beginning of an answer whose grammar holds at once unless a thought comes first.

    Both ways are open as long as what is written fits both: `remaining` is what is missing of the marker that opens a
    thought (b"" once it is complete, None once it is not what is written), `grammar` where the grammar stands (None
    once it refused something).

    Args:
        marker: the thought's, with `MARK` before special tokens; not empty.
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
        self._path = self._along(marker)

    @property
    def open(self) -> bool:
        """Whether it may still become a thought, and is not one yet."""
        return bool(self.remaining)

    def allows(self, tokens: TokenIds) -> Mask:
        """What goes on with the marker, or with the grammar."""
        mask: Mask = np.isin(tokens, self._path)
        return mask if self.grammar is None else mask | self.grammar.allows(tokens)

    def narrow(self) -> TokenIds | None:
        """The marker's tokens and the grammar's."""
        if self.grammar is None:
            return self._path
        narrowed = self.grammar.narrow()
        return None if narrowed is None else np.union1d(narrowed, self._path).astype(np.int32)

    def refused(self) -> Places | None:
        """None: they are not few."""
        return None

    def forced(self, max_bytes: int) -> ForcedText:
        """Nothing as long as both ways are open; then it is the grammar's."""
        return self.grammar.forced(max_bytes) if self.remaining is None and self.grammar else ForcedText()

    def accept(self, token: int) -> None:
        """Goes on in all ways that the token leaves open. Raises `ValueError` if it leaves none."""
        asked = np.array([token], np.int32)
        if self.grammar is not None:
            if self.grammar.allows(asked)[0]:
                self.grammar.accept(token)
            else:
                self.grammar = None
        if self.remaining and token in self._path:
            written = self._marked.get(token) or self._token_table.pieces[token]
            self.remaining = self.remaining[len(written) :]
            self._path = self._along(self.remaining)
        elif self.grammar is None:
            raise ValueError("a token was to be accepted that was not allowed")
        else:
            self.remaining = None

    def _along(self, remaining: bytes) -> TokenIds:
        """The tokens that go on with what is missing of the marker."""
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
