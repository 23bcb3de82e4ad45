"""The call that is being read: what of it is told, and what of it must be known in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from b3node.contract.request import FunctionTool
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta
from b3node.parse.source import Source, Unlike
from b3node.parse.utf8 import Utf8Decoder

DEEPEST: Final = 64
"""Arrays and objects of arguments in each other: what the contract takes of JSON."""

Judge = Callable[[str, str], bool]
"""A function's name and arguments as JSON text to whether the arguments match its schema."""

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


def escaped(text: str) -> str:
    """`text` as it stands inside of a JSON string."""
    return encode(text)[1:-1].decode()


class JsonText:
    """JSON that is written by pieces."""

    def __init__(self) -> None:
        self._utf8 = Utf8Decoder()
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """More of it, as it is; not empty."""
        self._pieces.append(text)

    def raw(self, data: bytes) -> None:
        """More of it, as the model writes it; may end inside of a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(text)

    def string(self, data: bytes) -> None:
        """More of a string, to be escaped; may end inside of a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(escaped(text))

    def settle(self) -> None:
        """Nothing more comes of the character that was begun, if any."""
        text = self._utf8.finish()
        if text:
            self._pieces.append(text)
        self._utf8 = Utf8Decoder()

    def take(self) -> str:
        """What was written since the last time."""
        text = "".join(self._pieces)
        self._pieces.clear()
        return text


class Call(JsonText):
    """One call; what is written are its arguments, and `flush` makes one delta of those at hand.

    `whole` is set while the arguments are whole although the call is not; `out` is where deltas go.
    """

    def __init__(
        self, source: Source, tools: Mapping[str, FunctionTool], judge: Judge, out: list[Delta]
    ) -> None:
        super().__init__()
        self._source, self._tools, self._judge = source, tools, judge
        self.out = out
        self._told: list[str] = []
        self.tool: FunctionTool | None = None
        self.whole = False

    def may_be(self, name: bytes) -> bool:
        """Whether a function's name begins so."""
        begun = name.decode(errors="replace")
        return any(known.startswith(begun) for known in self._tools)

    def is_one(self, name: str) -> bool:
        """Whether a function has this name."""
        return name in self._tools

    def start(self, name: str) -> None:
        """The call is of the function `name`.

        Raises:
            Unlike: there is no such function.
        """
        if name not in self._tools:
            raise Unlike
        self.tool = self._tools[name]
        self._source.release()
        self.out.append(CallStart(name))

    def flush(self) -> None:
        """What was written since the last time is told."""
        if self._pieces:
            text = self.take()
            self._told.append(text)
            self.out.append(CallArguments(text))

    def end(self) -> None:
        """The call is complete; its arguments are `{}` if there are none.

        Raises:
            Unlike: its arguments are no JSON object, or not what the function takes.
        """
        self.whole = False
        self.settle()
        self.flush()
        if not self._told:
            self.write("{}")
            self.flush()
        text = "".join(self._told)
        if self.tool is None or not _object(text) or not self._judge(self.tool.name, text):
            raise Unlike
        self.out.append(CallEnd())


def _object(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
