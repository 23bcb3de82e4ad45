"""Decodes untrusted JSON exactly, or refuses it, at a cost that the body's size bounds.

msgspec decodes and is strict about most of the grammar (RFC 8259): no NaN, no number beyond a double, no lone
surrogate, no invalid UTF-8, no byte order mark, nothing after the document. This module also refuses a name
twice in one object (a proxy that reads the first one meters another model than the node runs), more than 64
levels, more than 50,000 values, and integers that need more than 64 bits.

Three passes, each cheap, and a fourth that only a flawed body pays for:

1. *Before decoding*, commas and opening brackets outside strings give a lower bound of the number of values,
   so a small body never becomes millions of objects. They are counted in the raw bytes first; only when that
   count could exceed the limit are the strings cut out and the rest counted again, so text full of commas is
   never refused.
2. *Decoding.* At most about twice the allowed number of values can come out of it.
3. *After decoding*, a walk level by level counts values, depth and members exactly. Every member has one
   colon outside strings, so a repeated name shows as a colon too many: no hook for each object is needed.
4. *To name the place*, `_flaw` reads the bytes token by token until the first limit is crossed.

Nothing here knows the request: only JSON, bytes and paths.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec

from b3node.contract.path import PathStep, element, member
from b3node.errors import Refusal

MAX_LEVELS: Final = 64
"""Levels of arrays and objects in a document, the outermost included (contract decisions, "Requests")."""

MAX_VALUES: Final = 50_000
"""Values in a document: objects, arrays, strings that are not names, numbers, literals (the same)."""

MIN_INTEGER: Final = -(2**63)
"""Smallest integer of MessagePack, and so of the frames between the processes."""

MAX_INTEGER: Final = 2**64 - 1
"""Largest integer of MessagePack (the same)."""

_MAX_QUOTES: Final = 4 * MAX_VALUES
"""Quotes of `MAX_VALUES` values: each has at most itself and its name as strings, with two quotes each."""

_MAX_TOKENS: Final = 6 * MAX_VALUES
"""Tokens of `MAX_VALUES` values: each has at most a name, a colon, itself or two brackets, and a comma."""

_NEST_CHECK_TOKENS: Final = 2000
"""Tokens that are read to distinguish nesting from a large number of values."""

_MAX_INTEGER_DIGITS: Final = 20
"""Digits of `MAX_INTEGER`."""

_MAX_NAMED_STEPS: Final = 3
"""Steps of the path to a field that nests too deep: enough for any field (`tools[0].parameters`)."""

_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")
_NOT_COUNTED: Final = bytes(set(range(256)) - set(b",[{"))
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_INTEGER: Final = re.compile(rb"-?[0-9]+")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")

_decode: Final = msgspec.json.Decoder().decode
_decode_name: Final = msgspec.json.Decoder(str).decode


def loads(body: bytes) -> object:
    """Decodes the one JSON document in `body`: dict, list, str, int, float, bool or None.

    Raises:
        Refusal: `invalid_request`. `param` is the path of a repeated name, of an integer out of range or of
            the field that nests too deep; None if the fault is in the whole body.
    """
    if _holds_too_many(body):
        raise _too_many(body)
    try:
        document: object = _decode(body)
    except RecursionError:
        raise _flaw(body) or _too_deep([]) from None
    except msgspec.ValidationError:
        raise _flaw(body) or _out_of_range([]) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, str(error)) from None
    _check(document, body)
    return document


def is_deeper(value: object, levels: int) -> bool:
    """Returns whether arrays and objects nest more than `levels` deep in `value`; a scalar has no level."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [container for container in layer if isinstance(container, dict | list)]
        if not layer:
            return False
        layer = _children(layer)
    return True


# --------------------------------------------------------------------------------------------- fast passes


def _holds_too_many(body: bytes) -> bool:
    """Returns whether `body`, if it is JSON, certainly has more than `MAX_VALUES` values."""
    if not _needs_too_many(body):
        return False
    plain = _without_escapes(body)
    return plain.count(b'"') > _MAX_QUOTES or _needs_too_many(_outside_strings(plain))


def _needs_too_many(text: bytes) -> bool:
    """Returns whether the structure needs too many values: each container is one, n commas separate n + 1."""
    structure = text.translate(None, _NOT_COUNTED)
    commas = structure.count(b",")
    return commas >= MAX_VALUES or len(structure) - commas > MAX_VALUES


def _without_escapes(body: bytes) -> bytes:
    """Removes escaped quotes. Pairs of backslashes go first, because a string is read from its left."""
    return body.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in body else body


def _outside_strings(plain: bytes) -> bytes:
    """Returns the parts outside the strings of a text without escaped quotes."""
    return b"".join(plain.split(b'"')[::2])


def _check(document: object, body: bytes) -> None:
    """Refuses a decoded `document` that exceeds a limit or has fewer members than `body`."""
    values, members, layer = 1, 0, [document]
    for depth in range(MAX_LEVELS + 1):
        if values > MAX_VALUES:
            raise _too_many(body)
        if not _are_in_range(layer):
            raise _flaw(body) or _out_of_range([])
        layer = [container for container in layer if type(container) is dict or type(container) is list]
        if not layer:
            break
        if depth == MAX_LEVELS:
            raise _flaw(body) or _too_deep([])
        members += sum(len(container) for container in layer if type(container) is dict)
        layer = _children(layer)
        values += len(layer)
    if not _has_no_more_colons(body, members):
        raise _flaw(body) or _repeated([])


