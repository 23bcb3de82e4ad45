"""An engine that a request ends: it aborts, as llama.cpp does, when it is to compute a prompt with `POISON`
in it.
"""

from __future__ import annotations

import os
from typing import Any

from b3node.llama.context import Context
from b3node.workers import engine_process

POISON = "~~~"
_KEY = [ord(letter) for letter in POISON]


def main() -> None:
    """Runs the process's whole life."""
    start = Context.start

    def deadly(self: Context, plan: Any) -> None:
        for chunk in plan.chunks:
            tokens = list(chunk.tokens)
            if any(tokens[at : at + len(_KEY)] == _KEY for at in range(len(tokens))):
                os.abort()
        start(self, plan)

    Context.start = deadly  # type: ignore[method-assign]  # so that it dies while it computes
    engine_process.main()


if __name__ == "__main__":
    main()
