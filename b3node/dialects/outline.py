"""How one answer is to go: what the front reads it by, and what the engine keeps it to. Values, made by `prompt`."""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.dialects.dialect import PLAIN, Dialect

MARK: Final = b"\xff"
"""Stands before the text of a special token among a token's bytes: no UTF-8 has it, so no text is taken for one."""

CALL_TYPE: Final = ("type", "function")
"""A member that models write in front of the name of a bare call, because chat completions spell calls so."""
ALSO: Final = "also"
"""The start symbol of a call in the spelling `Dialect.also[k]` is this and `k`, in a grammar of calls that holds from a
marker."""


def begun_as(grammar: str, which: int) -> str:
    """A triggered grammar of calls for one that was begun in the spelling `Dialect.also[which]`.

    It is no grammar where an earlier spelling has the same marker: whoever finds the marker finds that one.
    """
    return f"{grammar}root ::= {ALSO}{which}\n"  # of rules with one name the last counts


class Reading(msgspec.Struct, frozen=True):
    """How the text of one answer is read.

    `thinking` says that the prompt ends inside a thought, `calls` whether calls are read at all (with `tool_choice`
    "none" what looks like one is text). `specials` are the texts of the special tokens that the dialect's markers
    are made of: a marker is found where they arrive as tokens (see `MARK`), and is text where they are spelled out.
    `answering` says that the prompt ends inside the answer's text, where the dialect marks its beginning.
    `begun` is the end of the prompt if that is the beginning of a marker (`<|start|>assistant`, `>>>`): it is read
    before anything that the model writes, as the bytes (see `MARK`) as which the model would have written it.
    `silent` says that the grammar lets nothing but thoughts and calls be written: what looks like text is a marker that
    was broken off, and is not told.
    """

    dialect: Dialect = PLAIN
    thinking: bool = False
    answering: bool = False
    calls: bool = False
    specials: tuple[str, ...] = ()
    begun: bytes = b""
    silent: bool = False


class Thinking(msgspec.Struct, frozen=True, array_like=True):
    """The bound of a thought: after `budget` tokens, `closing` (little-endian int32 ids) is put into the model's mouth."""

    budget: int
    closing: bytes


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """When the grammar of an answer holds.

    It holds from the beginning, but for a thought; with `triggered` it holds from the marker that opens the first
    call (`Calls.section.open` and `open`, up to the first hole or the body, are read already), and until then
    anything goes. `thinking` bounds the thought, if there may be one. `specials` are the ids of the special tokens
    that the model may write; they are sent with `MARK`. All other control tokens are banned, ends of generation
    are not. `must` says that an answer has to follow a thought: the model may not end inside it.
    """

    reading: Reading
    triggered: bool = False
    thinking: Thinking | None = None
    specials: tuple[int, ...] = ()
    must: bool = False
