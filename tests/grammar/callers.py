"""Calls drawn from grammars, as the bytes that a model would send, and read back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from b3node.contract.request import FunctionTool, ToolChoice
from b3node.dialects.dialect import Dialect
from b3node.dialects.outline import MARK, Reading
from b3node.grammar import ArgumentsJudge, CallGrammar, SpecialTokens, calls_gbnf
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta
from b3node.parse.reader import parser_of
from tests.grammar.drawing import Grammar

REQUIRED, AUTO = ToolChoice("required"), ToolChoice("auto")


NUMBERS = [number for number in range(1, 32) if chr(number) not in "\t\n\r"]
"""The ids of special tokens, each the character that no text of a grammar has."""


def marks(specials: Sequence[str], ends: Sequence[str] = ()) -> SpecialTokens:
    """Returns special tokens, numbered in their order."""
    return SpecialTokens(dict(zip(specials, NUMBERS, strict=False)), ends)


class Model:
    """Writes random texts of a grammar; a token element becomes its text after a mark."""

    def __init__(self, gbnf: str, specials: Sequence[str]) -> None:
        self._specials = {
            chr(number): MARK + text.encode() for number, text in zip(NUMBERS, specials, strict=False)
        }
        self._grammar = Grammar(re.sub(r"<\[(\d+)\]>", lambda found: f'"\\x{int(found[1]):02X}"', gbnf))

    def write(self, seed: int, budget: int = 150) -> bytes:
        text = self._grammar.draw(seed, budget)
        return b"".join(self._specials.get(char, char.encode()) for char in text)


def required(dialect: Dialect, tools: Sequence[FunctionTool], specials: Sequence[str] = ()) -> CallGrammar:
    return calls_gbnf(dialect, tools, REQUIRED, marks=marks(specials))


def parsed(
    reading: Reading, tools: Sequence[FunctionTool], judge: ArgumentsJudge, data: bytes
) -> list[Delta]:
    parser = parser_of(reading, tools, judge)
    return parser.feed(data) + parser.finish()


def calls_in(deltas: Sequence[Delta]) -> list[tuple[str, str]]:
    """Returns names and arguments of calls; asserts that all ended and there are no other deltas."""
    out: list[tuple[str, str]] = []
    ended = True
    for delta in deltas:
        if isinstance(delta, CallStart):
            assert ended
            out.append((delta.name, ""))
            ended = False
        elif isinstance(delta, CallArguments):
            out[-1] = (out[-1][0], out[-1][1] + delta.text)
        else:
            assert isinstance(delta, CallEnd), delta
            ended = True
    assert ended
    return out
