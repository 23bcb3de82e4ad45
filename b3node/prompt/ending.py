r"""How a prompt ends: in a thought, behind an empty one, inside the answer, or in the middle of a marker.

A template may open a thought for the model, close an empty one, or leave both to the model, whatever it is told.
The contract says when a model thinks (`effort.reasons`), so what is missing is added to the rendered prompt, spelled
as the template would have spelled it:

- not to think, though the template opens a thought: it is closed at once;
- not to think, though the model does so by itself: an empty thought is put into its mouth;
- to think, with a grammar for what follows: the thought is opened, because a grammar would keep the model from it.

Only what the template wrote itself counts: a client's characters are in another alphabet here (see `provenance`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from b3node.dialects.dialect import Dialect
from b3node.prompt.probe.dialect import Learned
from b3node.prompt.probe.thinking_format import ThinkingFormat


class PromptEnd(msgspec.Struct, frozen=True):
    """A rendered prompt and how it ends; the fields are those of `outline.Reading`, `begun` as text."""

    rendered: str
    thinking: bool = False
    answering: bool = False
    begun: str = ""


def end_prompt(rendered: str, learned: Learned, *, thinks: bool, grammar: bool, calls: bool) -> PromptEnd:
    """A rendered prompt, brought to such an end as the request asks for.

    Args:
        rendered: what the template wrote.
        learned: what is known of it.
        thinks: whether the model is to think.
        grammar: whether a grammar holds from the beginning of what follows the thought.
        calls: whether that is a call in any case.
    """
    form, text = learned.thinking, learned.dialect.text
    if form:
        rendered = _opened(rendered, form, grammar=grammar) if thinks else _closed(rendered, form)
    if form and _in_thought(rendered, form):
        return PromptEnd(rendered, thinking=True)
    answering = text is not None and bool(text.open) and rendered.endswith(text.open)
    if text and answering and calls:
        return PromptEnd(rendered + text.close)
    return PromptEnd(
        rendered, answering=answering, begun="" if answering else _begun(rendered, learned.dialect)
    )


def _closed(rendered: str, form: ThinkingFormat) -> str:
    """Not in a thought, and behind an empty one if the model would think by itself."""
    if _in_thought(rendered, form):
        return rendered + form.trail + form.span.close + form.after
    if not form.always or _behind_thought(rendered, form):
        return rendered
    return _with_open(rendered, form) + form.trail + form.span.close + form.after


def _opened(rendered: str, form: ThinkingFormat, *, grammar: bool) -> str:
    """In a thought, if a grammar would keep the model from beginning one by itself."""
    by_itself = form.always or form.switch
    if not (grammar and by_itself) or _in_thought(rendered, form) or _behind_thought(rendered, form):
        return rendered
    return _with_open(rendered, form)


def _with_open(rendered: str, form: ThinkingFormat) -> str:
    opening = form.span.open
    return rendered + opening[_overlap(rendered, opening) :] + form.lead


def _in_thought(rendered: str, form: ThinkingFormat) -> bool:
    return rendered.rstrip().endswith(form.span.open.rstrip())


def _behind_thought(rendered: str, form: ThinkingFormat) -> bool:
    """Whether a thought was closed last; what ends other parts of turns too does so only behind an opening."""
    before = rendered.rstrip().removesuffix(form.after.strip()).rstrip()
    if not before.endswith(form.span.close):
        return False
    inside = before.removesuffix(form.span.close)
    return not form.after.strip() or _in_thought(inside, form)


def _begun(rendered: str, dialect: Dialect) -> str:
    """The longest end of the prompt that a marker begins with."""
    longest = max((_overlap(rendered, marker) for marker in _beginnings(dialect)), default=0)
    return rendered[len(rendered) - longest :]


def _overlap(rendered: str, marker: str) -> int:
    sizes = range(min(len(rendered), len(marker)), 1, -1)
    return next((size for size in sizes if rendered.endswith(marker[:size])), 0)


def _beginnings(dialect: Dialect) -> Iterator[str]:
    for span in (dialect.thought, dialect.text):
        if span:
            yield span.open
    yield from dialect.skipped
    for calls in (dialect.calls, *dialect.also):
        if calls:
            first = calls.open[0] if calls.open else ""
            yield calls.section.open + (first if isinstance(first, str) else "")
