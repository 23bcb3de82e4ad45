"""Errors of the compiler: a place in the schema and a reason for people."""

from __future__ import annotations


class Inexact(Exception):  # noqa: N818 - it is a verdict on a schema, not a failure
    """A schema that cannot be enforced exactly.

    Args:
        pointer: a JSON pointer to the keyword or subschema at fault.
        why: the reason, for the author of the schema; lower case, no full stop.
    """

    def __init__(self, pointer: str, why: str) -> None:
        super().__init__(f"#{pointer}: {why}")
        self.pointer = pointer
        self.why = why


class Unsatisfiable(Inexact):
    """A schema that no value can satisfy."""


def child(pointer: str, *path: str | int) -> str:
    """Returns the JSON pointer of the value at `path` under `pointer`."""
    for part in path:
        name = str(part)
        if "~" in name or "/" in name:
            name = name.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{name}"
    return pointer
