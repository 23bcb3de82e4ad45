r"""How a template spells thoughts, and what it has to do with whether the model thinks.

    <think>\n THOUGHT \n</think>\n\n ANSWER

The markers are what stands next to the thought; the white space around them is kept apart, because a thought that
is closed for the model (nothing asked for it, or its budget is used up) must look like one that the model closed.
Templates that write no thoughts of earlier turns still begin the answer with one, or speak of the markers in
their source; then the white space is that of the family in which this is usual.
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
    r"""How thoughts are spelled.

    `lead` is the white space behind the opening marker, `trail` that before the closing one, `after` all that stands
    between the closing marker and what comes next, the next part's own marker left out. `always` says that the model
    thinks whatever it is told, unless a thought is put into its mouth; `switch` is the template's variable that turns
    thinking off, or "".
    """

    span: Span
    lead: str = "\n"
    trail: str = "\n"
    after: str = "\n\n"
    always: bool = False
    switch: str = ""


_SPOKEN_OF: Final = (
    ThinkingFormat(Span("<think>", "</think>")),
    ThinkingFormat(Span("[THINK]", "[/THINK]"), "", "", ""),
    ThinkingFormat(Span("<|inner_prefix|>", "<|inner_suffix|>"), "", "", ""),
)
"""What a template's source may name although it writes none."""


def read_thinking_format(samples: Samples) -> ThinkingFormat | None:
    """The spelling of thoughts; None if the template knows of none. Whether the model thinks is left to `with_control`."""
    return _written(samples) or _begun(samples) or _spoken_of(samples)


def with_control(form: ThinkingFormat, samples: Samples) -> ThinkingFormat:
    """The same with `always` and `switch`.

    A model thinks by itself if its template writes thoughts, or asks for them when told to leave them off, unless
    there is a switch.
    """
    off = reasoning_variables("none", samples.source)
    thinking = samples.prompt("high")
    switches = (name for name in _SWITCHES if samples.prompt("high", {name: off.get(name, 0)}) != thinking)
    switch = next(switches, "")
    asked = form.always or form.span.open in samples.prompt("none")
    return msgspec.structs.replace(form, always=asked and not switch, switch=switch)


def _written(samples: Samples) -> ThinkingFormat | None:
    """From a turn that has a thought."""
    before, found, behind = samples.thinking().partition(THINKING)
    opened = _LAST_MARKER.search(before)
    closed = next(iter(markers(behind)), "")
    if not (found and opened and closed):
        return None
    trail, _, rest = behind.partition(closed)
    after, _, _ = rest.partition(ANSWER if ANSWER in rest else NAME)
    space = after[: len(after) - len(after.lstrip())]
    return ThinkingFormat(Span(opened[1], closed), before[opened.end(1) :], trail, space, always=True)


def _begun(samples: Samples) -> ThinkingFormat | None:
    """From a prompt that ends with an opening tag of which the source has the closing one."""
    for effort in ("high", "none"):
        opened = re.search(r"<([\w:]+)>(\s*)\Z", samples.prompt(effort))
        if opened and f"</{opened[1]}>" in samples.source:
            return _usual(Span(f"<{opened[1]}>", f"</{opened[1]}>"), airy=bool(opened[2]))
    return None


def _spoken_of(samples: Samples) -> ThinkingFormat | None:
    spoken_of = (form for form in _SPOKEN_OF if form.span.close in samples.source)
    return next(spoken_of, None)


def _usual(span: Span, *, airy: bool) -> ThinkingFormat:
    """Most families write line feeds around a thought, or nothing at all."""
    return ThinkingFormat(span) if airy else ThinkingFormat(span, "", "", "")
