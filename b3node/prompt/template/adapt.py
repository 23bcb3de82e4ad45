"""Adapts a conversation to the capabilities of a template without losing any of it.

Each step makes up for one missing capability (see `capabilities`) and changes nothing else, so a conversation
that suits its template is written exactly as its author meant. The steps are ordered: calls are brought into
shape before they may become text, results before neighbours are merged, and the system text last, because it
may have to go into the first user turn.

Where a template has no place for functions, text takes over: the functions are listed in the system text,
calls are written as the model spells them, a result stands between `<tool_response>` and `</tool_response>`
in a user turn. Where a model has no spelling of its own, a call is a JSON object between `<tool_call>` and
`</tool_call>` (`GENERIC`): most families with JSON calls were trained on that. A template that knows neither
functions nor calls gets all three that way, even if it would write a result's turn like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from b3node.contract.request import FunctionTool, TextPart
from b3node.dialects.dialect import GENERIC, Calls
from b3node.prompt.template.call_writer import write_calls
from b3node.prompt.template.capabilities import TemplateCapabilities
from b3node.prompt.template.conversation import (
    PARAGRAPH,
    AssistantTurn,
    Conversation,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.template.messages import function
from b3node.prompt.template.sandbox import to_json
from b3node.prompt.template.text_beside_calls import SILENT_USER, TextPlacement, place_text
from b3node.prompt.tokens.provenance import client, client_value

FUNCTION_LIST: Final = "You can call the functions described here, one JSON object a line:\n\n{functions}"
"""The list of functions, if the template has no place for them."""
GENERIC_CALLS: Final = (
    "To call one, write its name and arguments as a JSON object between tags, nothing after it:\n"
    '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
)
"""The explanation of calls, for a model whose own spelling is not known."""
OWN_CALLS: Final = "To call a function, write it like this, with its own name and arguments:\n{example}"
"""The same for a model with a known spelling, although its template does not mention functions."""
RESULT_TAGS: Final = "The results come back between <tool_response> and </tool_response>."

_EXAMPLE: Final = ToolCall("0", "NAME", {"ARGUMENT": "VALUE"})

_BLANK: Final = " "
"""The text of an empty assistant turn, for templates that insist on one."""


def adapt(
    conversation: Conversation,
    capabilities: TemplateCapabilities,
    calls: Calls = GENERIC,
    *,
    explain_calls: bool = False,
) -> Conversation:
    """Returns a conversation with the same content that a template with these capabilities can write.

    Args:
        conversation: the conversation; not changed.
        capabilities: the template's.
        calls: the model's spelling of calls, where the template does not write them.
        explain_calls: whether the system text explains that spelling, even if the template lists functions.
    """
    turns = _shaped(conversation.turns, capabilities, calls)
    if capabilities.calls and not capabilities.parallel:
        turns = _one_call_a_turn(turns)
    if _results_are_text(capabilities):
        turns = _results_as_text(turns)
    system = conversation.system
    if conversation.tools and (explain_calls or not capabilities.tools):
        texts = (system, _function_text(conversation.tools, capabilities, calls))
        system = PARAGRAPH.join(text for text in texts if text)
    if system and not capabilities.system:
        turns = _with_system(turns, system)
        system = ""
    tools = conversation.tools if capabilities.tools else ()
    return Conversation(system, tuple(_ordered(turns, capabilities)), tools, capabilities.thinking_placement)


def _shaped(turns: tuple[Turn, ...], capabilities: TemplateCapabilities, calls: Calls) -> Iterator[Turn]:
    """Yields the turns, calls in the right form or as text, text next to calls where it can be written."""
    last = max((index for index, turn in enumerate(turns) if isinstance(turn, UserTurn)), default=-1)
    for index, turn in enumerate(turns):
        if isinstance(turn, AssistantTurn):
            old = index <= last
            placement = capabilities.old_text_beside_calls if old else capabilities.text_beside_calls
            yield from _assistant(turn, capabilities, placement, calls)
        else:
            yield turn


def _assistant(
    turn: AssistantTurn, capabilities: TemplateCapabilities, placement: TextPlacement, calls: Calls
) -> tuple[Turn, ...]:
    if not turn.calls:
        return (turn if turn.text or capabilities.empty_answer else replace(turn, text=_BLANK),)
    if not capabilities.calls:
        marked = [
            ToolCall(each.id, client(each.name), _client_arguments(each.arguments)) for each in turn.calls
        ]
        return (AssistantTurn(turn.text, turn.reasoning, written_calls=write_calls(marked, calls)),)
    suited = tuple(_with_suited_arguments(call, capabilities) for call in turn.calls)
    return place_text(replace(turn, calls=suited), placement)


def _with_suited_arguments(call: ToolCall, capabilities: TemplateCapabilities) -> ToolCall:
    if isinstance(call.arguments, str):
        suits = capabilities.loose_arguments or capabilities.arguments == "text"
        return call if suits else replace(call, arguments={"arguments": call.arguments})
    return replace(call, arguments=to_json(call.arguments)) if capabilities.arguments == "text" else call


def _one_call_a_turn(turns: Iterator[Turn]) -> Iterator[Turn]:
    """Yields the turns, every call in a turn of its own, its result right after it."""
    for turn in turns:
        if not (isinstance(turn, AssistantTurn) and len(turn.calls) > 1):
            yield turn
            continue
        for index, call in enumerate(turn.calls):
            yield AssistantTurn(calls=(call,)) if index else replace(turn, calls=(call,))
            yield next(turns)  # results stand in the order of the calls (see `conversation`)


def _results_as_text(turns: Iterator[Turn]) -> Iterator[Turn]:
    for is_result, run in groupby(turns, key=lambda turn: isinstance(turn, ToolTurn)):
        if is_result:
            texts = (
                f"<tool_response>\n{turn.text}\n</tool_response>"
                for turn in run
                if isinstance(turn, ToolTurn)
            )
            yield UserTurn((TextPart("\n".join(texts)),))
        else:
            yield from run


def _client_arguments(arguments: dict[str, object] | str) -> dict[str, object] | str:
    """Returns arguments in the alphabet of a client's text."""
    if isinstance(arguments, str):
        return client(arguments)
    return {client(name): client_value(value) for name, value in arguments.items()}


