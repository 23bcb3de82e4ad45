"""What a template writes around words that are known: assistant turns of small conversations, cut out.

A spelling can be read only where it stands alone, so each sample is a user's word and one assistant turn behind
it. Some templates write a turn's calls only when results follow; then the sample ends where the first result
begins. The words are such that no template contains them, and the names of arguments are in alphabetical order,
because some templates sort them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from b3node.contract.request import Effort, FunctionTool, TextPart
from b3node.errors import Refusal
from b3node.prompt.template.adapt import fit
from b3node.prompt.template.capabilities import Abilities
from b3node.prompt.template.chat_template import ChatTemplate
from b3node.prompt.template.conversation import AssistantTurn, Call, Conversation, ToolTurn, Turn, UserTurn
from b3node.prompt.template.reasoning_variables import variables
from b3node.prompt.tokens.provenance import plain

ANSWER: Final = "godwit"
THOUGHT: Final = "bittern"
NAME: Final = "avocet"
KEY: Final = "plover"
VALUE: Final = "turnstone"
NUMBER_KEY: Final = "whimbrel"
NUMBER: Final = 30571

_USER: Final = UserTurn((TextPart("curlew"),))
_NEXT: Final = UserTurn((TextPart("dunlin"),))
_PROPERTIES: Final = {
    KEY: {"type": "string", "description": "sanderling"},
    NUMBER_KEY: {"type": "integer", "description": "sanderling"},
}
_TOOL: Final = FunctionTool(NAME, "knotbird", {"type": "object", "properties": _PROPERTIES})
_SAID: Final = AssistantTurn(ANSWER)
_RESULT: Final = "redshank"
_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LIMIT: Final = 1 << 20


class Samples:
    """Lets one template write.

    Args:
        template: asked for a dozen short conversations.
        able: what it was found to be able to write.
    """

    def __init__(self, template: ChatTemplate, able: Abilities) -> None:
        self._template = template
        self.able = able

    @property
    def source(self) -> str:
        """The template's text."""
        return self._template.source

    def answer(self) -> str:
        """A turn that says `ANSWER` and is the last, or one that is followed by a user's."""
        return self._first((_USER, _SAID), (_USER, _SAID, _NEXT), words=(ANSWER,))

    def answer_and_more(self) -> str:
        """A turn that says `ANSWER`, up to what the user says next."""
        return self._first((_USER, _SAID, _NEXT), words=(ANSWER,))

    def thought(self) -> str:
        """A turn with a thought and an answer, or a call if thoughts are written beside calls alone; "" if nowhere."""
        written = self._first((_USER, AssistantTurn(ANSWER, THOUGHT)), words=(THOUGHT, ANSWER))
        if written or not self.able.calls:
            return written
        beside = AssistantTurn("", THOUGHT, (_call(1, {KEY: VALUE}),))
        return self._first((_USER, beside), (_USER, beside, _result(1)), words=(THOUGHT, NAME))

    def calls(self, *arguments: dict[str, object]) -> str:
        """A turn of calls of `NAME`; "" if the template writes none."""
        if not self.able.calls:
            return ""
        turn = AssistantTurn(calls=tuple(_call(place, given) for place, given in enumerate(arguments, 1)))
        results = tuple(_result(place) for place in range(1, len(arguments) + 1))
        return self._first((_USER, turn), (_USER, turn, *results), words=(NAME, KEY))

    def prompt(self, effort: Effort, told: Mapping[str, object] | None = None) -> str:
        """All of the prompt that asks for an answer to one user's word, `told` beside what an effort tells."""
        return self._write((_USER,), variables(effort, self.source) | dict(told or {}))

    def _first(self, *conversations: tuple[Turn, ...], words: tuple[str, ...]) -> str:
        """The assistant's turn of the first conversation in which all words are written; "" if there is none."""
        for turns in conversations:
            written = self._write(turns, variables("high", self.source))
            cut = _cut(written)
            if all(word in cut for word in words):
                return cut
        return ""

    def _write(self, turns: tuple[Turn, ...], told: dict[str, object]) -> str:
        """All that the template makes of a conversation; "" if it fails."""
        tools = (_TOOL,) if self.able.tools else ()
        fitting = fit(Conversation("", turns, tools), self.able)
        if self.able.no_tools == "empty" and not fitting.tools:
            told = {**told, "tools": []}
        try:
            return plain(self._template.write(fitting, told, _NOON, _LIMIT))
        except Refusal:
            return ""


def _cut(written: str) -> str:
    """What stands between the user's word and the next one that is not the assistant's."""
    _, _, turn = written.rpartition("curlew")
    ends = [place for word in (_RESULT, "dunlin") if (place := turn.find(word)) >= 0]
    return turn[: min(ends, default=len(turn))]


def _call(place: int, arguments: dict[str, object]) -> Call:
    return Call(f"call{place:05}", NAME, arguments)


def _result(place: int) -> ToolTurn:
    return ToolTurn(f"call{place:05}", NAME, _RESULT)
