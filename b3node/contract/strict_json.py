"""JSON from a stranger: decoded exactly, or refused, for a cost that the body's size bounds.

msgspec decodes and is strict about most of the grammar (RFC 8259): no NaN, no number beyond a double, no lone
surrogate, no invalid UTF-8, no byte order mark, nothing behind the document. What it does not refuse is added
here: a name twice in one object (whoever reads the first one meters another model than the node runs), more
than 64 levels, more than 50,000 values, and integers that need more than 64 bits.

Three passes, each cheap, and a fourth that only a flawed body pays for:

1. *Before decoding*, commas and opening brackets outside strings give a lower bound of the number of values, so
   a bomb never becomes objects. They are counted in the raw bytes first; only when that count could exceed the
   limit are the strings cut out and the rest counted again, so text full of commas is never refused.
2. *Decoding.* At most about twice the allowed number of values can come out of it.
3. *After decoding*, a walk level by level counts values, depth and members exactly. Every member has one colon
   outside strings, so a repeated name shows as a colon too many: no hook for each object is needed.
4. *To name the place*, `_flaw` reads the bytes token by token until the first limit is crossed.

Nothing here knows the request: only JSON, bytes and paths.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec

from b3node.contract.path import Step, element, member
from b3node.errors import Refusal

MAX_DEPTH: Final = 64
"""Levels of arrays and objects, the outermost included (contract decisions, "Requests")."""

MAX_VALUES: Final = 50_000
"""Values of a document: objects, arrays, strings that are not names, numbers, literals (the same)."""

MIN_INTEGER: Final = -(2**63)
MAX_INTEGER: Final = 2**64 - 1
"""What one MessagePack integer holds, and so what the frames between the processes can carry."""

_MAX_QUOTES: Final = 4 * MAX_VALUES
"""A value brings at most itself and its name as strings, each with two quotes."""

_MAX_TOKENS: Final = 6 * MAX_VALUES
"""A value brings at most its name, a colon, itself or two brackets, and a comma."""

_FIRST_TOKENS: Final = 2000
"""Tokens that are read to tell a nest from a mere crowd of values."""

_MAX_DIGITS: Final = 20
"""Digits of `MAX_INTEGER`."""

_NAMED_STEPS: Final = 3
"""Steps of the path that names a nest too deep: enough for any field (`tools[0].parameters`)."""

_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")
_NOT_COUNTED: Final = bytes(set(range(256)) - set(b",[{"))
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{},:]|[^\s\[\]{},:"]++', re.DOTALL)
_INTEGER: Final = re.compile(rb"-?[0-9]+")
_BYTE: Final = re.compile(r"\(byte (\d+)\)")

_decode: Final = msgspec.json.Decoder().decode
_decode_name: Final = msgspec.json.Decoder(str).decode


def loads(body: bytes) -> object:
    """The one JSON document that `body` holds: dict, list, str, int, float, bool or None.

    Raises `Refusal` (`invalid_request`) for anything else; `param` is the path of a repeated name, of an integer
    out of range or of the field that nests too deep, and None where the whole body is meant.
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
    """Whether arrays and objects nest more than `levels` deep in `value`; a scalar has no level."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [container for container in layer if isinstance(container, dict | list)]
        if not layer:
            return False
        layer = _children(layer)
    return True


# --------------------------------------------------------------------------------------------- fast passes


def _holds_too_many(body: bytes) -> bool:
    """Whether `body`, if it is JSON at all, certainly has more than `MAX_VALUES` values."""
    if not _needs_too_many(body):
        return False
    plain = _without_escapes(body)
    return plain.count(b'"') > _MAX_QUOTES or _needs_too_many(_outside_strings(plain))


def _needs_too_many(text: bytes) -> bool:
    """Whether the structure needs too many values: every container is one, and n commas part n + 1."""
    structure = text.translate(None, _NOT_COUNTED)
    commas = structure.count(b",")
    return commas >= MAX_VALUES or len(structure) - commas > MAX_VALUES


def _without_escapes(body: bytes) -> bytes:
    """`body` with no escaped quote left. Pairs of backslashes go first, as a string is read from its left."""
    return body.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in body else body


def _outside_strings(plain: bytes) -> bytes:
    """What stands outside the strings of a text without escaped quotes."""
    return b"".join(plain.split(b'"')[::2])


def _check(document: object, body: bytes) -> None:
    """Refuses a decoded `document` that crosses a limit or lost a member on the way from `body`."""
    values, members, layer = 1, 0, [document]
    for depth in range(MAX_DEPTH + 1):
        if values > MAX_VALUES:
            raise _too_many(body)
        if not _are_in_range(layer):
            raise _flaw(body) or _out_of_range([])
        layer = [container for container in layer if type(container) is dict or type(container) is list]
        if not layer:
            break
        if depth == MAX_DEPTH:
            raise _flaw(body) or _too_deep([])
        members += sum(len(container) for container in layer if type(container) is dict)
        layer = _children(layer)
        values += len(layer)
    if not _has_no_more_colons(body, members):
        raise _flaw(body) or _repeated([])


def _children(containers: list[object]) -> list[object]:
    """All elements and members of `containers`, in order."""
    children: list[object] = []
    for container in containers:
        if isinstance(container, dict):
            children.extend(container.values())
        elif isinstance(container, list):
            children.extend(container)
    return children


def _are_in_range(values: list[object]) -> bool:
    """Whether every integer among `values` fits in 64 bits."""
    return all(MIN_INTEGER <= value <= MAX_INTEGER for value in values if type(value) is int)


def _has_no_more_colons(body: bytes, members: int) -> bool:
    """Whether `body`, known to be JSON, has `members` colons outside its strings."""
    return body.count(b":") == members or _outside_strings(_without_escapes(body)).count(b":") == members


# ---------------------------------------------------------------------------------------------- slow pass


class _Frame:
    """One open array or object of the slow pass, and the step that leads to the value being read in it."""

    __slots__ = ("awaits_name", "is_object", "names", "step")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.awaits_name = is_object
        self.names: set[str] = set()
        self.step: Step = "" if is_object else 0

    def advance(self) -> None:
        """A comma: the next element or name follows."""
        if isinstance(self.step, int):
            self.step += 1
        self.awaits_name = self.is_object

    def takes(self, name: str) -> bool:
        """A name was read; false if the object had it already."""
        self.awaits_name, self.step = False, name
        is_new = name not in self.names
        self.names.add(name)
        return is_new


def _flaw(body: bytes, most: int = _MAX_TOKENS) -> Refusal | None:
    """The refusal of the first place, in reading order, that is too deep, out of range or a repeated name.

    Reads at most `most` tokens, and takes any bytes: what is not JSON is for the decoder to refuse.
    """
    frames: list[_Frame] = []
    for match in islice(_TOKEN.finditer(body), most):
        token = match[0]
        if token == b"," and frames:
            frames[-1].advance()
        elif token in _CLOSING and frames:
            frames.pop()
        elif token[:1] == b'"':
            if frames and frames[-1].awaits_name and not frames[-1].takes(_name(token)):
                return _repeated(_steps(frames))
        elif token in _OPENING:
            if len(frames) == MAX_DEPTH:
                return _too_deep(_steps(frames))
            frames.append(_Frame(is_object=token == b"{"))
        elif _INTEGER.fullmatch(token) and not _fits(token):
            return _out_of_range(_steps(frames))
    return None


def _steps(frames: list[_Frame]) -> list[Step]:
    """The way from the document to the value being read."""
    return [frame.step for frame in frames]


def _name(token: bytes) -> str:
    """The text of a string token; a broken one stands for itself."""
    try:
        return _decode_name(token)
    except msgspec.DecodeError:
        return token.decode("utf-8", "replace")


def _fits(integer: bytes) -> bool:
    return len(integer.lstrip(b"-")) <= _MAX_DIGITS and MIN_INTEGER <= int(integer) <= MAX_INTEGER


# ----------------------------------------------------------------------------------------------- refusals


def _path(steps: list[Step]) -> str:
    path = ""
    for step in steps:
        path = element(path, step) if isinstance(step, int) else member(path, step)
    return path


def _refused(message: str, path: str = "") -> Refusal:
    return Refusal("invalid_request", message, param=path or None)


def _too_many(body: bytes) -> Refusal:
    """Too many values; or, if they start as a nest that is too deep, that, which tells more."""
    message = f"The request body holds more than {MAX_VALUES:,} JSON values."
    return _flaw(body, _FIRST_TOKENS) or _refused(message)


def _too_deep(steps: list[Step]) -> Refusal:
    """Names the field that holds the nest; positions at the end of the path would say nothing."""
    named = steps[:_NAMED_STEPS]
    while named and isinstance(named[-1], int):
        named.pop()
    return _refused(f"The request body nests arrays and objects more than {MAX_DEPTH} deep.", _path(named))


def _repeated(steps: list[Step]) -> Refusal:
    return _refused("This name stands twice in one JSON object; send it once.", _path(steps))


def _out_of_range(steps: list[Step]) -> Refusal:
    message = "A number is out of range: integers have at most 64 bits, others must fit a double."
    return _refused(message, _path(steps))


def _malformed(body: bytes, report: str) -> Refusal:
    """Says what is wrong with bytes that are not one JSON document, and where if the decoder's `report` does."""
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
