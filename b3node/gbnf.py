"""Bounds of a GBNF text, which the compiler keeps and the engine checks again."""

from __future__ import annotations

import re
from typing import Final

MAX_GRAMMAR_BYTES: Final = 256 * 1024
"""Bytes of UTF-8 of a grammar's text."""
MAX_REPEATS: Final = 50_000
"""Sum of a grammar's `{m,n}` bounds: llama.cpp writes each out, as some 100 bytes of rules."""

_REPEAT: Final = re.compile(r"\{([0-9]{1,9})(?:,([0-9]{0,9}))?\}")


def count_repeats(gbnf: str) -> int:
    """Returns the sum of all counts of a grammar; those in literals count too."""
    return sum(int(most or least) for least, most in _REPEAT.findall(gbnf))
