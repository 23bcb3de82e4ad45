"""The bytes of a call as its readers take them: generators that stop where more is needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from b3node.dialects.outline import MARK
from b3node.parse.markers import Markers

HELD: Final = 256 * 1024
"""Bytes of a call that are held back at most, where it is not known yet that it is one, or of what kind a value is.

Only arguments that stand before the function's name, and values that may be text or not, come anywhere near; it is
four times the largest schema that a function may have.
"""
LONGEST: Final = 1024
"""Bytes of a marker with the white space in it."""

T = TypeVar("T")
Sink = Callable[[bytes], None]
Step = Generator[None, None, T]
"""Reads something and returns it; yields where it needs more bytes than there are."""

_space = re.compile(rb"[ \t\n\r\x0b\x0c]*").match


class Unlike(Exception):  # noqa: N818 - what a model writes is no error
    """What is written is not what the dialect spells. Never leaves the room."""


class Source:
    """Bytes that come piece by piece.

    Readers look at `data` from `at` on and move `at` over what they took. While it is `keeping`, what was taken since
    `keep` can be had again (`written`).
    """

    def __init__(self, specials: Markers[bytes]) -> None:
        self.data = b""
        self.at = 0
        self._specials = specials
        self.keeping = False
        self.size = 0  # bytes that came since it keeps
        self._kept: list[bytes] = []
        self._from = 0

    def feed(self, piece: bytes) -> None:
        """More bytes."""
        if self.keeping:
            self._kept.append(self.data[self._from : self.at])
            self._from = 0
            self.size += len(piece)
        self.data = self.data[self.at :] + piece
        self.at = 0

    def keep(self) -> None:
        """From here on, what is taken is kept."""
        self._kept, self._from, self.size = [], self.at, len(self.data) - self.at
        self.keeping = True

    def release(self) -> None:
        """Nothing is kept any longer."""
        self._kept, self.keeping = [], False

    def written(self) -> bytes:
        """What was taken while keeping."""
        return b"".join([*self._kept, self.data[self._from : self.at]])

    def rest(self) -> bytes:
        """What is not taken."""
        return self.data[self.at :]

    def byte(self) -> Step[int]:
        """The next byte; it is not taken."""
        while self.at >= len(self.data):
            yield
        return self.data[self.at]

    def space(self) -> Step[int]:
        """Takes white space; the byte behind it is not taken."""
        while True:
            found = _space(self.data, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.data):
                return self.data[self.at]
            yield

    def expect(self, byte: int) -> Step[None]:
        """Takes white space and a byte.

        Raises:
            Unlike: another one stands there.
        """
        if (yield from self.space()) != byte:
            raise Unlike
        self.at += 1

    def take(self, markers: Markers[T]) -> Step[T | None]:
        """Takes white space and the longest of the markers; None if none stands there."""
        yield from self.space()
        return (yield from self.here(markers))

    def here(self, markers: Markers[T]) -> Step[T | None]:
        """Takes the longest of the markers that stand right here; None if none does."""
        state, length, best, which = markers.start, 0, 0, 0
        while not state.final and length < LONGEST:
            while self.at + length >= len(self.data):
                yield
            following = state[self.data[self.at + length]]
            if following is None:
                break
            state, length = following, length + 1
            if state.found is not None:
                best, which = length, state.found
        self.at += best
        return markers.meaning(which) if best else None

    def _differs(self, markers: Markers[T]) -> bool:
        """Whether it is known already that none of the markers stands right here."""
        state = markers.start
        for byte in self.data[self.at : self.at + LONGEST]:
            following = state[byte]
            if following is None:
                return True
            if following.found is not None:
                return False
            state = following
        return False

    def must(self, markers: Markers[T]) -> Step[T]:
        """Takes white space and the longest of the markers.

        Raises:
            Unlike: none stands there.
        """
        found = yield from self.take(markers)
        if found is None:
            raise Unlike
        return found

    def until(self, markers: Markers[T], most: int) -> Step[bytes]:
        """Takes what stands before the next of the markers, and that one.

        Raises:
            Unlike: it is more than `most` bytes.
        """
        pieces: list[bytes] = []
        left = most
        while True:
            found = markers.hunt(self.data, self.at)
            upto = found.start() if found else len(self.data)
            pieces.append(self.data[self.at : upto])
            left -= upto - self.at
            self.at = upto
            if found and (yield from self.here(markers)) is not None:
                break
            if found:
                pieces.append(self.data[self.at : self.at + 1])
                self.at, left = self.at + 1, left - 1
            if left < 0:
                raise Unlike
            if not found:
                yield
        if left < 0:
            raise Unlike
        return b"".join(pieces)

    def text(self, ends: Markers[bytes], sink: Sink) -> Step[bytes]:
        """Takes text up to the next marker that means an end, and that one; the text goes to `sink`.

        A meaning that begins with a `MARK` is such an end, and returned; any other one is text, and so is a `MARK`
        that stands before no special token.
        """
        while True:
            found = ends.hunt(self.data, self.at)
            upto = found.start() if found else len(self.data)
            if upto > self.at:
                sink(self.data[self.at : upto])
                self.at = upto
            if not found:
                yield
                continue
            meaning = None if self._differs(ends) else (yield from self.here(ends))
            if meaning is None:
                meaning = self.data[self.at : self.at + 1]
                self.at += 1
            elif meaning[:1] == MARK:
                return meaning
            sink(meaning)

    def run(self, of: re.Pattern[bytes], most: int) -> Step[bytes]:
        """Takes the run of bytes that `of` matches one of, at least one.

        Raises:
            Unlike: there is none, or more than `most`.
        """
        length = 0
        while True:
            found = of.match(self.data, self.at + length)
            length += len(found[0]) if found else 0
            if length > most:
                raise Unlike
            if self.at + length < len(self.data):
                break
            yield
        if not length:
            raise Unlike
        self.at += length
        return self.data[self.at - length : self.at]

    def special(self) -> Step[bytes]:
        """Takes what begins with a `MARK` here: the text of a special token, or that one byte."""
        found = yield from self.here(self._specials)
        if found is None:
            self.at += 1
            return MARK
        return found
