"""A template's input for a request, as plain JSON: the same that any implementation of chat templates
takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from msgspec.structs import replace

from b3node.contract.request import Effort
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import Conversation
from b3node.prompt.template.messages import messages, tools
from b3node.prompt.template.reasoning_variables import reasoning_variables
from b3node.prompt.template.render import render
from b3node.prompt.template.sandbox import Sandbox, to_json
from b3node.prompt.tokens.provenance import plain
from tests.prompt.corpus import compiled, learned, source

NOW = datetime(2026, 11, 9, 8, 5, tzinfo=UTC)
LIMIT = 4_000_000


@dataclass
class Recorder:
    """Recorder of the last input of a template; a stand-in for a `ChatTemplate`."""

    template: ChatTemplate
    given: dict[str, Any] = field(default_factory=dict)

    def write(self, conversation: Conversation, told: dict[str, object], now: datetime, limit: int) -> str:
        declared = plain_value(tools(conversation.tools))
        self.given = {
            "messages": plain_value(messages(conversation)),
            "tools": declared,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "functions": to_json([tool["function"] for tool in declared or []], indent=4),
            "datetime": now.strftime("%B %d %Y"),
            **told,
        }
        return self.template.write(conversation, told, now, limit)


@dataclass(frozen=True)
class Written:
    """A prompt as text in both alphabets, and all that its template was given for it, as plain JSON."""

    text: str
    given: dict[str, Any]

    @property
    def plain(self) -> str:
        return plain(self.text)


def write(name: str, conversation: Conversation, effort: Effort | None) -> Written:
    """Returns a conversation as the template of that name writes it."""
    template, capabilities = compiled(name)
    found = learned(name)
    recorder = Recorder(template)
    told = reasoning_variables(effort, source(name))
    capabilities = replace(capabilities, tools=capabilities.tools and not found.explain_calls)
    text = render(conversation, recorder, capabilities, told, NOW, LIMIT, found.calls)  # type: ignore[arg-type]  # like one
    return Written(text, recorder.given)


def written_plainly(name: str, given: dict[str, Any]) -> str:
    """Returns the template's output for the same values in plain characters."""
    context = {"documents": None, "add_generation_prompt": True, "strftime_now": NOW.strftime, **given}
    return str(_plainly(name).render(context))


@cache
def _plainly(name: str) -> Any:
    return Sandbox().from_string(source(name))


def plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(name): plain_value(member) for name, member in value.items()}
    return [plain_value(element) for element in value] if isinstance(value, list) else value
