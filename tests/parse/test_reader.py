"""Answers of every family, to what they say."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from random import Random

import pytest

from b3node.contract.request import FunctionTool
from b3node.dialects.dialect import GENERIC, Dialect
from b3node.dialects.outline import Reading
from b3node.parse.deltas import CallArguments, CallEnd, CallStart, Delta, ReasoningDelta, TextDelta
from b3node.parse.reader import parser_of
from tests.parse.families import FAMILIES, TOOLS, TURNS, Family, Said, Turn, names, reading, written


def deltas(family: Family, turn: Turn, pieces: list[bytes]) -> list[Delta]:
    parser = parser_of(reading(family, turn), TOOLS, lambda _name, _arguments: True)
    return [delta for piece in pieces for delta in parser.feed(piece)] + parser.finish()


def said(told: list[Delta]) -> Said:
    """What deltas say together; a call that was never ended is "open", with its arguments' text."""
    out: Said = []
    for delta in told:
        if isinstance(delta, CallStart):
            out.append(("open", delta.name, ""))
        elif isinstance(delta, CallEnd):
            assert out[-1][0] == "open"
            out[-1] = ("call", out[-1][1], json.loads(str(out[-1][2])))
        elif isinstance(delta, CallArguments):
            assert out[-1][0] == "open"
            assert delta.text
            out[-1] = (*out[-1][:2], str(out[-1][2]) + delta.text)
        else:
            kind = "reasoning" if isinstance(delta, ReasoningDelta) else "text"
            assert isinstance(delta, ReasoningDelta | TextDelta)
            assert delta.text
            if out and out[-1][0] == kind:
                out[-1] = (kind, str(out[-1][1]) + delta.text)
            else:
                out.append((kind, delta.text))
    return out


@pytest.mark.parametrize(("family", "turn"), TURNS, ids=names)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 4096])
def test_every_family_is_read_in_pieces_of_any_size(family: Family, turn: Turn, size: int) -> None:
    """What a turn says is what stands beside it, one byte at a time too."""
    data = written(turn.written, family.specials)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert said(deltas(family, turn, pieces)) == turn.said


CUTS = int(os.environ.get("B3NODE_CUTS", "60"))
"""Random cuts of each family's turns; 10,000 take some minutes."""


@pytest.mark.parametrize("family", FAMILIES, ids=names)
def test_any_cut_says_the_same(family: Family) -> None:
    """Wherever the bytes are cut, inside of markers, escapes and characters too, what is said is the same."""
    random = Random(family.name)
    for _ in range(CUTS):
        turn = random.choice(family.turns)
        data = written(turn.written, family.specials)
        at = sorted(random.choices(range(len(data) + 1), k=random.choice((1, 2, 5, 20, len(data)))))
        pieces = [data[a:b] for a, b in pairwise((0, *at, len(data)))]
        assert said(deltas(family, turn, pieces)) == turn.said


@pytest.mark.parametrize("family", FAMILIES, ids=names)
def test_garbage_is_read_without_an_error_and_the_same_in_any_cut(family: Family) -> None:
    """Parts of turns in any order, bad bytes among them, marks anywhere: no error, and still no matter how it
    is cut.
    """
    random = Random(family.name)
    shreds = [
        b"\xff",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x80",
        b"\xe2\x82",
        b"\\",
        b"\\ud83d",
        b'"',
        b"{",
        b"}",
        b"\n",
    ]
    shreds += [b"\xff" + special.encode() for special in family.specials] + [
        b"```",
        b"`",
        b"[",
        b"]",
        b",",
        b"   ",
    ]
    for _ in range(CUTS):
        turn = random.choice(family.turns)
        data = bytearray(written(turn.written, family.specials))
        for _ in range(random.choice((1, 1, 2, 3, 10))):
            at = random.randrange(len(data) + 1)
            data[at : at + random.choice((0, 0, 1, 3, 30))] = (
                random.choice(shreds) + data[: random.choice((0, 0, 9, 99))]
            )
        cuts = sorted(random.choices(range(len(data) + 1), k=random.choice((1, 5, len(data)))))
        pieces = [bytes(data[a:b]) for a, b in pairwise((0, *cuts, len(data)))]
        assert said(deltas(family, turn, pieces)) == said(deltas(family, turn, [bytes(data)]))


@pytest.mark.parametrize(("family", "turn"), TURNS, ids=names)
def test_a_longer_answer_takes_nothing_back(family: Family, turn: Turn) -> None:
    """What is told of a beginning is the beginning of what is told, and an answer may end anywhere without an
    error.
    """
    data = written(turn.written, family.specials)
    whole = deltas(family, turn, [bytes([byte]) for byte in data])
    for upto in range(0, len(data), max(1, len(data) // 20)):
        parser = parser_of(reading(family, turn), TOOLS, lambda _name, _arguments: True)
        told = [delta for byte in data[:upto] for delta in parser.feed(bytes([byte]))]
        assert told == whole[: len(told)]
        parser.finish()


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_marker_that_was_broken_off_is_not_told_where_only_calls_may_be(cut: int) -> None:
    """The beginning of a second call at the token limit is no message; where text may be, it is text."""
    one = b'<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    told: list[list[str]] = []
    for silent in (True, False):
        parser = parser_of(
            Reading(Dialect(calls=GENERIC), calls=True, silent=silent), [FunctionTool("f")], lambda *_: True
        )
        deltas = [*parser.feed(one + b"\n" + b"<tool_call>"[:cut]), *parser.finish()]
        told.append([type(delta).__name__ for delta in deltas])
    assert "TextDelta" not in told[0]
    assert "TextDelta" in told[1]
    assert told[1][: len(told[0])] == told[0]
