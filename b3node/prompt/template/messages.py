"""A conversation as the plain JSON that chat templates read: OpenAI's chat messages and tools.

Templates look for different names, so each thing stands under every name in use: thinking under
`reasoning_content`, `reasoning` and `thinking`, a tool's result under `content` next to the function's
`name`. A missing thing is absent, never None and never an empty list: templates print `None`, and some refuse
an empty `tool_calls`. `content` is a string, except in assistant turns of templates that want the thinking in
it.

Everything that a client wrote is in the private alphabet (see `provenance`); roles, types and ids are ours.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.request import FunctionTool, ImagePart
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Conversation,
    ThinkingPlacement,
    ToolCall,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.tokens.provenance import IMAGE, client, client_schema, client_value

Json = dict[str, object]

NO_PARAMETERS: Final[Json] = {"type": "object", "properties": {}}
"""The schema of a function that takes no arguments."""
_PARTS: Final = {
    "chunks": (("thinking", "thinking"), ("text", "text")),
    "blocks": (("thoughts", "text"), ("response", "text")),
}
"""The types of a thinking part and of a text part, each with the member that has the words."""


def messages(conversation: Conversation) -> list[Json]:
    """Returns the conversation's messages, a system message first if there is a system text."""
    system: list[Json] = [{"role": "system", "content": client(conversation.system)}]
    thinking_placement = _placement(conversation)
    return (system if conversation.system else []) + [
        _message(turn, thinking_placement) for turn in conversation.turns
    ]


def tools(declared: tuple[FunctionTool, ...]) -> list[Json] | None:
    """Returns the declared functions; None if there are none, as templates expect.

    `description` and `parameters` are always there: templates print them without asking.
    """
    return [{"type": "function", "function": _function(tool)} for tool in declared] or None


def function(tool: FunctionTool) -> Json:
    """Returns a declared function as JSON, in the client's own characters."""
    return {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters or NO_PARAMETERS,
    }


def _function(tool: FunctionTool) -> Json:
    members = function(tool)
    return {
        name: client_schema(value) if name == "parameters" else client_value(value)
        for name, value in members.items()
    }


def _placement(conversation: Conversation) -> ThinkingPlacement:
    """Returns the template's placement of thinking; "field" (plain strings) if no turn has any."""
    answers = (turn for turn in conversation.turns if isinstance(turn, AssistantTurn))
    return conversation.thinking_placement if any(turn.reasoning for turn in answers) else "field"


def _message(turn: Turn, thinking_placement: ThinkingPlacement) -> Json:
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": _content(turn)}
    if isinstance(turn, ToolTurn):
        return {
            "role": "tool",
            "tool_call_id": turn.call_id,
            "name": client(turn.name),
            "content": client(turn.text),
        }
    return _assistant(turn, thinking_placement)


def _content(turn: UserTurn) -> str:
    return "\n".join(IMAGE if isinstance(part, ImagePart) else client(part.text) for part in turn.content)


def _assistant(turn: AssistantTurn, thinking_placement: ThinkingPlacement) -> Json:
    message: Json = {"role": "assistant", "content": _assistant_content(turn, thinking_placement)}
    if turn.reasoning and thinking_placement == "field":
        thinking = client(turn.reasoning)
        message |= {"reasoning_content": thinking, "reasoning": thinking, "thinking": thinking}
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    return message


def _assistant_content(turn: AssistantTurn, thinking_placement: ThinkingPlacement) -> object:
    """Returns a turn's content: its text, or its thinking and its text as parts."""
    text = client(turn.text)
    text += "\n" + turn.written_calls if text and turn.written_calls else turn.written_calls
    if thinking_placement == "field":
        return text
    parts = [
        {"type": kind, member: words}
        for (kind, member), words in zip(
            _PARTS[thinking_placement], (client(turn.reasoning), text), strict=True
        )
        if words
    ]
    return {"blocks": parts} if thinking_placement == "blocks" else parts


def _call(call: ToolCall) -> Json:
    function = {"name": client(call.name), "arguments": client_value(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
