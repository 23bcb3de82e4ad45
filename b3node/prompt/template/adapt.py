"""Bends a conversation to what a template can write, and loses nothing of it.

Each step answers one missing ability (see `abilities`) and leaves alone what needs no bending, so a
conversation that suits its template is written exactly as its author meant. The steps are ordered: calls are
brought into shape before they may become text, results before neighbours are merged, and the system text
last, because it may have to go into the first user turn.

What a template cannot say of functions is said in text: the functions are listed in the system text, calls are
written as the model spells them, a result stands between `<tool_response>` and `</tool_response>` in a user turn.
Where a model has no spelling of its own, a call is a JSON object between `<tool_call>` and `</tool_call>`
(`GENERIC`), which is what most families with JSON calls were trained on. A template that knows neither functions nor
calls says all three that way, even if it would write a result's turn like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from b3node.contract.request import FunctionTool, TextPart
from b3node.dialects.dialect import GENERIC as SPELLING, Calls
from b3node.prompt.template.call_writer import spell
from b3node.prompt.template.capabilities import Abilities
from b3node.prompt.template.conversation import (
    PARAGRAPH,
    AssistantTurn,
    Call,
    Conversation,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.template.messages import function
from b3node.prompt.template.sandbox import to_json
from b3node.prompt.template.text_beside_calls import SILENT_USER, Aside, told
from b3node.prompt.tokens.provenance import client, client_value

LISTED: Final = "You can call the functions described here, one JSON object a line:\n\n{functions}"
"""What a model is told of functions if its template has no place for them."""
GENERIC: Final = (
    "To call one, write its name and arguments as a JSON object between tags, nothing after it:\n"
    '<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'
)
"""How to call, for a model of which nothing says how it does."""
OWN: Final = "To call a function, write it like this, with its own name and arguments:\n{example}"
"""The same for a model that has a spelling of its own, although its template does not tell of functions."""
RESULTS: Final = "The results come back between <tool_response> and </tool_response>."

_EXAMPLE: Final = Call("0", "NAME", {"ARGUMENT": "VALUE"})

_BLANK: Final = " "
"""The text of an assistant turn that says nothing, for templates that insist on one."""


def fit(
    conversation: Conversation, able: Abilities, calls: Calls = SPELLING, *, explained: bool = False
) -> Conversation:
    """A conversation that says the same and that a template with these abilities can write.

    `calls` is how the model spells calls, where the template does not write them; with `explained` the model is told
    so, even if the template tells it of functions.
    """
    turns = _shaped(conversation.turns, able, calls)
    if able.calls and not able.parallel:
        turns = _one_call_a_turn(turns)
    if _results_are_text(able):
        turns = _results_as_text(turns)
    system = conversation.system
    if conversation.tools and (explained or not able.tools):
        system = PARAGRAPH.join(text for text in (system, _told(conversation.tools, able, calls)) if text)
    if system and not able.system:
        turns = _with_system(turns, system)
        system = ""
    tools = conversation.tools if able.tools else ()
    return Conversation(system, tuple(_ordered(turns, able)), tools, able.thoughts)


def _shaped(turns: tuple[Turn, ...], able: Abilities, calls: Calls) -> Iterator[Turn]:
    """Assistant turns whose calls have the right form, or are text; what is said beside calls told as it can be."""
    last = max((index for index, turn in enumerate(turns) if isinstance(turn, UserTurn)), default=-1)
    for index, turn in enumerate(turns):
        if isinstance(turn, AssistantTurn):
            yield from _assistant(turn, able, able.aside if index > last else able.old_aside, calls)
        else:
            yield turn


def _assistant(turn: AssistantTurn, able: Abilities, aside: Aside, calls: Calls) -> tuple[Turn, ...]:
    if not turn.calls:
        return (turn if turn.text or able.empty_answer else replace(turn, text=_BLANK),)
    if not able.calls:
        ours = [Call(call.id, client(call.name), _clients(call.arguments)) for call in turn.calls]
        return (AssistantTurn(turn.text, turn.reasoning, spelled=spell(ours, calls)),)
    return told(replace(turn, calls=tuple(_formed(call, able) for call in turn.calls)), aside)


def _formed(call: Call, able: Abilities) -> Call:
    if isinstance(call.arguments, str):
        suits = able.loose_arguments or able.arguments == "text"
        return call if suits else replace(call, arguments={"arguments": call.arguments})
    return replace(call, arguments=to_json(call.arguments)) if able.arguments == "text" else call


def _one_call_a_turn(turns: Iterator[Turn]) -> Iterator[Turn]:
    """Every call in a turn of its own, its result right after it."""
    for turn in turns:
        if not (isinstance(turn, AssistantTurn) and len(turn.calls) > 1):
            yield turn
            continue
        for index, call in enumerate(turn.calls):
            yield AssistantTurn(calls=(call,)) if index else replace(turn, calls=(call,))
            yield next(turns)  # results stand in the order of the calls (see `turns`)


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


def _clients(arguments: dict[str, object] | str) -> dict[str, object] | str:
    """Arguments in the alphabet of a client's text."""
    if isinstance(arguments, str):
        return client(arguments)
    return {client(name): client_value(value) for name, value in arguments.items()}


