"""What a model writes, cut into thought, text and calls: the one scanner that the front and the engine share.

It decides where a part begins and ends, and what between the parts is told at all; it must not know what a call says.
It reads bytes, because tokens are bytes: a marker's special tokens come with `MARK` before them, and are markers; the
same letters without it are text wherever the dialect has them as special tokens.

What holds:

* Nothing is read twice but what began like a marker and was none, and of that at most `LONGEST` bytes.
* Held back is what may yet be a marker (at most `LONGEST` bytes), white space that a marker may swallow (at most
  `MOST_SPACE` bytes), nothing else. What was told is never taken back.
* Inside a thought only its close counts. In code (`parse.code`) no marker counts that is spelled out.
* White space around thoughts and between text and calls belongs to neither. Before an answer it is kept where the
  dialect has no thoughts, so that the plain dialect says every byte.
* Any cutting of the bytes says the same.

Regular expressions over all that was written so far were not an option: their cost grows with the answer, and
what they said of a prefix they take back later.
"""

from __future__ import annotations

from typing import Final, Literal

from b3node.dialects.dialect import Calls
from b3node.dialects.outline import MARK, Reading
from b3node.parse.code import Code
from b3node.parse.markers import State, unmarked
from b3node.parse.views import Act, Found, views

LONGEST: Final = 1024
"""Bytes of the longest marker with the white space in it; families' longest ones have about 60."""
MOST_SPACE: Final = 1024
"""White space that a following marker swallows; of more, the beginning is told."""

Place = Literal["between", "thought", "text", "call"]
Piece = tuple[Literal["thought", "text", "call"], bytes]
"""Some bytes of one channel. `MARK` is left in calls alone; thought and text may be cut inside of a character."""


