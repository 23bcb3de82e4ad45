"""Table of the facts that a template's output does not show, one row a family.

A row is chosen by its `signs`, all of which stand in the template's source, and never by a model's name. Its
facts replace those that were found. There are four reasons for a row:

- the template writes no calls of earlier turns, though it lists functions (LFM2, Granite 3.3);
- the model itself writes otherwise than its template (Harmony puts the recipient after the channel, Llama
  begins some calls with a tag);
- markers are made of several parts with plain words between them (Harmony, Kimi K3, Gemma 4, Muse), whose
  edges no comparison finds;
- the prompt ends inside a marker, so that a call and an answer begin alike (functionary 3.2, `>>>`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from b3node.dialects.dialect import (
    Calls,
    Dialect,
    Hole,
    JsonArguments,
    KeywordArguments,
    NamedBody,
    ObjectBody,
    Span,
    TaggedArguments,
)


class Family(msgspec.Struct, frozen=True):
    """One row of the table."""

    signs: tuple[str, ...]
    """Texts that all stand in the template's source."""
    dialect: Dialect
    """The known parts; None or empty where the found ones stay."""
    bare: bool = False
    """Whether the row is only for templates whose calls were found to have no marker."""
    trail: str = ""
    """See `ThinkingFormat`."""
    after: str = ""
    """See `ThinkingFormat`."""


def _json(open_: str, between: str, close: str = "") -> Calls:
    """One call a turn: `open_` NAME `between` {...} `close`."""
    return Calls(NamedBody((between,), JsonArguments()), open=(open_,), close=close, alone=True)


_HARMONY = Dialect(
    thinking=Span("<|channel|>analysis<|message|>", "<|end|>"),
    text=Span("<|channel|>final<|message|>", "<|end|>"),
    calls=_json("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
    also=(
        _json("<|channel|>commentary to=functions.", " json<|message|>", "<|call|>"),
        _json("<|channel|>commentary to=functions.", "<|message|>", "<|call|>"),
        _json("<|channel|>analysis to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
        _json("<|channel|>analysis to=functions.", "<|message|>", "<|call|>"),
        _json("<|start|>assistant to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"),
        _json(
            "<|start|>assistant to=functions.",
            "<|channel|>commentary <|constrain|>json<|message|>",
            "<|call|>",
        ),
        _json("<|start|>assistant to=functions.", "<|channel|>commentary<|message|>", "<|call|>"),
    ),
    skipped=("<|start|>assistant", "<|channel|>commentary<|message|>"),
)

_KIMI_K3 = Dialect(
    thinking=Span("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    text=Span("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
    calls=Calls(
        NamedBody(
            ('" index="', Hole("index", 1), '"<|sep|>'),
            TaggedArguments(
                '<|open|>argument key="', '" type="', "<|close|>argument<|sep|>", "type", '"<|sep|>'
            ),
        ),
        Span("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        ('<|open|>call tool="',),
        "<|close|>call<|sep|>",
    ),
    skipped=("<|close|>message<|sep|>", "<|end_of_msg|>"),
)

_ATEM = TaggedArguments('<atem:parameter name="', '">', "</atem:parameter>\n")
_MUSE = Dialect(
    thinking=Span("<|start|>assistant to=self<|message|>", "<|eom|>"),
    text=Span("<|start|>assistant to=user<|message|>", ""),
    calls=Calls(
        NamedBody(('">\n',), _ATEM),
        open=("<|start|>assistant to=", Hole("id"), '<|message|><atem:function_calls>\n<atem:invoke name="'),
        close="</atem:invoke>\n</atem:function_calls>",
        between="<|eom|>",
    ),
    skipped=("<|eom|>",),
)

FAMILIES: Final = (
    Family(("<|channel|>analysis", "<|call|>"), _HARMONY, after="<|start|>assistant"),
    Family(("<|open|>", "<|close|>", "<|sep|>"), _KIMI_K3),
    Family(("<atem:function_calls>", "to=self"), _MUSE, after="<|start|>assistant"),
    Family(
        ("<|think|>", "<|begin|>assistant"),
        Dialect(skipped=("<|begin|>assistant",)),
        after="<|begin|>assistant",
    ),
    Family(
        ("<|channel>", "<channel|>"), Dialect(thinking=Span("<|channel>thought\n", "<channel|>")), trail="\n"
    ),
    Family(
        ("[BEGIN FINAL RESPONSE]",),
        Dialect(
            thinking=Span("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"),
            skipped=("[END FINAL RESPONSE]",),
        ),
        trail="\n",
        after="\n",
    ),
    Family(
        (">>>all",),
        Dialect(
            text=Span(">>>all\n", ""),
            calls=Calls(NamedBody(("\n",), JsonArguments()), open=(">>>",)),
        ),
    ),
    Family(
        ("<|python_tag|>",),
        Dialect(also=(Calls(ObjectBody(arguments="parameters"), open=("<|python_tag|>",), alone=True),)),
        bare=True,
    ),
    Family(
        ("List of tools: ",),
        Dialect(
            calls=Calls(
                NamedBody((), KeywordArguments()),
                Span("<|tool_call_start|>[", "]<|tool_call_end|>"),
                between=", ",
            )
        ),
    ),
    Family(
        ("<|tool_call|>", "JSON list of tools"),
        Dialect(calls=Calls(ObjectBody(), Span("<|tool_call|>[", "]"), between=", ")),
    ),
    Family(("<response></response>",), Dialect(text=Span("<response>", "</response>"))),
)
