"""Tables of a node's options for the README, made from the Structs of `b3node.config`.

`B3NODE_GOLDEN=write pytest tests/cli/test_options.py` writes them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from b3node.cli.options import SECTIONS, Option, options

README: Final = Path(__file__).parents[2] / "README.md"
BEGIN: Final = "<!-- options: written from b3node/config.py by tests/cli/test_options.py -->\n"
END: Final = "<!-- options end -->\n"


def tables() -> str:
    """Returns one table for each heading."""
    return "\n".join(_table(section, struct) for section, struct in SECTIONS.items())


def replaced(readme: str) -> str:
    """Returns `readme` with the tables of today between its marks. Raises ValueError where it has none."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the README has no place for the tables")
    return f"{before}{BEGIN}{tables()}{END}{after}"


def _table(section: str, struct: type[msgspec.Struct]) -> str:
    head = f"| {section} | | default |\n| --- | --- | --- |\n"
    return head + "".join(map(_row, options(struct)))


def _row(option: Option) -> str:
    return f"| `{option.name}` | {option.help} | {option.default} |\n"