class Channels:
    """The scanner of one answer.

    `place` is where what comes next belongs: "between" is a place where nothing has begun, so that text may.
    When a call's marker is complete, `feed` returns one "call" piece with the bytes behind it, b"" if there are none,
    and `calls` is how it is spelled; from then on every byte is the call's, until `leave` or `refuse`. What is
    behind a marker begins with the white space at its end, if the model writes it. A bare call's piece begins with
    its body, from bytes that were held back.
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
        self._bare = True  # nothing but thoughts so far
        self._fresh = reading.thinking or dialect.thought is not None  # white space means nothing yet
        self._space = b""  # white space that a marker would swallow
        self._held = b""  # what may be the beginning of a marker
        self._state: State | None = None  # where the search for it stands
        self._best = 0  # bytes of the longest marker that begins it
        self._longest = 0  # which marker that is
        self._unsaid = 0
        self._go("thought" if reading.thinking else "text" if reading.answering else "between")
        self.feed(reading.begun)
        self._unsaid = len(self._held)  # bytes of it that the prompt wrote, not the model

    @property
    def thinking(self) -> bool:
        """Whether what comes next belongs to a thought."""
        return self.place == "thought"

    @property
    def beginning(self) -> bool:
        """Whether nothing is certain but thoughts, so that the answer may be a bare call."""
        return self._view is self._views.beginning

    @property
    def held(self) -> bytes:
        """What was written last and may yet be a marker."""
        return self._held

    def fork(self) -> Channels:
        """One that goes on from here by itself, to try what bytes would do."""
        other = object.__new__(Channels)
        other.__dict__.update(self.__dict__, _code=self._code.fork())
        return other

    def feed(self, piece: bytes) -> list[Piece]:
        """What is certain once `piece` is known."""
        out: list[Piece] = []
        if self._state is not None:
            self._scan(self._held + piece, len(self._held), out)
        elif self.place == "call" or self._view.hunt(piece) is not None:
            self._scan(piece, 0, out)
        elif piece:
            self._tell(piece, out)
        return out

    def finish(self) -> list[Piece]:
        """What was held back, now that nothing follows. The last call of all."""
        out: list[Piece] = []
        while self._state is not None:
            data, self._state = self._held, None
            self._scan(data, self._decide(data, 0, out), out)
        if self.place in {"text", "between"} and self._space:
            out.append(("text", self._space))
        return out

    def settle(self) -> None:
        """The call is one: what was before it is told, and its marker is not text."""
        self._space = self._marker = b""
        self._fresh, self._before = True, "between"

    def leave(self, rest: bytes) -> list[Piece]:
        """The call is over, and `rest` was written behind it."""
        self.settle()
        self._go("between")
        return self.feed(rest)

    def refuse(self, written: bytes, rest: bytes) -> list[Piece]:
        """What looked like a call is none: its marker and `written` are text, and `rest` was written behind it."""
        out: list[Piece] = []
        self._go(self._before)
        self._tell(unmarked(self._marker + written, self._reading.specials), out)
        self._marker = b""
        return out + self.feed(rest)

    def abandon(self, written: bytes) -> list[Piece]:
        """The answer ends before it is known whether what looked like a call is one: text, unless special tokens say so."""
        return [] if MARK in self._marker else self.refuse(written, b"") + self.finish()

    def _scan(self, data: bytes, at: int, out: list[Piece]) -> None:
        """Goes on at `at` with what is not told yet; before it is the beginning of a marker, if a search is on."""
        start = 0 if self._state is not None else at
        while True:
            if self.place == "call":
                out.append(("call", data[start:]))
                return
            if self._state is None:
                start = at = self._hunt(data, start, out)
                if start == len(data):
                    return
            if not self._walk(data, start, at):
                return
            start = self._decide(data, start, out)

    def _hunt(self, data: bytes, start: int, out: list[Piece]) -> int:
        """Tells what comes before the next possible beginning of a marker; where that is, or the end."""
        while True:
            view = self._view
            found = view.hunt(data, start)
            if found is None:
                self._tell(data[start:] if start else data, out)
                return len(data)
            at = found.start()
            if at > start:
                self._tell(data[start:at], out)
                start = at
                if view is not self._view:
                    continue
            self._state, self._best = view.start, 0
            return at

    def _walk(self, data: bytes, start: int, at: int) -> bool:
        """Whether it is certain what begins at `start`; if not, it is held back."""
        state: State | None = self._state
        end = min(len(data), start + LONGEST)
        while at < end and state is not None and not state.final:
            state = state[data[at]]
            at += 1
            if state is not None and state.found is not None:
                self._best, self._longest = at - start, state.found
        if state is None or state.final or at == start + LONGEST:
            return True
        self._state, self._held = state, data[start:]
        return False

    def _decide(self, data: bytes, start: int, out: list[Piece]) -> int:
        """Takes the marker that begins at `start`, or tells a byte that begins none; where what follows begins."""
        self._state, self._held = None, b""
        if self._best:
            found = self._view.meaning(self._longest)
            if self._take(found, data[start : start + self._best], out):
                self._unsaid = 0
                return start if found.act is Act.BARE else start + self._best
        unsaid, self._unsaid = self._unsaid, 0
        if unsaid:
            return start + unsaid
        self._tell(data[start : start + 1], out)
        return start + 1

    def _take(self, found: Found, written: bytes, out: list[Piece]) -> bool:
        """Does what a marker means; False if it means nothing here."""
        act = found.act
        if found.plain and self._quoted():
            return False
        if act is Act.AGAIN and found.plain and not self._fresh:
            return False
        if act in {Act.CALL, Act.BARE}:
            self._call(found, b"" if act is Act.BARE else written)
        elif act is Act.KEEP:
            self._tell(written[len(MARK) :], out)
        elif act not in {Act.DROP, Act.AGAIN}:
            self._move(act)
        return True

    def _quoted(self) -> bool:
        return self.place == "text" and self._coded and self._code.inside()

    def _call(self, found: Found, marker: bytes) -> None:
        if self.place == "thought":
            self._space = b""
        self._before = "between" if self.place == "thought" else self.place
        self.calls, self._marker = found.calls, marker[self._unsaid :]
        self.place = "call"
        self._bare = False

    def _move(self, act: Act) -> None:
        """Another part begins."""
        if act is Act.SKIP and self.place == "text" and self._reading.dialect.text is None:
            return
        if act is Act.THINK or self.place == "thought":
            self._space = b""
        self._go("thought" if act is Act.THINK else "text" if act is Act.OPEN else "between")
        self._fresh = True

    def _go(self, place: Place) -> None:
        self._bare = self._bare and place != "text"
        if place == "between":
            self._view = self._views.beginning if self._bare else self._views.between
        else:
            self._view = self._views.thought if place == "thought" else self._views.text
        if self.place != "call" or place != "text":
            self._code = Code()
        self.place = place

    def _tell(self, data: bytes, out: list[Piece]) -> None:
        """Some bytes that are no marker: all but white space that may mean nothing."""
        if self._fresh:
            data = data.lstrip()
            if not data:
                return
            self._fresh = False
        if self.place == "between" and not data.isspace():
            self._go("text")
        if self._coded and self.place == "text":
            self._code.feed(data)
        channel: Literal["thought", "text"] = "thought" if self.place == "thought" else "text"
        body = data.rstrip()
        if len(body) == len(data) and not self._space:
            out.append((channel, data))
        elif body:
            out.append((channel, self._space + body))
            self._space = data[len(body) :]
        else:
            self._space += data
        if len(self._space) > MOST_SPACE:
            out.append((channel, self._space[:-MOST_SPACE]))
            self._space = self._space[-MOST_SPACE:]
