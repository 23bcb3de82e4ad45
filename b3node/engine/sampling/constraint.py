"""Interface of constraints on generated text: `llama.grammar` implements it, and fakes in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from b3node.engine.sampling.sampler import Places

TokenIds = npt.NDArray[np.int32]
"""Token ids, in any order."""
Mask = npt.NDArray[np.bool_]
"""One boolean for each token of an array of ids."""


class ForcedText(NamedTuple):
    """Text that comes next whichever token is drawn.

    At each byte, no other byte and no other token is allowed.
    """

    text: bytes = b""
    following: frozenset[int] | None = None
    """The bytes that may come after it; None if that is not known."""
    specials: tuple[int, ...] = ()
    """The tokens that may come after it and are no text. One stands for all that merely end the answer."""


class ConstraintError(Exception):
    """Raised for a grammar that cannot be enforced. The message is for the operator.

    Only the request fails.
    """


class Constraint(Protocol):
    """State of one sequence in its grammar. Ids are token ids of the vocabulary; -1 is none of them."""

    def allows(self, tokens: TokenIds) -> Mask:
        """Returns for each token whether the text may go on with it.

        End-of-generation tokens are allowed exactly where the grammar is complete, and where nothing else can
        follow they alone are. The state is not changed.
        """
        ...

    def narrow(self) -> TokenIds | None:
        """Returns tokens among which all allowed ones are, each once.

        None if looking for them would not pay.
        """
        ...

    def accept(self, token: int) -> None:
        """Advances by `token`.

        Raises:
            ValueError: `allows` has not allowed the token since the last call.
        """
        ...

    def refused(self) -> Places | None:
        """Returns all refused tokens, each once, if those are few and known; else None.

        If it returns them, any other token may be accepted without asking `allows` first.
        """
        ...

    def forced(self, max_bytes: int) -> ForcedText:
        """Returns the text that comes next whichever token is drawn, of at most so many bytes.

        The state is not changed.
        """
        ...


class Grammar(Constraint, Protocol):
    """Constraint on the bytes of the text, which can look ahead."""

    def after(self, text: bytes) -> Grammar | None:
        """Returns a copy advanced by `text`, written by plain tokens; None if that is refused.

        `text` may be empty. The state of the original is not changed.
        """
        ...


Constrain = Callable[[str], Grammar]
"""Parses GBNF (start symbol `root`) into a constraint at its beginning; raises `ConstraintError`."""


def unable(grammar: str) -> Grammar:
    """Raises `ConstraintError`: the `Constrain` of engines that know no grammars."""
    raise ConstraintError(f"no grammar can be enforced, so not one of {len(grammar)} characters")
