"""Finds code in Markdown text: a marker that is quoted as code is text.

It follows the forms that models write: fences of three or more backticks at the beginning of a line, and runs
of backticks within a line. A code span ends with its line at the latest, so that one stray backtick hides no
later call.
"""

from __future__ import annotations

import re
from typing import Final

_parts = re.compile(rb"`+|\n|[^`\n]+").findall

_TICK: Final = 0x60
_MIN_FENCE_TICKS: Final = 3
"""Least number of backticks of a fence."""
_CODE_BATCH_BYTES: Final = 1024
"""Bytes that are followed together, because that is cheaper."""


class CodeSpans:
    """Follows a text; any chunking of it gives the same result."""

    def __init__(self) -> None:
        self._open = 0  # backticks that opened a span; below zero, a fence
        self._run = 0  # backticks at the end of the known text
        self._blank = True  # nothing but white space in this line so far, before the run
        self._first = False  # still in the line that opened the fence
        self._later = b""  # text that is not followed yet: it is cheaper at once

    def fork(self) -> CodeSpans:
        """Returns an independent copy."""
        other = object.__new__(CodeSpans)
        other.__dict__.update(self.__dict__)
        return other

    def feed(self, text: bytes) -> None:
        """Takes more of the text."""
        self._later += text
        if len(self._later) > _CODE_BATCH_BYTES:
            self._follow()

    def inside(self) -> bool:
        """Returns whether the next byte, unless it is a backtick, is code."""
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
        """Ends the run of backticks."""
        run, self._run = self._run, 0
        if not run:
            return
        if self._open == 0:
            fence = self._blank and run >= _MIN_FENCE_TICKS
            self._open, self._first = (-run if fence else run), fence
        elif run == self._open or (self._open < 0 and (self._first or (self._blank and run >= -self._open))):
            self._open = 0
        self._blank = False
