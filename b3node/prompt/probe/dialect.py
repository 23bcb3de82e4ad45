"""A model's dialect, from its template: what was read off its own words, corrected by the table of families."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from b3node.dialects.dialect import GENERIC, Calls, Dialect, Span
from b3node.prompt.probe.call_format import read_calls
from b3node.prompt.probe.families import FAMILIES, Family
from b3node.prompt.probe.literals import common_head, markers
from b3node.prompt.probe.samples import ANSWER, Samples
from b3node.prompt.probe.thinking_format import ThoughtForm, judged, read_thoughts
from b3node.prompt.template.capabilities import Abilities
from b3node.prompt.template.chat_template import ChatTemplate

_TAGS: Final = Span("<think>", "</think>")


class Learned(msgspec.Struct, frozen=True):
    """What a template says of its model. `dialect.calls` is always set: at worst it is `GENERIC`.

    `thoughts` is None for a model that knows of none. `explained` says that a prompt has to tell the model how it
    calls, because the template does not.
    """

    dialect: Dialect
    thoughts: ThoughtForm | None
    explained: bool

    @property
    def calls(self) -> Calls:
        """How calls are spelled."""
        return self.dialect.calls or GENERIC


def learn(template: ChatTemplate, able: Abilities) -> Learned:
    """The dialect of a template that has these abilities; it writes about twenty short conversations for that."""
    samples = Samples(template, replace(able, calls=True, results=True))
    thoughts = read_thoughts(samples)
    span = thoughts.span if thoughts else None
    found = Dialect(thought=span, text=_text(samples, span), calls=read_calls(samples, span))
    for family in FAMILIES:
        if _is(family, found, template.source):
            found, thoughts = _corrected(found, family), _spelled(thoughts, family)
    explained = not able.tools or found.calls is None
    return Learned(
        replace(found, calls=found.calls or GENERIC), thoughts and judged(thoughts, samples), explained
    )


def with_tags(learned: Learned) -> Learned:
    """The same for a vocabulary that has `<think>` and `</think>`: its model thinks, whatever its template says."""
    if learned.dialect.thought is not None:
        return learned
    return replace(learned, dialect=replace(learned.dialect, thought=_TAGS), thoughts=ThoughtForm(_TAGS))


def _is(family: Family, found: Dialect, source: str) -> bool:
    bare = found.calls is not None and found.calls.bare
    return all(sign in source for sign in family.signs) and (bare or not family.bare)


def _corrected(found: Dialect, family: Family) -> Dialect:
    known = family.dialect
    return Dialect(
        known.thought or found.thought,
        known.text or found.text,
        known.calls or found.calls,
        found.also + known.also,
        found.skipped + known.skipped,
    )


def _spelled(thoughts: ThoughtForm | None, family: Family) -> ThoughtForm | None:
    known = family.dialect.thought
    if known:
        always = thoughts is None or thoughts.always
        return ThoughtForm(known, "", family.trail, family.after, always=always)
    return replace(thoughts, after=family.after) if thoughts and family.after else thoughts


def _text(samples: Samples, thought: Span | None) -> Span | None:
    """What marks an answer's text: what stands between the turn's beginning, empty thoughts left out, and the text."""
    answer = samples.answer()
    _, _, asked = samples.prompt("high").rpartition("curlew")
    before, _, after = answer.partition(ANSWER)
    opening = before[len(common_head(before, asked)) :]
    for marker in (thought.open, thought.close) if thought else ():
        opening = opening.replace(marker, "")
    opening = opening.strip()
    if not markers(opening) or asked.endswith(opening):
        return None
    return Span(opening, next(iter(markers(after)), ""))
