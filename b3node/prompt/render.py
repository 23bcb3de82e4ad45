"""A conversation, written by a template that may not want to."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from b3node.dialects.dialect import GENERIC, Calls
from b3node.errors import Refusal
from b3node.prompt.abilities import Abilities
from b3node.prompt.fit import fit
from b3node.prompt.template import ChatTemplate
from b3node.prompt.turns import Conversation


def render(
    conversation: Conversation,
    template: ChatTemplate,
    able: Abilities,
    variables: Mapping[str, object],
    now: datetime,
    limit: int,
    calls: Calls = GENERIC,
) -> str:
    """What `ChatTemplate.write` makes of a conversation after `fit`, for which `calls` is the spelling of calls.

    A probe cannot try every conversation (some templates never return from a schema's type list). If the
    template fails on this one, it is asked again with the functions as text, and at last for nothing but user
    and assistant turns that alternate. Raises `Refusal` like `ChatTemplate.write`, if that fails too.
    """
    ladder = (able, replace(able, tools=False), Abilities(no_tools=able.no_tools))
    for rung in ladder[:-1]:
        try:
            return _written(conversation, template, rung, variables, now, limit, calls)
        except Refusal:
            continue
    return _written(conversation, template, ladder[-1], variables, now, limit, calls)


def _written(
    conversation: Conversation,
    template: ChatTemplate,
    able: Abilities,
    variables: Mapping[str, object],
    now: datetime,
    limit: int,
    calls: Calls,
) -> str:
    fitting = fit(conversation, able, calls)
    if able.no_tools == "empty" and not fitting.tools:
        variables = {**variables, "tools": []}
    return template.write(fitting, variables, now, limit)