def _children(containers: list[object]) -> list[object]:
    """Returns all elements and members of `containers`, in order."""
    children: list[object] = []
    for container in containers:
        if isinstance(container, dict):
            children.extend(container.values())
        elif isinstance(container, list):
            children.extend(container)
    return children


def _are_in_range(values: list[object]) -> bool:
    """Returns whether every integer among `values` fits in 64 bits."""
    return all(MIN_INTEGER <= value <= MAX_INTEGER for value in values if type(value) is int)


def _has_no_more_colons(body: bytes, members: int) -> bool:
    """Returns whether `body`, known to be JSON, has `members` colons outside its strings."""
    return body.count(b":") == members or _outside_strings(_without_escapes(body)).count(b":") == members


# ---------------------------------------------------------------------------------------------- slow pass


class _OpenContainer:
    """An open array or object of the slow pass, with the step to the value that is being read in it."""

    __slots__ = ("awaits_name", "is_object", "names", "step")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.awaits_name = is_object
        self.names: set[str] = set()
        self.step: PathStep = "" if is_object else 0

    def advance(self) -> None:
        """Moves on after a comma: the next element or name follows."""
        if isinstance(self.step, int):
            self.step += 1
        self.awaits_name = self.is_object

    def add_name(self, name: str) -> bool:
        """Adds a name; returns false if the object had it already."""
        self.awaits_name, self.step = False, name
        is_new = name not in self.names
        self.names.add(name)
        return is_new


def _flaw(body: bytes, most: int = _MAX_TOKENS) -> Refusal | None:
    """Returns the refusal of the first place that is too deep, out of range or a repeated name.

    Reads at most `most` tokens, and accepts any bytes: the decoder refuses those that are not JSON.
    """
    containers: list[_OpenContainer] = []
    for match in islice(_TOKEN.finditer(body), most):
        token = match[0]
        if token == b"," and containers:
            containers[-1].advance()
        elif token in _CLOSING and containers:
            containers.pop()
        elif token[:1] == b'"':
            if containers and containers[-1].awaits_name and not containers[-1].add_name(_name(token)):
                return _repeated(_steps(containers))
        elif token in _OPENING:
            if len(containers) == MAX_LEVELS:
                return _too_deep(_steps(containers))
            containers.append(_OpenContainer(is_object=token == b"{"))
        elif _INTEGER.fullmatch(token) and not _fits(token):
            return _out_of_range(_steps(containers))
    return None


def _steps(containers: list[_OpenContainer]) -> list[PathStep]:
    """Returns the steps from the document to the value that is being read."""
    return [container.step for container in containers]


def _name(token: bytes) -> str:
    """Returns the text of a string token; that of a broken one is the token itself."""
    try:
        return _decode_name(token)
    except msgspec.DecodeError:
        return token.decode("utf-8", "replace")


def _fits(integer: bytes) -> bool:
    return len(integer.lstrip(b"-")) <= _MAX_INTEGER_DIGITS and MIN_INTEGER <= int(integer) <= MAX_INTEGER


# ----------------------------------------------------------------------------------------------- refusals


def _path(steps: list[PathStep]) -> str:
    path = ""
    for step in steps:
        path = element(path, step) if isinstance(step, int) else member(path, step)
    return path


def _refused(message: str, path: str = "") -> Refusal:
    return Refusal("invalid_request", message, param=path or None)


def _too_many(body: bytes) -> Refusal:
    """Returns the refusal of too many values, or of nesting if the body starts too deep: that helps more."""
    message = f"The request body holds more than {MAX_VALUES:,} JSON values."
    return _flaw(body, _NEST_CHECK_TOKENS) or _refused(message)


def _too_deep(steps: list[PathStep]) -> Refusal:
    """Returns the refusal of nesting, at the field that holds it; positions at the path's end are cut off."""
    named = steps[:_MAX_NAMED_STEPS]
    while named and isinstance(named[-1], int):
        named.pop()
    return _refused(f"The request body nests arrays and objects more than {MAX_LEVELS} deep.", _path(named))


def _repeated(steps: list[PathStep]) -> Refusal:
    return _refused("This name stands twice in one JSON object; send it once.", _path(steps))


def _out_of_range(steps: list[PathStep]) -> Refusal:
    message = "A number is out of range: integers have at most 64 bits, others must fit a double."
    return _refused(message, _path(steps))


def _malformed(body: bytes, report: str) -> Refusal:
    """Returns the refusal of bytes that are not one JSON document, with the place if `report` has it."""
    if not body.strip():
        return _refused("The request body is empty; send a JSON object.")
    if body.startswith(b"\xef\xbb\xbf"):
        return _refused("The request body starts with a byte order mark; send plain UTF-8 JSON.")
    try:
        body.decode()
    except UnicodeDecodeError as fault:
        return _refused(f"The request body is not UTF-8 (byte {fault.start}).")
    place = _BYTE.search(report)
    return _refused(f"The request body is not valid JSON{f' (byte {place[1]})' if place else ''}.")
