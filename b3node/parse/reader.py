"""The parser of an answer in any dialect: channels, and the content of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import PLAIN, Calls
from b3node.dialects.outline import Reading
from b3node.parse.call import CallCheck
from b3node.parse.channels import Channels, Piece
from b3node.parse.deltas import Delta, ReasoningDelta, TextDelta
from b3node.parse.parser import Parser, TextParser
from b3node.parse.section import Section, SectionOutcome, spelling
from b3node.parse.utf8 import Utf8Decoder
from b3node.parse.views import call_head, spellings


def parser_of(reading: Reading, tools: Sequence[FunctionTool], judge: CallCheck) -> Parser:
    """Returns the parser of one answer.

    Args:
        reading: the dialect, and where the prompt left off.
        tools: the declared functions; a call of any other one is text, as it was written.
        judge: decides, once for each call at its end, whether it may be reported complete. A call that it
            refuses, or whose arguments are no JSON, is never ended, and nothing after it is read.
    """
    if reading.dialect == PLAIN and not reading.specials:
        return TextParser()
    return AnswerParser(reading, tools, judge)


class AnswerParser:
    """A `Parser` of channels and calls."""

    def __init__(self, reading: Reading, tools: Sequence[FunctionTool], judge: CallCheck) -> None:
        self._reading, self._judge = reading, judge
        self._tools = {tool.name: tool for tool in tools}
        self._channels = Channels(reading)
        self._section: Section | None = None
        self._spellings: list[Calls] = []  # those that are tried if this one is refused
        self._channel: Literal["thinking", "text", "call"] = "text"
        self._utf8 = Utf8Decoder()
        self._broken = False

    @property
    def thinking(self) -> bool:
        """Whether the next bytes belong to thinking, as far as known."""
        return self._channels.thinking

    def feed(self, piece: bytes) -> list[Delta]:
        """Returns the deltas that are certain with `piece`."""
        out: list[Delta] = []
        if self._section is not None:
            self._read(self._call(piece, out), out)
        elif not self._broken:
            self._read(self._channels.feed(piece), out)
        return out

    def finish(self) -> list[Delta]:
        """Returns the deltas that were held back; a call with complete arguments ends, others stay open."""
        out: list[Delta] = []
        if self._broken:
            return out
        self._read(self._channels.finish(), out)
        section = self._section
        if section is not None:
            section.finish(out)
            if not section.begun:
                self._read(self._channels.abandon(section.written + section.rest), out)
        self._switch("call", out)
        return out

    def _read(self, pieces: list[Piece], out: list[Delta]) -> None:
        while pieces:
            following: list[Piece] = []
            for channel, data in pieces:
                if channel == "call":
                    following = self._call(data, out)
                else:
                    self._emit(channel, data, out)
            pieces = following

    def _emit(self, channel: Literal["thinking", "text"], data: bytes, out: list[Delta]) -> None:
        if channel != self._channel:
            self._switch(channel, out)
        if channel == "text" and self._reading.silent:
            return
        text = self._utf8.feed(data)
        if text:
            out.append(TextDelta(text) if channel == "text" else ReasoningDelta(text))

    def _switch(self, channel: Literal["thinking", "text", "call"], out: list[Delta]) -> None:
        """Switches the channel: a character that was begun is never completed."""
        text = self._utf8.finish()
        if text:
            out.append(TextDelta(text) if self._channel == "text" else ReasoningDelta(text))
        self._channel, self._utf8 = channel, Utf8Decoder()

    def _call(self, data: bytes, out: list[Delta]) -> list[Piece]:
        """Feeds a section of calls; returns the pieces after its end."""
        if self._section is None:
            self._spellings = self._alike()
            self._section = self._next()
            self._switch("call", out)
        section = self._section
        section.feed(data, out)
        while section.outcome is SectionOutcome.REFUSED and self._spellings and not section.begun:
            data = section.written + section.rest
            section = self._section = self._next()
            section.feed(data, out)
        if section.outcome is SectionOutcome.OPEN:
            return []
        self._section = None
        return self._over(section)

    def _over(self, section: Section) -> list[Piece]:
        if section.begun:
            self._channels.settle()
        if section.outcome is SectionOutcome.BROKEN:
            self._broken = True
            return []
        if section.outcome is SectionOutcome.REFUSED:
            return self._channels.refuse(section.written, section.rest)
        return self._channels.leave(section.rest)

    def _alike(self) -> list[Calls]:
        """Returns the spellings with the marker that was read, in reverse order of preference."""
        found = self._channels.calls
        every = spellings(self._reading.dialect)
        return [calls for calls in reversed(every) if found and _marker(calls) == _marker(found)]

    def _next(self) -> Section:
        return Section(spelling(self._spellings.pop(), self._reading.specials), self._tools, self._judge)


def _marker(calls: Calls) -> tuple[bool, tuple[str, ...]]:
    return calls.bare, call_head(calls)
