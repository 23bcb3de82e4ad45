"""The call that is being read: its arguments as JSON text, sent as deltas and checked at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from b3node.contract.request import FunctionTool
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta
from b3node.parse.source import Mismatch, Source
from b3node.parse.utf8 import Utf8Decoder

CallCheck = Callable[[str, str], bool]
"""Returns whether arguments (JSON text) match the schema of the function that is named first."""

encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


def escaped(text: str) -> str:
    """Returns `text` escaped for the inside of a JSON string."""
    return encode(text)[1:-1].decode()


class JsonText:
    """JSON text that is written in pieces."""

    def __init__(self) -> None:
        self._utf8 = Utf8Decoder()
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """Appends text as it is; not empty."""
        self._pieces.append(text)

    def raw(self, data: bytes) -> None:
        """Appends the model's bytes as they are; they may end inside a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(text)

    def string(self, data: bytes) -> None:
        """Appends bytes of a string and escapes them; they may end inside a character."""
        text = self._utf8.feed(data)
        if text:
            self._pieces.append(escaped(text))

    def settle(self) -> None:
        """Ends a character that was begun, if any."""
        text = self._utf8.finish()
        if text:
            self._pieces.append(text)
        self._utf8 = Utf8Decoder()

    def take(self) -> str:
        """Returns the text since the last call, and forgets it."""
        text = "".join(self._pieces)
        self._pieces.clear()
        return text


class OpenCall(JsonText):
    """One call: its arguments are appended, and `flush` makes one delta of the pending ones.

    Attributes:
        out: takes the deltas.
        tool: the called function, once known.
        whole: whether the arguments are complete although the call has not been closed.
    """

    def __init__(
        self, source: Source, tools: Mapping[str, FunctionTool], judge: CallCheck, out: list[Delta]
    ) -> None:
        super().__init__()
        self._source, self._tools, self._judge = source, tools, judge
        self.out = out
        self._sent: list[str] = []
        self.tool: FunctionTool | None = None
        self.whole = False

    def may_become(self, name: bytes) -> bool:
        """Returns whether the name of a declared function begins with `name`."""
        begun = name.decode(errors="replace")
        return any(known.startswith(begun) for known in self._tools)

    def declares(self, name: str) -> bool:
        """Returns whether a function of this name is declared."""
        return name in self._tools

    def start(self, name: str) -> None:
        """Starts the call of the function `name`.

        Raises:
            Mismatch: no such function is declared.
        """
        if name not in self._tools:
            raise Mismatch
        self.tool = self._tools[name]
        self._source.release()
        self.out.append(CallStart(name))

    def flush(self) -> None:
        """Emits the pending arguments as one delta."""
        if self._pieces:
            text = self.take()
            self._sent.append(text)
            self.out.append(CallArguments(text))

    def end(self) -> None:
        """Completes the call; its arguments are `{}` if there are none.

        Raises:
            Mismatch: its arguments are no JSON object, or do not match the function's schema.
        """
        self.whole = False
        self.settle()
        self.flush()
        if not self._sent:
            self.write("{}")
            self.flush()
        text = "".join(self._sent)
        if self.tool is None or not _object(text) or not self._judge(self.tool.name, text):
            raise Mismatch
        self.out.append(CallEnd())


def _object(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