def _told(tools: tuple[FunctionTool, ...], able: Abilities, calls: Calls) -> str:
    """What the template does not say of functions."""
    functions = "\n".join(to_json(function(tool)) for tool in tools)
    listed = "" if able.tools else LISTED.format(functions=functions) + PARAGRAPH
    how = GENERIC if calls == SPELLING else OWN.format(example=spell([_EXAMPLE], calls))
    return listed + how + ("\n" + RESULTS if _results_are_text(able) else "")


def _results_are_text(able: Abilities) -> bool:
    return not able.results or not (able.tools or able.calls)


def _with_system(turns: Iterator[Turn], system: str) -> Iterator[Turn]:
    """The system text at the start of the first turn, which becomes a user turn if it was none."""
    told = UserTurn((TextPart(system),))
    first = next(turns, None)
    if isinstance(first, UserTurn):
        yield _merged(told, first)
    else:
        yield told
        yield from () if first is None else (first,)
    yield from turns


def _ordered(turns: Iterator[Turn], able: Abilities) -> list[Turn]:
    """Turns in an order that the template takes: users merged, and empty turns where it insists on one."""
    ordered: list[Turn] = []
    for turn in turns:
        before = ordered[-1] if ordered else None
        if not isinstance(turn, UserTurn):
            ordered.append(turn)
        elif isinstance(before, UserTurn) and not able.users_in_a_row:
            ordered[-1] = _merged(before, turn)
        elif isinstance(before, ToolTurn) and not able.user_after_result:
            ordered += [AssistantTurn("" if able.empty_answer else _BLANK), turn]
        else:
            ordered.append(turn)
    if ordered and isinstance(ordered[-1], AssistantTurn) and not able.answer_last:
        ordered.append(SILENT_USER)
    return [SILENT_USER, *ordered] if _wants_user_first(ordered, able) else ordered


def _wants_user_first(turns: list[Turn], able: Abilities) -> bool:
    if any(isinstance(turn, UserTurn) for turn in turns):
        return not (able.assistant_first or isinstance(turns[0], UserTurn))
    return not (able.assistant_first and able.no_user)


def _merged(first: UserTurn, second: UserTurn) -> UserTurn:
    """Both turns' content in one; texts that meet become two paragraphs."""
    *head, last = first.content
    next_, *tail = second.content
    if isinstance(last, TextPart) and isinstance(next_, TextPart):
        return UserTurn((*head, TextPart(last.text + PARAGRAPH + next_.text), *tail))
    return UserTurn(first.content + second.content)
