"""A grammar that is a set of token ids, and one that is a list of sets; both count what they are asked."""

from __future__ import annotations

import itertools
from collections.abc import Collection

import numpy as np

from b3node.engine.sampling.constraint import ForcedText, Mask, TokenIds


class FakeConstraint:
    """Implements `engine.sampling.constraint.Constraint`: the n-th token must be one of the n-th set; then
    nothing may follow.

    Its text is one byte a token. With `narrows`, it says among which of 50 tokens the allowed ones are:
    themselves, and so many others.
    """

    def __init__(self, *allowed: Collection[int], narrows: int | None = None) -> None:
        self.allowed = [frozenset(each) for each in allowed]
        self.narrows = narrows
        self.accepted: list[int] = []
        self.asked = 0
        self._passed: set[int] = set()

    @property
    def now(self) -> frozenset[int]:
        at = len(self.accepted)
        return self.allowed[at] if at < len(self.allowed) else frozenset()

    def allows(self, tokens: TokenIds) -> Mask:
        self.asked += len(tokens)
        mask = np.array([int(token) in self.now for token in tokens], bool)
        self._passed.update(tokens[mask].tolist())
        return mask

    def narrow(self) -> TokenIds | None:
        if self.narrows is None:
            return None
        others = [token for token in range(50) if token not in self.now]
        return np.array([*self.now, *others[: self.narrows]], np.int32)

    def accept(self, token: int) -> None:
        if token not in self._passed:
            raise ValueError("a token was accepted that nobody asked about")
        self._passed.clear()
        self.accepted.append(token)

    def refused(self) -> None:
        return None

    def forced(self, most: int) -> ForcedText:
        ahead = itertools.takewhile(lambda now: len(now) == 1, self.allowed[len(self.accepted) :])
        return ForcedText(bytes(token for now in itertools.islice(ahead, most) for token in now))

    def after(self, text: bytes) -> FakeConstraint | None:
        behind = FakeConstraint(*self.allowed, narrows=self.narrows)
        for token in (*self.accepted, *text):
            if token not in behind.now:
                return None
            behind.accepted.append(token)
        return behind
