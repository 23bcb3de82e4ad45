"""What the engine needs of a grammar: the seam that `llama.grammar` fills, and a fake one in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from b3node.engine.sampling.sampler import Places

TokenIds = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class ForcedText(NamedTuple):
    """Text that comes next whatever is drawn: each byte is the only one that may come, and nothing else may."""

    text: bytes = b""
    following: frozenset[int] | None = None
    """The bytes that may come behind it; None where that is not known."""
    specials: tuple[int, ...] = ()
    """The tokens that may come behind it and are no text; one in the place of all that merely end the answer."""


class ConstraintError(Exception):
    """A grammar that cannot be enforced; the message is for the operator. It costs its own request alone."""


class Constraint(Protocol):
    """Where one sequence stands in its grammar. Ids are token ids of the vocabulary; -1 is none of them."""

    def allows(self, tokens: TokenIds) -> Mask:
        """For each token, whether the text may go on with it.

        End-of-generation tokens are allowed exactly where the grammar is complete, and where nothing else can
        follow they alone are. Where the grammar stands is not changed.
        """
        ...

    def narrow(self) -> TokenIds | None:
        """Tokens among which all allowed ones are, each once; None where looking for them would not pay."""
        ...

    def accept(self, token: int) -> None:
        """Goes on with `token`, which `allows` has allowed since the last call. Raises `ValueError` otherwise."""
        ...

    def refused(self) -> Places | None:
        """All tokens that are not allowed, each once, where those are few and known; None where they are not.

        Where it says so, any other token may be accepted without asking `allows` first.
        """
        ...

    def forced(self, max_bytes: int) -> ForcedText:
        """What comes next whatever is drawn, with at most so many bytes. Where the constraint stands is not changed."""
        ...


class Grammar(Constraint, Protocol):
    """A constraint by the text that is written, in which it can look ahead."""

    def after(self, text: bytes) -> Grammar | None:
        """One that stands behind `text`, written by plain tokens from here; None where that is refused.

        `text` may be empty, which gives a copy. Where this one stands is not changed.
        """
        ...


Constrain = Callable[[str], Grammar]
"""A grammar's text (GBNF, start symbol `root`) to a constraint at its beginning; raises `ConstraintError`."""


def unable(grammar: str) -> Grammar:
    """A `Constrain` for engines that know no grammars. Raises `ConstraintError`."""
    raise ConstraintError(f"no grammar can be enforced, so not one of {len(grammar)} characters")
