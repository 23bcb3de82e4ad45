"""Holds docstrings and comments to plain words: counts those that make a sentence hard to search and to skim.

Run by `make check`. Each word has a bound per 10,000 words of `b3node/`, near the highest of h11, structlog,
svcs, Starlette, uvicorn, mini-sglang and Datasette; a passage that needs one all the same stands in
`ALLOWED`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent

BOUNDS: Final = {
    "what": 17.0,
    "tell": 0.5,
    "hear": 0.0,
    "behind": 2.0,
    "who": 4.0,
    "whoever": 0.0,
    "nobody": 0.0,
    "somebody": 0.0,
    "beside": 2.0,
    "whatever": 2.0,
    "worth": 2.0,
    "thought": 1.0,
}
"""Occurrences per 10,000 words at most. `thought` is for `reasoning` or `thinking`, as the glossary says."""

FORMS: Final = {
    "tells": "tell",
    "told": "tell",
    "telling": "tell",
    "untold": "tell",
    "hears": "hear",
    "heard": "hear",
    "hearing": "hear",
    "whom": "who",
    "whose": "",
    "thoughts": "thought",
}
"""Forms that count as another word; the empty one is free."""

ALLOWED: Final[dict[str, str]] = {}
"""Sentences that are not counted, by a part of their text, with the reason."""

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_CODE: Final = re.compile(r"`[^`]*`")


def passages(source: str) -> Iterator[tuple[int, str]]:
    """Yields the line and text of each docstring (a field's included) and comment of a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#! ")


def words(text: str) -> list[str]:
    """Returns the words of a text in lower case, its code left out."""
    found = (word.lower() for word in _WORD.findall(_CODE.sub(" ", text)))
    return [FORMS.get(word, word) for word in found]


def measure(folder: Path) -> tuple[Counter[str], int, dict[str, list[str]]]:
    """Counts the bounded words of a folder: how often each stands, words in all, and the places of each."""
    counts: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    total = 0
    for path in sorted(folder.rglob("*.py")):
        for line, text in passages(path.read_text(encoding="utf-8")):
            if any(part in text for part in ALLOWED):
                continue
            found = words(text)
            total += len(found)
            for word in found:
                if word in BOUNDS:
                    counts[word] += 1
                    places.setdefault(word, []).append(f"{path.relative_to(ROOT)}:{line}")
    return counts, total, places


def main() -> int:
    """Prints the words over their bounds with their places; given folders, all rates of those instead."""
    if folders := sys.argv[1:]:
        for folder in folders:
            counts, total, places = measure(ROOT / folder)
            print(f"{folder}: {total} words")
            for word, bound in BOUNDS.items():
                print(
                    f"  {word:9} {10_000 * counts[word] / max(total, 1):6.1f} of {bound:g}",
                    *places.get(word, []),
                )
        return 0
    counts, total, places = measure(ROOT / "b3node")
    faults = [word for word, bound in BOUNDS.items() if 10_000 * counts[word] > bound * total]
    for word in faults:
        rate = 10_000 * counts[word] / total
        print(f"'{word}': {rate:.1f} per 10,000 words; at most {BOUNDS[word]:g}:", *places[word][:40])
    if not faults:
        print(f"{total} words in docstrings and comments, none over its bound")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
