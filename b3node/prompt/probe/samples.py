"""Samples of a template's output around known words: assistant turns of small conversations, cut out.

A spelling can be read only where it stands alone, so each sample is a user's word and one assistant turn
after it. Some templates write a turn's calls only when results follow; then the sample ends where the first
result begins. No template contains the words, and the names of arguments are in alphabetical order, because
some templates sort them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from b3node.contract.request import Effort, FunctionTool, TextPart
from b3node.errors import Refusal
from b3node.prompt.template.adapt import adapt
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.template.reasoning_variables import reasoning_variables
from b3node.prompt.tokens.provenance import plain

USER: Final = "curlew"
ANSWER: Final = "godwit"
THINKING: Final = "bittern"
NAME: Final = "avocet"
KEY: Final = "plover"
VALUE: Final = "turnstone"
NUMBER_KEY: Final = "whimbrel"
NUMBER: Final = 30571

_NEXT: Final = "dunlin"
_RESULT: Final = "redshank"

_USER_TURN: Final = UserTurn((TextPart(USER),))
_NEXT_TURN: Final = UserTurn((TextPart(_NEXT),))
_PROPERTIES: Final = {
    KEY: {"type": "string", "description": "sanderling"},
    NUMBER_KEY: {"type": "integer", "description": "sanderling"},
}
_TOOL: Final = FunctionTool(NAME, "knotbird", {"type": "object", "properties": _PROPERTIES})
_ANSWER_TURN: Final = AssistantTurn(ANSWER)
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_MAX_CHARS: Final = 1 << 20


class Samples:
    """Writer of samples with one template.

    Args:
        template: called for a dozen short conversations.
        capabilities: the capabilities that it was found to have.
    """

    def __init__(self, template: ChatTemplate, capabilities: TemplateCapabilities) -> None:
        self._template = template
        self.capabilities = capabilities

    @property
    def source(self) -> str:
        """The template's source."""
        return self._template.source

    def answer(self) -> str:
        """Returns a turn that says `ANSWER` and is the last, or else one before a user's."""
        turns = (_USER_TURN, _ANSWER_TURN)
        return self._first(turns, (*turns, _NEXT_TURN), words=(ANSWER,))

    def answer_and_more(self) -> str:
        """Returns a turn that says `ANSWER`, up to the user's next word."""
        return self._first((_USER_TURN, _ANSWER_TURN, _NEXT_TURN), words=(ANSWER,))

    def thinking(self) -> str:
        """Returns a turn with thinking and an answer, or a call if only turns with calls think; or ""."""
        written = self._first((_USER_TURN, AssistantTurn(ANSWER, THINKING)), words=(THINKING, ANSWER))
        if written or not self.capabilities.calls:
            return written
        calling = (_USER_TURN, AssistantTurn("", THINKING, (_call(1, {KEY: VALUE}),)))
        return self._first(calling, (*calling, _result(1)), words=(THINKING, NAME))

    def calls(self, *arguments: dict[str, object]) -> str:
        """Returns a turn of calls of `NAME`; "" if the template writes none."""
        if not self.capabilities.calls:
            return ""
        turn = AssistantTurn(calls=tuple(_call(place, given) for place, given in enumerate(arguments, 1)))
        results = tuple(_result(place) for place in range(1, len(arguments) + 1))
        return self._first((_USER_TURN, turn), (_USER_TURN, turn, *results), words=(NAME, KEY))

    def prompt(self, effort: Effort, further: Mapping[str, object] | None = None) -> str:
        """Returns the whole prompt after one user's word, with the effort's and `further` variables."""
        return self._write((_USER_TURN,), reasoning_variables(effort, self.source) | dict(further or {}))

    def _first(self, *conversations: tuple[Turn, ...], words: tuple[str, ...]) -> str:
        """Returns the assistant's turn of the first conversation that has all words in it; "" if none has."""
        for turns in conversations:
            written = self._write(turns, reasoning_variables("high", self.source))
            cut = _cut(written)
            if all(word in cut for word in words):
                return cut
        return ""

    def _write(self, turns: tuple[Turn, ...], variables: dict[str, object]) -> str:
        """Returns all that the template writes for a conversation; "" if it fails."""
        tools = (_TOOL,) if self.capabilities.tools else ()
        adapted = adapt(Conversation("", turns, tools), self.capabilities)
        if self.capabilities.no_tools == "empty" and not adapted.tools:
            variables = {**variables, "tools": []}
        try:
            return plain(self._template.write(adapted, variables, _NOW, _MAX_CHARS))
        except Refusal:
            return ""


def _cut(written: str) -> str:
    """Returns the text between the user's word and the next one that is not the assistant's."""
    _, _, turn = written.rpartition(USER)
    ends = [place for word in (_RESULT, _NEXT) if (place := turn.find(word)) >= 0]
    return turn[: min(ends, default=len(turn))]


def _call(place: int, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(f"call{place:05}", NAME, arguments)


def _result(place: int) -> ToolTurn:
    return ToolTurn(f"call{place:05}", NAME, _RESULT)
