"""Where in a Markdown text code stands: in what is quoted as code, a marker is text.

Followed is what models write: fences of three backticks or more at a line's beginning, and runs of backticks within a
line. A code span ends with its line at the latest, so that one stray backtick hides no call below it.
"""

from __future__ import annotations

import re
from typing import Final

_parts = re.compile(rb"`+|\n|[^`\n]+").findall

_TICK: Final = 0x60
_FENCE: Final = 3
"""Backticks of a fence, at least."""
_AT_ONCE: Final = 1024
"""Bytes that are followed together."""


class Code:
    """Follows a text; any cutting of it says the same."""

    def __init__(self) -> None:
        self._open = 0  # backticks that opened a span; below zero, a fence
        self._run = 0  # backticks at the end of what is known
        self._blank = True  # nothing but white space in this line so far, before the run
        self._first = False  # still in the line that opened the fence
        self._later = b""  # text that is not followed yet: it is cheaper at once

    def fork(self) -> Code:
        """One that goes on from here by itself."""
        other = object.__new__(Code)
        other.__dict__.update(self.__dict__)
        return other

    def feed(self, text: bytes) -> None:
        """More of the text."""
        self._later += text
        if len(self._later) > _AT_ONCE:
            self._follow()

    def inside(self) -> bool:
        """Whether what follows is code, if it is no backtick."""
        self._follow()
        self._settle()
        return self._open != 0

    def _follow(self) -> None:
        text, self._later = self._later, b""
        if self._run or b"`" in text:
            for part in _parts(text):
                self._part(part)
            return
        if b"\n" in text:
            self._newline()
            text = text[text.rfind(b"\n") + 1 :]
        if text and not text.isspace():
            self._blank = False

    def _part(self, part: bytes) -> None:
        if part[0] == _TICK:
            self._run += len(part)
            return
        self._settle()
        if part == b"\n":
            self._newline()
        elif not part.isspace():
            self._blank = False

    def _newline(self) -> None:
        self._open = min(self._open, 0)
        self._blank, self._first = True, False

    def _settle(self) -> None:
        """The run of backticks is over."""
        run, self._run = self._run, 0
        if not run:
            return
        if self._open == 0:
            fence = self._blank and run >= _FENCE
            self._open, self._first = (-run if fence else run), fence
        elif run == self._open or (self._open < 0 and (self._first or (self._blank and run >= -self._open))):
            self._open = 0
        self._blank = False
