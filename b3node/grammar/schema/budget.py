"""How much work one schema may cost: counted steps, so that the same schema always ends the same way."""

from __future__ import annotations

from b3node.grammar.inexact import Inexact


class Budget:
    """Steps that are left.

    Args:
        steps: how many there are; a step is some microseconds of work (one pair of shapes met, one
            derivative, one state).
    """

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Counts work done. Raises `Inexact` when no steps are left."""
        self._left -= steps
        if self._left < 0:
            raise Inexact("", "the schema takes too long to compile")

    @property
    def left(self) -> int:
        """Steps that may still be spent."""
        return self._left
