"""Paths in a request, as refusals name them: `input[2].content[0].image_url`, `tools[1].parameters`."""

from __future__ import annotations

from typing import Final

from b3node.errors import quoted

PathStep = str | int
"""Name of a member or position of an element."""

MAX_NAME_CHARS: Final = 64
"""Characters of a client's own name that a path repeats; errors quote at most as many."""


def member(path: str, name: str) -> str:
    """Returns the path of the member `name` of the object at `path`; "" is the request itself.

    >>> member("tools[1]", "name")
    'tools[1].name'
    """
    plain = 0 < len(name) <= MAX_NAME_CHARS and name.isprintable()
    shown = name if plain else quoted(name, MAX_NAME_CHARS)[1:-1] or '""'
    return f"{path}.{shown}" if path else shown


def element(path: str, index: int) -> str:
    """Returns the path of element `index` of the array at `path`."""
    return f"{path}[{index}]"
