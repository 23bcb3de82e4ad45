"""The bytes of a call, and the generators that read them: each yields where it needs more."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final, TypeVar

from b3node.dialects.outline import MARK
from b3node.parse.markers import MAX_MARKER_BYTES, MarkerSet

MAX_HELD_BYTES: Final = 256 * 1024
"""Bytes of a call that are held back while it may be text, or while the type of a value is open.

Only arguments before the function's name, and values that may be text, come near; it is four times the
largest schema of a function.
"""
MAX_NAME_BYTES: Final = 256
"""Bytes of a name: of an argument, a member or an element; also of a type or a scalar that is dropped."""

T = TypeVar("T")
ByteSink = Callable[[bytes], None]
ReadSteps = Generator[None, None, T]
"""A reader: yields where it needs more bytes, and returns its result."""

_space = re.compile(rb"[ \t\n\r\x0b\x0c]*").match


class Mismatch(Exception):  # noqa: N818 - output of a model is no error
    """The bytes do not match the dialect. Never leaves this package."""


class Source:
    """Bytes that arrive in pieces.

    Readers look at `data` from `at` on and move `at` past the bytes they took. While `keeping`, the bytes
    taken since `keep` can be had again (`written`).
    """

    def __init__(self, specials: MarkerSet[bytes]) -> None:
        self.data = b""
        self.at = 0
        self._specials = specials
        self.keeping = False
        self.size = 0  # bytes that came since it keeps
        self._kept: list[bytes] = []
        self._from = 0

    def feed(self, piece: bytes) -> None:
        """Appends bytes."""
        if self.keeping:
            self._kept.append(self.data[self._from : self.at])
            self._from = 0
            self.size += len(piece)
        self.data = self.data[self.at :] + piece
        self.at = 0

    def keep(self) -> None:
        """Starts to keep the bytes that are taken."""
        self._kept, self._from, self.size = [], self.at, len(self.data) - self.at
        self.keeping = True

    def release(self) -> None:
        """Stops keeping, and drops the kept bytes."""
        self._kept, self.keeping = [], False

    def written(self) -> bytes:
        """Returns the bytes taken while keeping."""
        return b"".join([*self._kept, self.data[self._from : self.at]])

    def rest(self) -> bytes:
        """Returns the bytes that are not taken."""
        return self.data[self.at :]

    def byte(self) -> ReadSteps[int]:
        """Returns the next byte without taking it."""
        while self.at >= len(self.data):
            yield
        return self.data[self.at]

    def space(self) -> ReadSteps[int]:
        """Takes white space; returns the byte after it without taking that."""
        while True:
            found = _space(self.data, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.data):
                return self.data[self.at]
            yield

    def expect(self, byte: int) -> ReadSteps[None]:
        """Takes white space and a byte.

        Raises:
            Mismatch: the byte is another one.
        """
        if (yield from self.space()) != byte:
            raise Mismatch
        self.at += 1

    def take(self, markers: MarkerSet[T]) -> ReadSteps[T | None]:
        """Takes white space and the longest matching marker; returns None if none matches."""
        yield from self.space()
        return (yield from self.here(markers))

    def here(self, markers: MarkerSet[T]) -> ReadSteps[T | None]:
        """Takes the longest marker that matches right here; returns None if none does."""
        state, length, best, which = markers.start, 0, 0, 0
        while not state.final and length < MAX_MARKER_BYTES:
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

    def _differs(self, markers: MarkerSet[T]) -> bool:
        """Returns whether it is known already that no marker matches right here."""
        state = markers.start
        for byte in self.data[self.at : self.at + MAX_MARKER_BYTES]:
            following = state[byte]
            if following is None:
                return True
            if following.found is not None:
                return False
            state = following
        return False

    def must(self, markers: MarkerSet[T]) -> ReadSteps[T]:
        """Takes white space and the longest matching marker.

        Raises:
            Mismatch: none matches.
        """
        found = yield from self.take(markers)
        if found is None:
            raise Mismatch
        return found

    def until(self, markers: MarkerSet[T], most: int) -> ReadSteps[bytes]:
        """Takes the next marker; returns the bytes before it.

        Raises:
            Mismatch: they are more than `most`.
        """
        pieces: list[bytes] = []
        left = most
        while True:
            found = markers.search(self.data, self.at)
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
                raise Mismatch
            if not found:
                yield
        if left < 0:
            raise Mismatch
        return b"".join(pieces)

    def text(self, ends: MarkerSet[bytes], sink: ByteSink) -> ReadSteps[bytes]:
        """Takes text up to and with the next marker that is an end; the text goes to `sink`.

        A meaning that begins with a `MARK` is such an end, and returned; any other one is text, and so is a
        `MARK` before no special token.
        """
        while True:
            found = ends.search(self.data, self.at)
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

    def run(self, of: re.Pattern[bytes], most: int) -> ReadSteps[bytes]:
        """Takes the longest run of bytes that `of` matches, at least one.

        Raises:
            Mismatch: there is none, or more than `most`.
        """
        length = 0
        while True:
            found = of.match(self.data, self.at + length)
            length += len(found[0]) if found else 0
            if length > most:
                raise Mismatch
            if self.at + length < len(self.data):
                break
            yield
        if not length:
            raise Mismatch
        self.at += length
        return self.data[self.at - length : self.at]

    def special(self) -> ReadSteps[bytes]:
        """Takes a `MARK`: returns the text of its special token, or that one byte."""
        found = yield from self.here(self._specials)
        if found is None:
            self.at += 1
            return MARK
        return found
