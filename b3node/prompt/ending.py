"""Ends a prompt: inside thinking, after empty thinking, inside the answer, or in the middle of a marker.

A template may open thinking for the model, close empty thinking, or leave both to the model, for any
variables. The contract decides when a model thinks (`reasoning_variables.enables_thinking`), so the missing
part is added to the rendered prompt, spelled as the template would:

- no thinking, though the template opens it: it is closed at once;
- no thinking, though the model begins by itself: empty thinking is added;
- thinking, with a grammar for the answer: it is opened, because a grammar would keep the model from it.

Only the template's own text counts: clients' characters are in another alphabet here (see `provenance`).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from b3node.dialects.dialect import Dialect
from b3node.prompt.probe.dialect import Learned
from b3node.prompt.probe.thinking_format import ThinkingFormat


class PromptEnd(msgspec.Struct, frozen=True):
    """A rendered prompt and its end, in fields of `outline.Reading`, `begun` as text."""

    rendered: str
    """The prompt as the template wrote it, with the added end."""
    thinking: bool = False
    """Whether it ends inside thinking."""
    answering: bool = False
    """Whether it ends inside the answer's marked text."""
    begun: str = ""
    """The beginning of a marker that it ends with."""


def end_prompt(rendered: str, learned: Learned, *, thinks: bool, grammar: bool, calls: bool) -> PromptEnd:
    """Returns a rendered prompt with the end that the request asks for.

    Args:
        rendered: the template's output.
        learned: the findings about the template.
        thinks: whether the model is to think.
        grammar: whether a grammar applies right after thinking.
        calls: whether the answer must be a call.
    """
    form, text = learned.thinking, learned.dialect.text
    if form:
        rendered = (
            _open_thinking(rendered, form, grammar=grammar) if thinks else _close_thinking(rendered, form)
        )
    if form and _in_thinking(rendered, form):
        return PromptEnd(rendered, thinking=True)
    answering = text is not None and bool(text.open) and rendered.endswith(text.open)
    if text and answering and calls:
        return PromptEnd(rendered + text.close)
    return PromptEnd(
        rendered, answering=answering, begun="" if answering else _marker_beginning(rendered, learned.dialect)
    )


def _close_thinking(rendered: str, form: ThinkingFormat) -> str:
    """Leaves thinking, or adds empty thinking if the model would think by itself."""
    if _in_thinking(rendered, form):
        return rendered + form.trail + form.span.close + form.after
    if not form.always or _after_thinking(rendered, form):
        return rendered
    return _with_open(rendered, form) + form.trail + form.span.close + form.after


def _open_thinking(rendered: str, form: ThinkingFormat, *, grammar: bool) -> str:
    """Opens thinking, if a grammar would keep the model from it."""
    by_itself = form.always or form.switch
    if not (grammar and by_itself) or _in_thinking(rendered, form) or _after_thinking(rendered, form):
        return rendered
    return _with_open(rendered, form)


def _with_open(rendered: str, form: ThinkingFormat) -> str:
    opening = form.span.open
    return rendered + opening[_overlap(rendered, opening) :] + form.lead


def _in_thinking(rendered: str, form: ThinkingFormat) -> bool:
    return rendered.rstrip().endswith(form.span.open.rstrip())


def _after_thinking(rendered: str, form: ThinkingFormat) -> bool:
    """Returns whether thinking was closed last.

    A closing marker that also ends other parts of turns counts only after an opening one.
    """
    before = rendered.rstrip().removesuffix(form.after.strip()).rstrip()
    if not before.endswith(form.span.close):
        return False
    inside = before.removesuffix(form.span.close)
    return not form.after.strip() or _in_thinking(inside, form)


def _marker_beginning(rendered: str, dialect: Dialect) -> str:
    """Returns the longest end of the prompt that begins a marker."""
    longest = max((_overlap(rendered, marker) for marker in _opening_literals(dialect)), default=0)
    return rendered[len(rendered) - longest :]


def _overlap(rendered: str, marker: str) -> int:
    sizes = range(min(len(rendered), len(marker)), 1, -1)
    return next((size for size in sizes if rendered.endswith(marker[:size])), 0)


def _opening_literals(dialect: Dialect) -> Iterator[str]:
    for span in (dialect.thinking, dialect.text):
        if span:
            yield span.open
    yield from dialect.skipped
    for calls in (dialect.calls, *dialect.also):
        if calls:
            first = calls.open[0] if calls.open else ""
            yield calls.section.open + (first if isinstance(first, str) else "")
