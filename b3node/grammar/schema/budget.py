"""Budget of work for one schema, in counted steps, so that the same schema always ends the same way."""

from __future__ import annotations

from b3node.grammar.inexact import Inexact


class Budget:
    """A number of steps that may be spent.

    Args:
        steps: steps of the whole budget. A step is some microseconds of work: one intersection of two
            shapes, one derivative, one state.
    """

    def __init__(self, steps: int) -> None:
        self._left = steps

    def spend(self, steps: int = 1) -> None:
        """Counts work done; raises `Inexact` if more was spent than the budget has."""
        self._left -= steps
        if self._left < 0:
            raise Inexact("", "the schema takes too long to compile")

    @property
    def left(self) -> int:
        """Steps that may still be spent."""
        return self._left
