"""Typed reading of one JSON object of a request: a value of the right type, None for unset, or a refusal.

The rules for all fields of the contract are here and nowhere else: null is the same as absent, a boolean is
not a number, 1.0 is not an integer, a wrong value is `invalid_request` with the path of the field and the
values it may have. Fields without a reader are not looked at.
"""

from __future__ import annotations

import re
from typing import Final, TypeVar

from b3node.contract.path import element, member
from b3node.errors import Refusal, quoted

T = TypeVar("T")
Word = TypeVar("Word", bound=str)

NAME_PATTERN: Final = "^[A-Za-z0-9_-]{1,64}$"
"""Name of a function or a format."""

_NAME: Final = re.compile(NAME_PATTERN)

_TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "an integer",
    float: "a number with a fraction or exponent",
    str: "a string",
    list: "an array",
    dict: "an object",
}


def invalid(path: str, message: str) -> Refusal:
    """Returns the refusal of the value at `path`; `message` continues the sentence that the path begins."""
    return Refusal("invalid_request", f"{path} {message}", param=path)


def mistyped(path: str, expected: str, value: object) -> Refusal:
    """Returns the refusal of a value of another type than `expected` ("a string", "an array", ...)."""
    return invalid(path, f"must be {expected}, not {_TYPE_NAMES[type(value)]}.")


class Fields:
    """Reader of one object of a request.

    Each method reads one member; it returns None if the member is absent or null, and raises
    `invalid_request` if the value does not fit. Bounds are inclusive.

    Args:
        members: the decoded object.
        path: its path; "" is the request itself.
    """

    __slots__ = ("_members", "_path")

    def __init__(self, members: dict[str, object], path: str = "") -> None:
        self._members = members
        self._path = path

    def at(self, name: str) -> str:
        """Returns the path of the member `name`."""
        return member(self._path, name)

    def get(self, name: str) -> object:
        """Returns the member as it was sent."""
        return self._members.get(name)

    def _typed(self, name: str, kind: type[T], expected: str) -> T | None:
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        raise mistyped(self.at(name), expected, value)

    def text(self, name: str, *, least: int = 0, most: int | None = None) -> str | None:
        """Reads a string of `least` to `most` code points; None leaves the end to the body's bound."""
        value = self._typed(name, str, "a string")
        if value is None:
            return None
        if len(value) < least:
            raise invalid(self.at(name), "must not be empty.")
        if most is not None and len(value) > most:
            raise invalid(self.at(name), f"may have at most {most} characters, not {len(value)}.")
        return value

    def identifier(self, name: str) -> str | None:
        """Reads the name of a function or format: 1 to 64 of A-Z, a-z, 0-9, underscore and hyphen."""
        value = self._typed(name, str, "a string")
        if value is not None and not _NAME.fullmatch(value):
            raise invalid(self.at(name), f"must be 1 to 64 of A-Z a-z 0-9 _ and -, not {quoted(value)}.")
        return value

    def flag(self, name: str) -> bool | None:
        """Reads a boolean."""
        return self._typed(name, bool, "a boolean")

    def whole(self, name: str, least: int, most: int) -> int | None:
        """Reads an integer from `least` to `most`."""
        value = self._typed(name, int, "an integer")
        if value is not None and not least <= value <= most:
            raise invalid(self.at(name), f"must be from {least} to {most}.")
        return value

    def number(self, name: str, least: float, most: float) -> float | None:
        """Reads a number from `least` to `most`, with or without a fraction, as a float."""
        value = self._members.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise mistyped(self.at(name), "a number", value)
        if not least <= value <= most:
            raise invalid(self.at(name), f"must be from {least:g} to {most:g}.")
        return float(value)

    def choice(self, name: str, allowed: tuple[Word, ...]) -> Word | None:
        """Reads one of the `allowed` strings."""
        value = self._typed(name, str, "a string")
        if value is None:
            return None
        for word in allowed:
            if word == value:
                return word
        raise invalid(self.at(name), f"must be {_one_of(allowed)}, not {quoted(value)}.")

    def mapping(self, name: str) -> dict[str, object] | None:
        """Reads an object, as it was sent."""
        return self._typed(name, dict, "an object")

    def record(self, name: str) -> Fields | None:
        """Reads an object that is to be read member by member."""
        value = self.mapping(name)
        return None if value is None else Fields(value, self.at(name))

    def array(self, name: str, *, most: int | None = None) -> list[object] | None:
        """Reads an array of at most `most` elements, as it was sent."""
        value = self._typed(name, list, "an array")
        if value is not None and most is not None and len(value) > most:
            raise invalid(self.at(name), f"may have at most {most} elements, not {len(value)}.")
        return value

    def objects(self, name: str, *, most: int | None = None) -> list[Fields] | None:
        """Reads an array of at most `most` objects that are to be read member by member."""
        array = self.array(name, most=most)
        return None if array is None else elements(array, self.at(name))


def needed(value: T | None, fields: Fields, name: str) -> T:
    """Returns `value`, read from the required member `name`; refuses one that is absent or null."""
    if value is None:
        raise invalid(fields.at(name), "is required.")
    return value


def elements(array: list[object], path: str) -> list[Fields]:
    """Returns the objects of the array at `path`; refuses any other element."""
    return [_as_object(value, element(path, index)) for index, value in enumerate(array)]


def _as_object(value: object, path: str) -> Fields:
    if not isinstance(value, dict):
        raise mistyped(path, "an object", value)
    return Fields(value, path)


def _one_of(allowed: tuple[str, ...]) -> str:
    return quoted(allowed[0]) if len(allowed) == 1 else "one of " + ", ".join(map(quoted, allowed))
