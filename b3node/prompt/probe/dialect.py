"""A model's dialect, read off its template's own words and corrected by the table of families."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from b3node.dialects.dialect import GENERIC, Calls, Dialect, Span
from b3node.prompt.probe.call_format import read_call_format
from b3node.prompt.probe.families import FAMILIES, Family
from b3node.prompt.probe.literals import common_head, markers
from b3node.prompt.probe.samples import ANSWER, USER, Samples
from b3node.prompt.probe.thinking_format import ThinkingFormat, read_thinking_format, with_control
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.traits import Traits

_TAGS: Final = Span("<think>", "</think>")


class Learned(msgspec.Struct, frozen=True):
    """The facts about a model that its template shows."""

    dialect: Dialect
    """The dialect; its `calls` are always set: at worst they are `GENERIC`."""
    thinking: ThinkingFormat | None
    """The spelling of thinking; None for a model that does not think."""
    explain_calls: bool
    """Whether a prompt has to explain the spelling of calls, because the template does not."""

    @property
    def calls(self) -> Calls:
        """The spelling of calls."""
        return self.dialect.calls or GENERIC


def learn(template: ChatTemplate, capabilities: TemplateCapabilities) -> Learned:
    """Learns the dialect of a template with these capabilities by about twenty short conversations."""
    samples = Samples(template, replace(capabilities, calls=True, results=True))
    thinking = read_thinking_format(samples)
    span = thinking.span if thinking else None
    found = Dialect(thinking=span, text=_text_span(samples, span), calls=read_call_format(samples, span))
    for family in FAMILIES:
        if _matches(family, found, template.source):
            found, thinking = _corrected_dialect(found, family), _corrected_thinking(thinking, family)
    explain_calls = not capabilities.tools or found.calls is None
    return Learned(
        replace(found, calls=found.calls or GENERIC),
        thinking and with_control(thinking, samples),
        explain_calls,
    )


def with_tags(learned: Learned) -> Learned:
    """Returns the same for a vocabulary with `<think>` and `</think>`: its model thinks, template or not."""
    if learned.dialect.thinking is not None:
        return learned
    return replace(learned, dialect=replace(learned.dialect, thinking=_TAGS), thinking=ThinkingFormat(_TAGS))


def traits_of(capabilities: TemplateCapabilities, learned: Learned, *, template: bool) -> Traits:
    """Returns the traits of a model.

    Args:
        capabilities: those of its template for requests with functions.
        learned: the facts learned from that template.
        template: whether the model's file brought a template.
    """
    return Traits(
        template,
        "turn" if capabilities.system else "user",
        "template" if capabilities.tools and not learned.explain_calls else "text",
        not learned.calls.alone,
        learned.thinking is not None,
        _control(learned.thinking),
    )


def _control(thinking: ThinkingFormat | None) -> Literal["none", "switch", "always"]:
    if thinking is None:
        return "none"
    return "switch" if thinking.switch else "always" if thinking.always else "none"


def _matches(family: Family, found: Dialect, source: str) -> bool:
    bare = found.calls is not None and found.calls.bare
    return all(sign in source for sign in family.signs) and (bare or not family.bare)


def _corrected_dialect(found: Dialect, family: Family) -> Dialect:
    known = family.dialect
    return Dialect(
        known.thinking or found.thinking,
        known.text or found.text,
        known.calls or found.calls,
        found.also + known.also,
        found.skipped + known.skipped,
    )


def _corrected_thinking(thinking: ThinkingFormat | None, family: Family) -> ThinkingFormat | None:
    known = family.dialect.thinking
    if known:
        always = thinking is None or thinking.always
        return ThinkingFormat(known, "", family.trail, family.after, always=always)
    return replace(thinking, after=family.after) if thinking and family.after else thinking


def _text_span(samples: Samples, thinking: Span | None) -> Span | None:
    """Returns the markers of an answer's text, None if nothing marks it.

    The opening one stands between the turn's beginning and the text, empty thinking left out.
    """
    answer = samples.answer()
    _, _, asked = samples.prompt("high").rpartition(USER)
    before, _, after = answer.partition(ANSWER)
    opening = before[len(common_head(before, asked)) :]
    for marker in (thinking.open, thinking.close) if thinking else ():
        opening = opening.replace(marker, "")
    opening = opening.strip()
    if not markers(opening) or asked.endswith(opening):
        return None
    return Span(opening, next(iter(markers(after)), ""))
