"""Guides over small grammars of texts, and what they let through: helpers of the tests beside."""

from __future__ import annotations

from array import array
from collections import abc

import numpy as np

from b3node.dialects.dialect import Calls, Dialect, ObjectBody, Span
from b3node.dialects.outline import MARK, Outline, Reading, Thinking
from b3node.engine.guidance.guide import Guide
from b3node.engine.guidance.token_table import TokenTable
from b3node.engine.sampling.constraint import ConstraintError
from tests.engine.fake_grammar import TextGrammar, everything, ids, spell, token_table
from tests.zoo.vocabulary import base

THOUGHT = Span("<think>", "</think>")
TAGGED = Calls(ObjectBody(), open=("<tool_call>",), close="</tool_call>")
PLAIN = Dialect(thinking=THOUGHT, calls=TAGGED)
ALL = ("<think>", "</think>", "<tool_call>", "</tool_call>")
MARKED = {text: MARK + text.encode() for text in ALL}
BODY = b'{"name": "f"}'
TEXTS = (BODY, b"\n" + BODY + b"\n")
TOKEN_TABLE = token_table(
    *("<think", "<tool_call", "k>", "l>", ">\n", ">\n\n", ">{", '>{"name"', ">x"),
    *('<tool_call>{"', "a<tool_call>{", "a<tool_call>x"),
)


def thinking(budget: int = 1000, closing: bytes = b"</think>", lex: TokenTable = TOKEN_TABLE) -> Thinking:
    return Thinking(budget, array("i", spell(lex, closing)).tobytes())


def outline(
    dialect: Dialect = PLAIN,
    specials: abc.Sequence[str] = (),
    *,
    bound: Thinking | None = None,
    triggered: bool = False,
    must: bool = False,
    **reading: object,
) -> Outline:
    """An outline whose special tokens are those of the base vocabulary."""
    return Outline(
        Reading(dialect, calls=dialect.calls is not None, specials=tuple(specials), **reading),  # type: ignore[arg-type]
        triggered=triggered,
        thinking=bound,
        specials=tuple(base().id(text) for text in specials),
        must=must,
    )


def guide(
    outlined: Outline,
    texts: abc.Sequence[bytes] | None = None,
    lex: TokenTable = TOKEN_TABLE,
    others: abc.Sequence[abc.Sequence[bytes]] = (),
) -> Guide:
    """A guide whose grammar is `texts`, and `others[k]` for calls in the spelling `also[k]`."""

    def other(which: int) -> TextGrammar:
        if which >= len(others):
            raise ConstraintError("no such grammar")
        return TextGrammar(lex, others[which])

    return Guide(outlined, lex, None if texts is None else TextGrammar(lex, texts), other)


def allowed(guided: Guide, lex: TokenTable = TOKEN_TABLE) -> set[int]:
    return set(np.flatnonzero(guided.allows(everything(lex))).tolist())


def write(guided: Guide, *parts: str | bytes | int, lex: TokenTable = TOKEN_TABLE) -> Guide:
    """Goes on with tokens, and with texts byte by byte."""
    for part in parts:
        text = part.encode() if isinstance(part, str) else part
        for token in [text] if isinstance(text, int) else spell(lex, text):
            assert guided.allows(ids([token]))[0], (token, part)
            guided.accept(token)
    return guided


def forced(guided: Guide, lex: TokenTable = TOKEN_TABLE) -> bytes:
    """What is forced from here on, bounded; it is accepted."""
    said = b""
    while len(only := allowed(guided)) == 1:
        (token,) = only
        narrowed = guided.narrow()
        assert narrowed is None or token in narrowed
        guided.accept(token)
        said += guided.marked.get(token) or lex.pieces[token]
        assert len(said) < 1000
    return said
