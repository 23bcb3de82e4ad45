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


class Call:
    """One call. Its arguments are JSON text, written by pieces; `flush` makes one delta of those at hand.

    `whole` is set when the arguments are whole although the call is not.
    """

    def __init__(
        self, source: Source, tools: Mapping[str, FunctionTool], judge: Judge, out: list[Delta]
    ) -> None:
        self._source, self._tools, self._judge, self._out = source, tools, judge, out
        self._utf8 = Utf8Decoder()
        self._pieces: list[str] = []
        self._told: list[str] = []
        self.tool: FunctionTool | None = None
        self.whole = False

    def may_be(self, name: bytes) -> bool:
        """Whether a function's name begins so."""
        return any(known.startswith(name.decode(errors="replace")) for known in self._tools)

    def start(self, name: str) -> None:
        """The call is of the function `name`.

        Raises:
            Unlike: there is no such function.
        """
        if name not in self._tools:
            raise Unlike
        self.tool = self._tools[name]
        self._source.release()
        self._out.append(CallStart(name))

    def write(self, text: str) -> None:
        """More of the arguments."""
        self._pieces.append(text)

    def raw(self, data: bytes) -> None:
        """More of the arguments, as the model writes them; may end inside of a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(text)

    def string(self, data: bytes) -> None:
        """More of a string's text, to be escaped; may end inside of a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(escaped(text))

    def settle(self) -> None:
        """Nothing more of the character that was begun, if any."""
        self._pieces.append(self._utf8.finish())
        self._utf8 = Utf8Decoder()

    def flush(self) -> None:
        """What was written since the last time is told."""
        text = "".join(self._pieces)
        if text:
            self._pieces.clear()
            self._told.append(text)
            self._out.append(CallArguments(text))

    def end(self) -> None:
        """The call is complete; `{}` are its arguments if there are none.

        Raises:
            Unlike: its arguments are no JSON object, or not what the function takes.
        """
        self.settle()
        if not self._told and not "".join(self._pieces):
            self._pieces = ["{}"]
        self.flush()
        text = "".join(self._told)
        if self.tool is None or not _object(text) or not self._judge(self.tool.name, text):
            raise Unlike
        self._out.append(CallEnd())


def _object(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
