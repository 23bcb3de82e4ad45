"""Holds type names to one module each, so that a name says which type is meant.

Run by `make check`. Private types count too: a reader greps for both.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

ALLOWED: Final[dict[str, str]] = {}
"""Names that may stand in several modules, with the reason."""


def types(tree: ast.Module) -> set[str]:
    """Returns the classes and type aliases that a module defines at its top level."""
    found = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            called = target.id.strip("_")
            if (
                called[:1].isupper()
                and not called.isupper()
                and isinstance(node.value, ast.Subscript | ast.BinOp)
            ):
                found.add(target.id)
    return found


def main() -> int:
    """Prints each type name that two modules define."""
    root = Path(__file__).parent.parent / "b3node"
    where: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for name in types(ast.parse(path.read_text(encoding="utf-8"))):
            where.setdefault(name.strip("_"), []).append(str(path.relative_to(root)))
    faults = {name: paths for name, paths in where.items() if len(paths) > 1 and name not in ALLOWED}
    for name, paths in sorted(faults.items()):
        print(f"{name} is defined in {' and '.join(paths)}")
    if not faults:
        print(f"{len(where)} type names, each in one module")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
