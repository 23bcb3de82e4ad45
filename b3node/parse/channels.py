"""Cuts a model's output into thinking, text and calls: one scanner for the front and for the engine.

It decides where each part begins and ends, and which bytes between parts are dropped; the content of calls is
not its business. It reads bytes, because tokens are bytes: the special tokens of a marker arrive with `MARK`
before them. The same letters without it are text wherever the dialect has special tokens for them.

Invariants:

* No byte is read twice, but for those that began like a marker and were none: at most `MAX_MARKER_BYTES`.
* Held back is a possible marker (at most `MAX_MARKER_BYTES`) and white space that a marker may swallow (at
  most `MAX_SPACE_BYTES`), nothing else. No emitted byte is taken back.
* While thinking, only the close of thinking counts. In code (`parse.code`), spelled-out markers do not count.
* White space around thinking and between text and calls is dropped. Before an answer it is kept where the
  dialect has no thinking, so that the plain dialect passes every byte.
* Any chunking of the bytes gives the same result.

Regular expressions over the whole output were no option: their cost grows with the answer, and a longer input
can revoke an earlier match.
"""

from __future__ import annotations

from typing import Final, Literal

from b3node.dialects.dialect import Calls
from b3node.dialects.outline import MARK, Reading
from b3node.parse.code import CodeSpans
from b3node.parse.markers import MAX_MARKER_BYTES, MarkerState, unmarked
from b3node.parse.views import Act, Found, views

MAX_SPACE_BYTES: Final = 1024
"""Bytes of white space that a following marker swallows; of more, the beginning is emitted."""

Place = Literal["between", "thinking", "text", "call"]
Piece = tuple[Literal["thinking", "text", "call"], bytes]
"""Bytes of one channel. `MARK` stays in calls only; thinking and text may be cut inside a character."""


