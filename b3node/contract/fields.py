"""Typed reading of one JSON object of a request: a value of the right type, None for unset, or a refusal.

The rules that hold for every field of the contract live here and nowhere else: null is the same as absent, a
boolean is not a number, 1.0 is not an integer, a wrong value is `invalid_request` with the path of the field and
what may stand there. Fields that nobody asks for are not looked at.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from b3node.contract.path import element, member
from b3node.errors import Refusal, quoted

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

_KINDS: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction or exponent",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def invalid(path: str, message: str) -> Refusal:
    """The refusal of the value at `path`; `message` goes on after the path's own name."""
    return Refusal("invalid_request", f"{path} {message}", param=path)


def mistyped(path: str, expected: str, value: object) -> Refusal:
    """The refusal of a value of another type than `expected` ("a string", "an array", ...)."""
    return invalid(path, f"must be {expected}, not {_KINDS[type(value)]}.")


class Fields:
    """One object of the request: its members and the path where it stands ("" for the request itself).

    Every reader takes a member's name and gives None where it is absent or null; bounds are inclusive.
    """

    __slots__ = ("_members", "_path")

    def __init__(self, members: dict[str, object], path: str = "") -> None:
        self._members = members
        self._path = path

    def at(self, name: str) -> str:
        """The path of the member `name`."""
        return member(self._path, name)

    def get(self, name: str) -> object:
        """The member as it was sent."""
        return self._members.get(name)

    def _typed(self, name: str, kind: type[T], expected: str) -> T | None:
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        raise mistyped(self.at(name), expected, value)

    def text(self, name: str, *, least: int = 0, most: int | None = None) -> str | None:
        """A string of `least` to `most` characters (code points); no upper bound but the body's if None."""
        value = self._typed(name, str, "a string")
        if value is None:
            return None
        if len(value) < least:
            raise invalid(self.at(name), "must not be empty.")
        if most is not None and len(value) > most:
            raise invalid(self.at(name), f"may have at most {most} characters, not {len(value)}.")
        return value

    def identifier(self, name: str) -> str | None:
        """A function's or format's name: 1 to 64 of A-Z, a-z, 0-9, underscore and hyphen."""
        value = self._typed(name, str, "a string")
        if value is not None and not _IDENTIFIER.fullmatch(value):
            raise invalid(self.at(name), f"must be 1 to 64 of A-Z a-z 0-9 _ and -, not {quoted(value)}.")
        return value

    def flag(self, name: str) -> bool | None:
        """A boolean."""
        return self._typed(name, bool, "a boolean")

    def whole(self, name: str, least: int, most: int) -> int | None:
        """An integer from `least` to `most`."""
        value = self._typed(name, int, "an integer")
        if value is not None and not least <= value <= most:
            raise invalid(self.at(name), f"must be from {least} to {most}.")
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        """A number from `least` to `most`, however it is written."""
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise mistyped(self.at(name), "a number", value)
        if not least <= value <= most:
            raise invalid(self.at(name), f"must be from {least:g} to {most:g}.")
        return float(value)

    def choice(self, name: str, allowed: tuple[Word, ...]) -> Word | None:
        """One of the `allowed` strings."""
        value = self._typed(name, str, "a string")
        if value is None:
            return None
        for word in allowed:
            if word == value:
                return word
        raise invalid(self.at(name), f"must be {_one_of(allowed)}, not {quoted(value)}.")

    def mapping(self, name: str) -> dict[str, object] | None:
        """An object as it was sent."""
        return self._typed(name, dict, "an object")

    def record(self, name: str) -> Fields | None:
        """An object, to be read field by field."""
        value = self.mapping(name)
        return None if value is None else Fields(value, self.at(name))

    def array(self, name: str, *, most: int | None = None) -> list[object] | None:
        """An array of at most `most` elements."""
        value = self._typed(name, list, "an array")
        if value is not None and most is not None and len(value) > most:
            raise invalid(self.at(name), f"may have at most {most} elements, not {len(value)}.")
        return value

    def objects(self, name: str, *, most: int | None = None) -> list[Fields] | None:
        """An array of at most `most` objects, each to be read field by field."""
        array = self.array(name, most=most)
        return None if array is None else elements(array, self.at(name))


def needed(value: T | None, fields: Fields, name: str) -> T:
    """`value`, read from the member `name` that the contract requires: neither absent nor null."""
    if value is None:
        raise invalid(fields.at(name), "is required.")
    return value


def elements(array: list[object], path: str) -> list[Fields]:
    """The objects of the array at `path`; any other element is refused."""
    return [_as_object(value, element(path, index)) for index, value in enumerate(array)]


def _as_object(value: object, path: str) -> Fields:
    if not isinstance(value, dict):
        raise mistyped(path, "an object", value)
    return Fields(value, path)


def _one_of(allowed: tuple[str, ...]) -> str:
    return quoted(allowed[0]) if len(allowed) == 1 else "one of " + ", ".join(map(quoted, allowed))
