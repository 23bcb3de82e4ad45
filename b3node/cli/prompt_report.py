"""Reports on a rendered prompt and the answer expected after it: a summary, or JSON for machines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from b3node.dialects.dialect import Calls, Hole, KeyedBody, NamedBody, Pattern
from b3node.dialects.outline import Reading
from b3node.workers.render_prompt import RenderedPrompt


def document(prompt: RenderedPrompt) -> dict[str, Any]:
    """Returns the whole report as JSON values; a token is its id, its text, and whether it is special."""
    prepared = prompt.prepared
    outline = prepared.outline
    return {
        "text": prompt.text,
        "tokens": [[token.id, token.text, token.special] for token in prompt.tokens],
        "prompt_tokens": prepared.prompt_tokens,
        "marks": prepared.cache_boundaries,
        "model": msgspec.to_builtins(prompt.traits),
        "ends": _state(prepared.reading),
        "reading": msgspec.to_builtins(prepared.reading),
        "grammar": prepared.grammar,
        "grammar_waits_for_call": outline is not None and outline.triggered,
        "thought_tokens": outline.thinking.budget if outline is not None and outline.thinking else None,
        "loosened": prepared.loosened,
    }


def summary(prompt: RenderedPrompt) -> Iterator[str]:
    """Yields the report in a few lines, without the prompt's text."""
    prepared, traits = prompt.prepared, prompt.traits
    control = sum(token.special for token in prompt.tokens)
    yield f"prompt     {prepared.prompt_tokens} tokens, {control} of them control tokens"
    yield f"template   {'of the model' if traits.template else 'a default one'}; {_placement(prompt)}"
    yield f"reasoning  {_thinking(prompt)}; the prompt ends {_state(prepared.reading)}"
    yield f"calls      {_call_format(prepared.reading)}"
    yield f"grammar    {_grammar(prompt)}"
    for place in prepared.loosened:
        yield f"           not enforced: {place}"


def _placement(prompt: RenderedPrompt) -> str:
    traits = prompt.traits
    system = "a turn of its own" if traits.system == "turn" else "the first user turn"
    functions = "by the template" if traits.tools == "template" else "in the system text"
    return f"instructions in {system}, functions told {functions}"


def _thinking(prompt: RenderedPrompt) -> str:
    traits, outline = prompt.traits, prompt.prepared.outline
    if not traits.reasoning:
        return "none"
    kind = {"switch": "by a switch", "always": "always", "none": "as the model likes"}[traits.control]
    bound = f", at most {outline.thinking.budget} tokens" if outline is not None and outline.thinking else ""
    return f"{kind}{bound}"


def _state(reading: Reading) -> str:
    """Returns the model's phase at the end of the prompt."""
    if reading.thinking:
        return "inside a thought"
    return "inside the answer" if reading.answering else "before the answer"


def _call_format(reading: Reading) -> str:
    calls = reading.dialect.calls
    if calls is None or not reading.calls:
        return "none"
    return repr(f"{calls.section.open}{_pattern(calls.open)}{_body(calls)}{calls.close}{calls.section.close}")


def _body(calls: Calls) -> str:
    body = calls.body
    if isinstance(body, NamedBody):
        return f"NAME{_pattern(body.between)}ARGUMENTS"
    if isinstance(body, KeyedBody):
        return '{"NAME": ARGUMENTS}'
    return f'{{"{body.name}": "NAME", "{body.arguments}": ARGUMENTS}}'


def _pattern(pattern: Pattern) -> str:
    return "".join(part.kind.upper() if isinstance(part, Hole) else part for part in pattern)


def _grammar(prompt: RenderedPrompt) -> str:
    grammar, outline = prompt.prepared.grammar, prompt.prepared.outline
    if grammar is None:
        return "none"
    begins = "at a call" if outline is not None and outline.triggered else "with the answer"
    return f"{len(grammar.splitlines())} rules, {len(grammar)} characters, from where it begins {begins}"
