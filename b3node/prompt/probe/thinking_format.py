r"""The spelling of thinking in a template, and the control that decides whether the model thinks.

    <think>\n THINKING \n</think>\n\n ANSWER

The markers stand next to the thinking; the white space around them is kept apart, because thinking that is
closed for the model (the request asks for none, or its budget is used up) must look like thinking that the
model closed. Templates that write no thinking of earlier turns still begin the answer with some, or name the
markers in their source; then the white space is that of the family in which this is usual.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from b3node.dialects.dialect import Span
from b3node.prompt.probe.literals import markers
from b3node.prompt.probe.samples import ANSWER, NAME, THINKING, Samples
from b3node.prompt.template.reasoning_variables import reasoning_variables

_LAST_MARKER: Final = re.compile(r"(<[^<>]*>|\[[^\[\]\s]*\])\s*\Z")
_SWITCHES: Final = ("enable_thinking", "thinking", "thinking_mode", "thinking_budget")


class ThinkingFormat(msgspec.Struct, frozen=True):
    """The spelling of thinking."""

    span: Span
    """The markers around it."""
    lead: str = "\n"
    """The white space after the opening marker."""
    trail: str = "\n"
    """The white space before the closing marker."""
    after: str = "\n\n"
    """The text between the closing marker and the next part, the next part's own marker left out."""
    always: bool = False
    """Whether the model thinks with any variables, unless the prompt ends with empty thinking."""
    switch: str = ""
    """The template's variable that turns thinking off, or ""."""


_NAMED_IN_SOURCE: Final = (
    ThinkingFormat(Span("<think>", "</think>")),
    ThinkingFormat(Span("[THINK]", "[/THINK]"), "", "", ""),
    ThinkingFormat(Span("<|inner_prefix|>", "<|inner_suffix|>"), "", "", ""),
)
"""The formats that a template's source may name although it writes none."""


def read_thinking_format(samples: Samples) -> ThinkingFormat | None:
    """Returns the spelling of thinking, None if the template has none; `with_control` adds the control."""
    return _from_turn(samples) or _from_prompt(samples) or _from_source(samples)


def with_control(form: ThinkingFormat, samples: Samples) -> ThinkingFormat:
    """Returns the format with `always` and `switch`.

    A model thinks by itself if its template writes thinking, or opens it with every variable off, unless
    there is a switch.
    """
    off = reasoning_variables("none", samples.source)
    thinking = samples.prompt("high")
    switches = (name for name in _SWITCHES if samples.prompt("high", {name: off.get(name, 0)}) != thinking)
    switch = next(switches, "")
    asked = form.always or form.span.open in samples.prompt("none")
    return msgspec.structs.replace(form, always=asked and not switch, switch=switch)


def _from_turn(samples: Samples) -> ThinkingFormat | None:
    """Reads the format off a turn with thinking."""
    before, found, following = samples.thinking().partition(THINKING)
    opened = _LAST_MARKER.search(before)
    closed = next(iter(markers(following)), "")
    if not (found and opened and closed):
        return None
    trail, _, rest = following.partition(closed)
    after, _, _ = rest.partition(ANSWER if ANSWER in rest else NAME)
    space = after[: len(after) - len(after.lstrip())]
    return ThinkingFormat(Span(opened[1], closed), before[opened.end(1) :], trail, space, always=True)


def _from_prompt(samples: Samples) -> ThinkingFormat | None:
    """Reads the format off a prompt that ends with an opening tag whose closing one is in the source."""
    for effort in ("high", "none"):
        opened = re.search(r"<([\w:]+)>(\s*)\Z", samples.prompt(effort))
        if opened and f"</{opened[1]}>" in samples.source:
            return _usual(Span(f"<{opened[1]}>", f"</{opened[1]}>"), spaced=bool(opened[2]))
    return None


def _from_source(samples: Samples) -> ThinkingFormat | None:
    named = (form for form in _NAMED_IN_SOURCE if form.span.close in samples.source)
    return next(named, None)


def _usual(span: Span, *, spaced: bool) -> ThinkingFormat:
    """Returns the usual format with these markers: line feeds around thinking, or nothing at all."""
    return ThinkingFormat(span) if spaced else ThinkingFormat(span, "", "", "")
