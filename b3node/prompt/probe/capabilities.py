"""What a chat template can write, found out by letting it write.

Templates refuse, drop or garble what their authors did not think of: a system message, two users in a row,
the second of two calls, arguments that are text. None of that can be read off the source, and a refusal at
the tenth turn of somebody's agent is too late; so each model's template writes a few small conversations when
it is loaded, and `adapt` bends every request by what came of them. A thing counts as written if a word that
only it contains is in the output.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import product
from typing import Final, Literal, get_args

from msgspec.structs import replace

from b3node.contract.request import Effort, FunctionTool, TextPart
from b3node.errors import Refusal
from b3node.prompt.template.capabilities import ArgumentsForm, TemplateCapabilities
from b3node.prompt.template.chat_template import BrokenTemplateError, ChatTemplate
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ThinkingPlacement,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.template.reasoning_variables import reasoning_variables
from b3node.prompt.template.text_beside_calls import TEXT_PLACEMENTS, TextPlacement, place_text
from b3node.prompt.tokens.provenance import plain

# What probes say: words that no template contains.
_SYSTEM, _FIRST, _SECOND, _ANSWER, _THINKING = "lapwing", "curlew", "dunlin", "godwit", "bittern"
_FUNCTION, _ABOUT, _NAME, _VALUE, _OTHER = "avocet", "knotbird", "plover", "turnstone", "whimbrel"
_RESULT, _OTHER_RESULT = "redshank", "sandpiper"

_USER: Final = UserTurn((TextPart(_FIRST),))
_AGAIN: Final = UserTurn((TextPart(_SECOND),))
_SAID: Final = AssistantTurn(_ANSWER)
_TOLD: Final = ToolTurn("call00001", _FUNCTION, _RESULT)
_TOLD_TOO: Final = ToolTurn("call00002", _FUNCTION, _OTHER_RESULT)
_PROPERTY: Final = {"type": "string", "description": _NAME}
_TOOL: Final = FunctionTool(_FUNCTION, _ABOUT, {"type": "object", "properties": {_NAME: _PROPERTY}})
_NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LIMIT: Final = 1 << 20
_DIGITS: Final = re.compile(r"\d+")
_SHOWN: Final = re.compile("""['"]type['"]: ?['"]th""")
_EFFORTS: Final[tuple[Effort, ...]] = ("none", "high")


def probe(template: ChatTemplate) -> TemplateCapabilities:
    """The abilities of a template; it writes some thirty short conversations for that.

    Raises:
        BrokenTemplateError: it does not even write what a user says.
    """
    return _Probe(template).abilities()


class _Probe:
    """A template, how it wants to be told that there are no tools, and how it takes arguments and thoughts."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._thinking_placement: ThinkingPlacement = "field"
        self._no_tools: Literal["none", "empty"] = "none"
        if not self._writes([_USER], _FIRST):
            self._no_tools = "empty"
            if not self._writes([_USER], _FIRST):
                raise BrokenTemplateError("the model's chat template does not write what a user says")
        self._arguments: ArgumentsForm = "mapping"
        if not self._writes_arguments():
            self._arguments = "text"
        self._thinking_placement = next(filter(self._writes_thinking, get_args(ThinkingPlacement)), "field")

    def abilities(self) -> TemplateCapabilities:
        turns: list[Turn] = [_USER, self._call(_VALUE), _TOLD]
        both = self._call(_VALUE, _OTHER)
        alike = self._rounds_alike()
        text_beside_calls = self._way(TEXT_PLACEMENTS[:-1], [_TOLD])
        return TemplateCapabilities(
            system=self._writes([_USER], _SYSTEM, system=_SYSTEM)
            and (not self._writes(turns, _RESULT) or self._writes(turns, _SYSTEM, system=_SYSTEM)),
            users_in_a_row=self._writes([_USER, _AGAIN], _FIRST, _SECOND),
            assistant_first=self._writes([_SAID, _AGAIN], _ANSWER, _SECOND),
            no_user=self._writes([_SAID], _ANSWER),
            empty_answer=self._writes([_USER, AssistantTurn(), _AGAIN], _FIRST, _SECOND),
            user_after_result=self._writes([*turns, _AGAIN], _RESULT, _SECOND),
            tools=self._writes([_USER], _FUNCTION, _ABOUT, _NAME, tools=True),
            no_tools=self._no_tools,
            calls=self._writes_arguments() and alike,
            results=self._writes(turns, _RESULT) and alike,
            parallel=self._writes([_USER, both, _TOLD, _TOLD_TOO], _VALUE, _OTHER, _RESULT, _OTHER_RESULT),
            arguments=self._arguments,
            loose_arguments=self._writes([_USER, _called(f'["{_VALUE}"]'), _TOLD], _VALUE),
            text_beside_calls=text_beside_calls,
            old_text_beside_calls=self._way(
                (text_beside_calls, *TEXT_PLACEMENTS[:-1]),
                [_TOLD, AssistantTurn(_OTHER), _AGAIN],
                _OTHER,
                _SECOND,
            ),
            thinking_placement=self._thinking_placement,
            answer_last=self._answers_again(),
            reasoning=self._written([_USER], effort="high") != self._written([_USER]),
        )

    def _writes_arguments(self) -> bool:
        """Whether a call's arguments are written, and not as Python shows a dictionary."""
        written = self._written([_USER, self._call(_VALUE), _TOLD])
        return _NAME in written and _VALUE in written and f"{{'{_NAME}'" not in written

    def _writes_thinking(self, form: ThinkingPlacement) -> bool:
        """Whether the thought before a call is written, if it is given in this form, and not as Python shows a list."""
        self._thinking_placement = form
        written = self._written([_USER, self._thinking(""), _TOLD], effort="high")
        return all(word in written for word in (_THINKING, _VALUE, _RESULT)) and not _SHOWN.search(written)

    def _rounds_alike(self) -> bool:
        """Whether a second round is spelled like the first: some templates forget that they have begun a list."""
        turns: list[Turn] = [_USER, self._call(_VALUE), _TOLD, _SAID]
        _, *rounds = self._written([*turns, *turns, _USER]).split(_FIRST)
        return len(rounds) < 2 or _DIGITS.sub("0", rounds[0]) == _DIGITS.sub("0", rounds[1])

    def _way(self, ways: tuple[TextPlacement, ...], after: list[Turn], *words: str) -> TextPlacement:
        """The first way in which what is said beside a call is written before the call and what comes after it."""
        for way in ways:
            if self._tells(way, after, _ANSWER, _VALUE, _RESULT, *words):
                return way
        return "apart"

    def _tells(self, way: TextPlacement, after: list[Turn], *words: str) -> bool:
        """Whether all is written in order, whatever the effort, with a thought and without one."""
        for effort, thought in product(_EFFORTS, ("", _THINKING)):
            turns = [_USER, *place_text(self._thinking(_ANSWER, thought), way), *after]
            written = self._written(turns, effort=effort)
            places = [written.find(word) for word in words]
            if places[0] < 0 or places != sorted(places):
                return False
        return True

    def _answers_again(self) -> bool:
        """Whether a conversation that ends with an answer is followed by the same as one that ends with a question."""
        _, _, asked = self._written([_USER]).rpartition(_FIRST)
        _, _, answered = self._written([_USER, _SAID]).rpartition(_ANSWER)
        _, _, bare = self._written([_USER], add_generation_prompt=False).rpartition(_FIRST)
        prompt = asked.removeprefix(bare)
        return answered.endswith(asked) or (prompt != "" and answered.endswith(prompt))

    def _call(self, *values: str) -> AssistantTurn:
        if self._arguments == "text":
            return _called(*(f'{{"{_NAME}": "{value}"}}' for value in values))
        return _called(*(dict[str, object]({_NAME: value}) for value in values))

    def _thinking(self, text: str, thought: str = _THINKING) -> AssistantTurn:
        return replace(self._call(_VALUE), text=text, reasoning=thought)

    def _writes(
        self, turns: list[Turn], *words: str, system: str = "", tools: bool = False, effort: Effort = "none"
    ) -> bool:
        written = self._written(turns, system=system, tools=tools, effort=effort)
        return all(word in written for word in words)

    def _written(
        self,
        turns: list[Turn],
        *,
        system: str = "",
        tools: bool = False,
        effort: Effort = "none",
        **variables: object,
    ) -> str:
        """What the template makes of a conversation; nothing if it fails."""
        conversation = Conversation(system, tuple(turns), (_TOOL,) if tools else (), self._thinking_placement)
        told = reasoning_variables(effort, self._template.source) | variables
        if self._no_tools == "empty" and not tools:
            told["tools"] = []
        try:
            return plain(self._template.write(conversation, told, _NOON, _LIMIT))
        except Refusal:
            return ""


def _called(*arguments: dict[str, object] | str) -> AssistantTurn:
    return AssistantTurn(
        calls=tuple(ToolCall(f"call{n:05}", _FUNCTION, value) for n, value in enumerate(arguments, start=1))
    )
