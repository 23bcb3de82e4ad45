"""Holds the code to its lengths: short functions, modules that fit in a head, flat rooms.

Run by `make check`. A function's docstring does not count: it is its contract, not its body.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

MEDIAN, LONGEST, MODULE, DEPTH = 10, 80, 500, 3


def functions(tree: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Name, line and length in lines of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = node.body[0] if ast.get_docstring(node) else None
            skipped = doc.end_lineno - doc.lineno + 1 if doc is not None and doc.end_lineno else 0
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1 - skipped


def main() -> int:
    root = Path(__file__).parent.parent / "b3node"
    faults: list[str] = []
    lengths: list[int] = []
    for path in sorted(root.rglob("*.py")):
        name, text = path.relative_to(root.parent), path.read_text(encoding="utf-8")
        if len(path.relative_to(root).parts) > DEPTH:
            faults.append(f"{name}: deeper than b3node/room/sub-room/module.py")
        if (lines := text.count("\n")) > MODULE:
            faults.append(f"{name}: {lines} lines; at most {MODULE}")
        for function, line, length in functions(ast.parse(text)):
            lengths.append(length)
            if length > LONGEST:
                faults.append(f"{name}:{line}: {function} has {length} lines; at most {LONGEST}")
    if (median := statistics.median(lengths)) > MEDIAN:
        faults.append(f"the median function has {median} lines; at most {MEDIAN}")
    print("\n".join(faults) or f"{len(lengths)} functions, median {median:.0f}, longest {max(lengths)}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
