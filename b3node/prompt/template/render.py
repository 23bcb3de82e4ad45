"""A conversation, written by a template that may not want to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from b3node.dialects.dialect import GENERIC, Calls
from b3node.errors import Refusal
from b3node.prompt.template.adapt import fit
from b3node.prompt.template.capabilities import Abilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import Conversation


def render(
    conversation: Conversation,
    template: ChatTemplate,
    able: Abilities,
    variables: Mapping[str, object],
    now: datetime,
    limit: int,
    calls: Calls = GENERIC,
    *,
    explained: bool = False,
) -> str:
    """What `ChatTemplate.write` makes of a conversation after `fit`, which `calls` and `explained` are for.

    A probe cannot try every conversation (some templates never return from a schema's type list). If the
    template fails on this one, it is asked again with the functions as text, and at last for nothing but user
    and assistant turns that alternate. Raises `Refusal` like `ChatTemplate.write`, if that fails too.
    """

    def written(rung: Abilities) -> str:
        fitting = fit(conversation, rung, calls, explained=explained)
        told = {**variables, "tools": []} if able.no_tools == "empty" and not fitting.tools else variables
        return template.write(fitting, told, now, limit)

    for rung in (able, replace(able, tools=False)):
        with suppress(Refusal):
            return written(rung)
    return written(Abilities(no_tools=able.no_tools))