class Channels:
    """The scanner of one answer.

    `place` says where the next bytes belong: "between" means that nothing has begun, so text may. Once the
    marker of a call is complete, `feed` returns one "call" piece with the bytes after it (b"" if none), and
    `calls` is its spelling; from then on every byte belongs to the call, until `leave` or `refuse`. The bytes
    after a marker begin with the white space at its end, if the model writes any. The piece of a bare call
    begins with its body, from bytes that were held back.
    """

    def __init__(self, reading: Reading) -> None:
        dialect = reading.dialect
        self._reading = reading
        self._views = views(dialect, reading.specials, calling=reading.calls)
        self._coded = self._views.coded
        self.place: Place = "between"
        self.calls: Calls | None = None
        self._before: Place = "between"  # the place that the call's marker was found in
        self._marker = b""  # the call's marker, as it was written
        self._bare = True  # only thinking so far
        self._fresh = reading.thinking or dialect.thinking is not None  # white space means nothing yet
        self._space = b""  # white space that a marker would swallow
        self._held = b""  # a possible beginning of a marker
        self._state: MarkerState | None = None  # where the search for it stands
        self._best = 0  # bytes of the longest marker that begins it
        self._longest = 0  # which marker that is
        self._from_prompt = 0
        self._enter("thinking" if reading.thinking else "text" if reading.answering else "between")
        self.feed(reading.begun)
        self._from_prompt = len(self._held)  # bytes of it that the prompt wrote, not the model

    @property
    def thinking(self) -> bool:
        """Whether the next bytes belong to thinking."""
        return self.place == "thinking"

    @property
    def beginning(self) -> bool:
        """Whether nothing but thinking is certain, so that the answer may be a bare call."""
        return self._view is self._views.beginning

    @property
    def held(self) -> bytes:
        """The latest bytes, which may be the beginning of a marker."""
        return self._held

    def fork(self) -> Channels:
        """Returns an independent copy, to try the effect of bytes."""
        other = object.__new__(Channels)
        other.__dict__.update(self.__dict__, _code=self._code.fork())
        return other

    def feed(self, piece: bytes) -> list[Piece]:
        """Returns the pieces that are certain with `piece`."""
        out: list[Piece] = []
        if self._state is not None:
            self._scan(self._held + piece, len(self._held), out)
        elif self.place == "call" or self._view.search(piece) is not None:
            self._scan(piece, 0, out)
        elif piece:
            self._emit(piece, out)
        return out

    def finish(self) -> list[Piece]:
        """Returns the bytes that were held back. Must be the last call."""
        out: list[Piece] = []
        while self._state is not None:
            data, self._state = self._held, None
            self._scan(data, self._decide(data, 0, out), out)
        if self.place in {"text", "between"} and self._space:
            out.append(("text", self._space))
        return out

    def settle(self) -> None:
        """Confirms the call: its marker is no text, and the white space before it is dropped."""
        self._space = self._marker = b""
        self._fresh, self._before = True, "between"

    def leave(self, rest: bytes) -> list[Piece]:
        """Ends the call; `rest` are the bytes after it."""
        self.settle()
        self._enter("between")
        return self.feed(rest)

    def refuse(self, written: bytes, rest: bytes) -> list[Piece]:
        """Takes a supposed call for text: its marker and `written`; `rest` are the bytes after it."""
        out: list[Piece] = []
        self._enter(self._before)
        self._emit(unmarked(self._marker + written, self._reading.specials), out)
        self._marker = b""
        return out + self.feed(rest)

    def abandon(self, written: bytes) -> list[Piece]:
        """Ends the answer within a supposed call: it is text, unless its marker has special tokens."""
        return [] if MARK in self._marker else self.refuse(written, b"") + self.finish()

    def _scan(self, data: bytes, at: int, out: list[Piece]) -> None:
        """Scans from `at`; during a search, the bytes before it are the beginning of a marker."""
        start = 0 if self._state is not None else at
        while True:
            if self.place == "call":
                out.append(("call", data[start:]))
                return
            if self._state is None:
                start = at = self._search(data, start, out)
                if start == len(data):
                    return
            if not self._walk(data, start, at):
                return
            start = self._decide(data, start, out)

    def _search(self, data: bytes, start: int, out: list[Piece]) -> int:
        """Emits the bytes before the next possible marker; returns its place, or the end."""
        while True:
            view = self._view
            found = view.search(data, start)
            if found is None:
                self._emit(data[start:] if start else data, out)
                return len(data)
            at = found.start()
            if at > start:
                self._emit(data[start:at], out)
                start = at
                if view is not self._view:
                    continue
            self._state, self._best = view.start, 0
            return at

    def _walk(self, data: bytes, start: int, at: int) -> bool:
        """Returns whether the bytes at `start` are decided; if not, they are held back."""
        state: MarkerState | None = self._state
        end = min(len(data), start + MAX_MARKER_BYTES)
        while at < end and state is not None and not state.final:
            state = state[data[at]]
            at += 1
            if state is not None and state.found is not None:
                self._best, self._longest = at - start, state.found
        if state is None or state.final or at == start + MAX_MARKER_BYTES:
            return True
        self._state, self._held = state, data[start:]
        return False

    def _decide(self, data: bytes, start: int, out: list[Piece]) -> int:
        """Takes the marker at `start`, or emits one byte that begins none; returns the place after it."""
        self._state, self._held = None, b""
        if self._best:
            found = self._view.meaning(self._longest)
            if self._take(found, data[start : start + self._best], out):
                self._from_prompt = 0
                return start if found.act is Act.BARE else start + self._best
        unsaid, self._from_prompt = self._from_prompt, 0
        if unsaid:
            return start + unsaid
        self._emit(data[start : start + 1], out)
        return start + 1

    def _take(self, found: Found, written: bytes, out: list[Piece]) -> bool:
        """Applies a marker; returns False if it has no meaning here."""
        act = found.act
        if found.plain and self._quoted():
            return False
        if act is Act.AGAIN and found.plain and not self._fresh:
            return False
        if act in {Act.CALL, Act.BARE}:
            self._call(found, b"" if act is Act.BARE else written)
        elif act is Act.KEEP:
            self._emit(written[len(MARK) :], out)
        elif act not in {Act.DROP, Act.AGAIN}:
            self._move(act)
        return True

    def _quoted(self) -> bool:
        return self.place == "text" and self._coded and self._code.inside()

    def _call(self, found: Found, marker: bytes) -> None:
        if self.place == "thinking":
            self._space = b""
        self._before = "between" if self.place == "thinking" else self.place
        self.calls, self._marker = found.calls, marker[self._from_prompt :]
        self.place = "call"
        self._bare = False

    def _move(self, act: Act) -> None:
        """Begins another part."""
        if act is Act.SKIP and self.place == "text" and self._reading.dialect.text is None:
            return
        if act is Act.THINK or self.place == "thinking":
            self._space = b""
        self._enter("thinking" if act is Act.THINK else "text" if act is Act.OPEN else "between")
        self._fresh = True

    def _enter(self, place: Place) -> None:
        self._bare = self._bare and place != "text"
        if place == "between":
            self._view = self._views.beginning if self._bare else self._views.between
        else:
            self._view = self._views.thinking if place == "thinking" else self._views.text
        if self.place != "call" or place != "text":
            self._code = CodeSpans()
        self.place = place

    def _emit(self, data: bytes, out: list[Piece]) -> None:
        """Emits bytes that are no marker, without white space that a marker may swallow."""
        if self._fresh:
            data = data.lstrip()
            if not data:
                return
            self._fresh = False
        if self.place == "between" and not data.isspace():
            self._enter("text")
        if self._coded and self.place == "text":
            self._code.feed(data)
        channel: Literal["thinking", "text"] = "thinking" if self.place == "thinking" else "text"
        body = data.rstrip()
        if len(body) == len(data) and not self._space:
            out.append((channel, data))
        elif body:
            out.append((channel, self._space + body))
            self._space = data[len(body) :]
        else:
            self._space += data
        if len(self._space) > MAX_SPACE_BYTES:
            out.append((channel, self._space[:-MAX_SPACE_BYTES]))
            self._space = self._space[-MAX_SPACE_BYTES:]
