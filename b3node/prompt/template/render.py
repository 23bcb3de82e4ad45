"""Rendering of a conversation, with fallbacks for templates that fail on it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from b3node.dialects.dialect import GENERIC, Calls
from b3node.errors import Refusal
from b3node.prompt.template.adapt import adapt
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import Conversation


def render(
    conversation: Conversation,
    template: ChatTemplate,
    capabilities: TemplateCapabilities,
    variables: Mapping[str, object],
    now: datetime,
    limit: int,
    calls: Calls = GENERIC,
    *,
    explain_calls: bool = False,
) -> str:
    """Returns a conversation as `ChatTemplate.write` writes it after `adapt`.

    `calls` and `explain_calls` are those of `adapt`. A probe cannot try every conversation (some templates
    never return from a schema's type list). A template that fails on this one is tried again with the
    functions as text, and last with nothing but user and assistant turns that alternate.

    Raises:
        Refusal: the last try failed too; see `ChatTemplate.write`.
    """

    def write(tried: TemplateCapabilities) -> str:
        adapted = adapt(conversation, tried, calls, explain_calls=explain_calls)
        no_tools = capabilities.no_tools == "empty" and not adapted.tools
        return template.write(adapted, {**variables, "tools": []} if no_tools else variables, now, limit)

    for tried in (capabilities, replace(capabilities, tools=False)):
        with suppress(Refusal):
            return write(tried)
    return write(TemplateCapabilities(no_tools=capabilities.no_tools))
