"""Finds the capabilities of a chat template by letting it write.

Templates refuse, drop or garble constructs that their authors did not foresee: a system message, two users in
a row, the second of two calls, arguments that are text. None of that can be read off the source, and a
refusal at the tenth turn of an agent is too late; so each model's template writes a few small conversations
when it is loaded, and `adapt` changes every request by the outcome. A thing counts as written if a word that
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

# The words of probes: no template contains them.
_SYSTEM, _FIRST, _SECOND, _ANSWER, _THINKING = "lapwing", "curlew", "dunlin", "godwit", "bittern"
_FUNCTION, _ABOUT, _NAME, _VALUE, _OTHER = "avocet", "knotbird", "plover", "turnstone", "whimbrel"
_RESULT, _OTHER_RESULT = "redshank", "sandpiper"

_USER: Final = UserTurn((TextPart(_FIRST),))
_AGAIN: Final = UserTurn((TextPart(_SECOND),))
_ANSWERED: Final = AssistantTurn(_ANSWER)
_RETURNED: Final = ToolTurn("call00001", _FUNCTION, _RESULT)
_OTHER_RETURNED: Final = ToolTurn("call00002", _FUNCTION, _OTHER_RESULT)
_PROPERTY: Final = {"type": "string", "description": _NAME}
_TOOL: Final = FunctionTool(_FUNCTION, _ABOUT, {"type": "object", "properties": {_NAME: _PROPERTY}})
_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_MAX_CHARS: Final = 1 << 20
_DIGITS: Final = re.compile(r"\d+")
_SHOWN_LIST: Final = re.compile("""['"]type['"]: ?['"]th""")
_EFFORTS: Final[tuple[Effort, ...]] = ("none", "high")


def probe(template: ChatTemplate) -> TemplateCapabilities:
    """Returns the capabilities of a template, which writes some thirty short conversations for that.

    Raises:
        BrokenTemplateError: it does not even write a user's text.
    """
    return _Probe(template).capabilities()


class _Probe:
    """A template, with the forms in which it takes the absence of tools, arguments and thinking."""

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

    def capabilities(self) -> TemplateCapabilities:
        turns: list[Turn] = [_USER, self._call(_VALUE), _RETURNED]
        both = self._call(_VALUE, _OTHER)
        alike = self._rounds_alike()
        text_beside_calls = self._placement(TEXT_PLACEMENTS[:-1], [_RETURNED])
        return TemplateCapabilities(
            system=self._writes([_USER], _SYSTEM, system=_SYSTEM)
            and (not self._writes(turns, _RESULT) or self._writes(turns, _SYSTEM, system=_SYSTEM)),
            users_in_a_row=self._writes([_USER, _AGAIN], _FIRST, _SECOND),
            assistant_first=self._writes([_ANSWERED, _AGAIN], _ANSWER, _SECOND),
            no_user=self._writes([_ANSWERED], _ANSWER),
            empty_answer=self._writes([_USER, AssistantTurn(), _AGAIN], _FIRST, _SECOND),
            user_after_result=self._writes([*turns, _AGAIN], _RESULT, _SECOND),
            tools=self._writes([_USER], _FUNCTION, _ABOUT, _NAME, tools=True),
            no_tools=self._no_tools,
            calls=self._writes_arguments() and alike,
            results=self._writes(turns, _RESULT) and alike,
            parallel=self._writes(
                [_USER, both, _RETURNED, _OTHER_RETURNED], _VALUE, _OTHER, _RESULT, _OTHER_RESULT
            ),
            arguments=self._arguments,
            loose_arguments=self._writes([_USER, _calling(f'["{_VALUE}"]'), _RETURNED], _VALUE),
            text_beside_calls=text_beside_calls,
            old_text_beside_calls=self._placement(
                (text_beside_calls, *TEXT_PLACEMENTS[:-1]),
                [_RETURNED, AssistantTurn(_OTHER), _AGAIN],
                _OTHER,
                _SECOND,
            ),
            thinking_placement=self._thinking_placement,
            answer_last=self._answers_again(),
            reasoning=self._written([_USER], effort="high") != self._written([_USER]),
        )

    def _writes_arguments(self) -> bool:
        """Returns whether a call's arguments are written, and not as Python shows a dictionary."""
        written = self._written([_USER, self._call(_VALUE), _RETURNED])
        return _NAME in written and _VALUE in written and f"{{'{_NAME}'" not in written

    def _writes_thinking(self, form: ThinkingPlacement) -> bool:
        """Returns whether thinking, given in this form, is written before a call, and not as a Python list.

        Keeps the form for all later conversations.
        """
        self._thinking_placement = form
        written = self._written([_USER, self._thinking(""), _RETURNED], effort="high")
        words = (_THINKING, _VALUE, _RESULT)
        return all(word in written for word in words) and not _SHOWN_LIST.search(written)

    def _rounds_alike(self) -> bool:
        """Returns whether a second round is spelled like the first: some templates begin no second list."""
        turns: list[Turn] = [_USER, self._call(_VALUE), _RETURNED, _ANSWERED]
        _, *rounds = self._written([*turns, *turns, _USER]).split(_FIRST)
        return len(rounds) < 2 or _DIGITS.sub("0", rounds[0]) == _DIGITS.sub("0", rounds[1])

    def _placement(
        self, placements: tuple[TextPlacement, ...], after: list[Turn], *words: str
    ) -> TextPlacement:
        """Returns the first placement of a text next to a call that puts it before the call and the rest."""
        for placement in placements:
            if self._writes_in_order(placement, after, _ANSWER, _VALUE, _RESULT, *words):
                return placement
        return "apart"

    def _writes_in_order(self, placement: TextPlacement, after: list[Turn], *words: str) -> bool:
        """Returns whether all words are written in order, for every effort, with thinking and without."""
        for effort, thinking in product(_EFFORTS, ("", _THINKING)):
            turns = [_USER, *place_text(self._thinking(_ANSWER, thinking), placement), *after]
            written = self._written(turns, effort=effort)
            places = [written.find(word) for word in words]
            if places[0] < 0 or places != sorted(places):
                return False
        return True

    def _answers_again(self) -> bool:
        """Returns whether the same prompt for an answer follows a last answer as follows a last question."""
        _, _, asked = self._written([_USER]).rpartition(_FIRST)
        _, _, answered = self._written([_USER, _ANSWERED]).rpartition(_ANSWER)
        _, _, bare = self._written([_USER], add_generation_prompt=False).rpartition(_FIRST)
        prompt = asked.removeprefix(bare)
        return answered.endswith(asked) or (prompt != "" and answered.endswith(prompt))

    def _call(self, *values: str) -> AssistantTurn:
        if self._arguments == "text":
            return _calling(*(f'{{"{_NAME}": "{value}"}}' for value in values))
        return _calling(*(dict[str, object]({_NAME: value}) for value in values))

    def _thinking(self, text: str, thinking: str = _THINKING) -> AssistantTurn:
        return replace(self._call(_VALUE), text=text, reasoning=thinking)

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
        """Returns the template's output for a conversation; "" if it fails."""
        conversation = Conversation(system, tuple(turns), (_TOOL,) if tools else (), self._thinking_placement)
        given = reasoning_variables(effort, self._template.source) | variables
        if self._no_tools == "empty" and not tools:
            given["tools"] = []
        try:
            return plain(self._template.write(conversation, given, _NOW, _MAX_CHARS))
        except Refusal:
            return ""


def _calling(*arguments: dict[str, object] | str) -> AssistantTurn:
    return AssistantTurn(
        calls=tuple(ToolCall(f"call{n:05}", _FUNCTION, value) for n, value in enumerate(arguments, start=1))
    )
