"""How one answer is read by the front and constrained by the engine. Values, made by `prompt`."""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.dialects.dialect import PLAIN, Dialect

MARK: Final = b"\xff"
"""Precedes the text of a special token in a token's bytes: no UTF-8 has it, so no text looks like one."""

CALL_TYPE: Final = ("type", "function")
"""A member that models write before the name of a bare call, because chat completions spell calls so."""
ALSO: Final = "also"
"""Start symbol, with `k` after it, of calls spelled as `Dialect.also[k]`, in a triggered grammar of calls."""


def begun_as(grammar: str, which: int) -> str:
    """Returns the triggered grammar of calls for a call that began in the spelling `Dialect.also[which]`.

    It is no grammar where an earlier spelling has the same marker: finding the marker finds that one.
    """
    return f"{grammar}root ::= {ALSO}{which}\n"  # of rules with one name the last counts


class Reading(msgspec.Struct, frozen=True):
    """How the text of one answer is read."""

    dialect: Dialect = PLAIN
    thinking: bool = False
    """The prompt ends inside of thinking."""
    answering: bool = False
    """The prompt ends inside the answer's text, where the dialect marks its beginning."""
    calls: bool = False
    """Calls are read; with `tool_choice` "none", something that looks like a call is text."""
    specials: tuple[str, ...] = ()
    """Texts of the special tokens in the dialect's markers.

    A marker counts where they arrive as tokens (see `MARK`); spelled out in letters, it is text.
    """
    begun: bytes = b""
    """The end of the prompt if it begins a marker (`<|start|>assistant`, `>>>`).

    It is read before the model's output, as the bytes (see `MARK`) that the model would have written.
    """
    silent: bool = False
    """The grammar allows only thinking and calls: apparent text is a broken-off marker, and is dropped."""


class Thinking(msgspec.Struct, frozen=True, array_like=True):
    """The bound of thinking: after `budget` tokens, `closing` (little-endian int32 ids) is forced."""

    budget: int
    closing: bytes


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """When the grammar of an answer applies: after thinking, or, if `triggered`, from a call's marker on."""

    reading: Reading
    triggered: bool = False
    """The grammar applies from the marker that opens the first call (`Calls.section.open` and `open`, up to
    the first hole or the body, are read already); until then output is free.
    """
    thinking: Thinking | None = None
    """Bounds thinking, if there may be any."""
    specials: tuple[int, ...] = ()
    """Ids of the special tokens that the model may write, sent with `MARK`. All other control tokens are
    banned; ends of generation are not.
    """
    must: bool = False
    """An answer has to follow thinking: the model may not end inside it."""