def _function_text(tools: tuple[FunctionTool, ...], capabilities: TemplateCapabilities, calls: Calls) -> str:
    """Returns the text about functions that the template leaves out."""
    functions = "\n".join(to_json(function(tool)) for tool in tools)
    listed = "" if capabilities.tools else FUNCTION_LIST.format(functions=functions) + PARAGRAPH
    how = GENERIC_CALLS if calls == GENERIC else OWN_CALLS.format(example=write_calls([_EXAMPLE], calls))
    return listed + how + ("\n" + RESULT_TAGS if _results_are_text(capabilities) else "")


def _results_are_text(capabilities: TemplateCapabilities) -> bool:
    return not capabilities.results or not (capabilities.tools or capabilities.calls)


def _with_system(turns: Iterator[Turn], system: str) -> Iterator[Turn]:
    """Yields the turns, the system text at the start of the first one, or in a user turn before that."""
    opening = UserTurn((TextPart(system),))
    first = next(turns, None)
    if isinstance(first, UserTurn):
        yield _merged(opening, first)
    else:
        yield opening
        yield from () if first is None else (first,)
    yield from turns


def _ordered(turns: Iterator[Turn], capabilities: TemplateCapabilities) -> list[Turn]:
    """Returns turns in an order that the template takes: users merged, empty turns where it needs one."""
    ordered: list[Turn] = []
    for turn in turns:
        before = ordered[-1] if ordered else None
        if not isinstance(turn, UserTurn):
            ordered.append(turn)
        elif isinstance(before, UserTurn) and not capabilities.users_in_a_row:
            ordered[-1] = _merged(before, turn)
        elif isinstance(before, ToolTurn) and not capabilities.user_after_result:
            ordered += [AssistantTurn("" if capabilities.empty_answer else _BLANK), turn]
        else:
            ordered.append(turn)
    if ordered and isinstance(ordered[-1], AssistantTurn) and not capabilities.answer_last:
        ordered.append(SILENT_USER)
    return [SILENT_USER, *ordered] if _wants_user_first(ordered, capabilities) else ordered


def _wants_user_first(turns: list[Turn], capabilities: TemplateCapabilities) -> bool:
    if any(isinstance(turn, UserTurn) for turn in turns):
        return not (capabilities.assistant_first or isinstance(turns[0], UserTurn))
    return not (capabilities.assistant_first and capabilities.no_user)


def _merged(first: UserTurn, second: UserTurn) -> UserTurn:
    """Returns both turns' content in one; texts that meet become two paragraphs."""
    *head, last = first.content
    next_, *tail = second.content
    if isinstance(last, TextPart) and isinstance(next_, TextPart):
        return UserTurn((*head, TextPart(last.text + PARAGRAPH + next_.text), *tail))
    return UserTurn(first.content + second.content)
