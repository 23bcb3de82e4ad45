"""A conversation as the plain JSON that chat templates read: OpenAI's chat messages and tools.

Templates differ in what they look for, so each thing stands under every name in use: a thought under
`reasoning_content`, `reasoning` and `thinking`, a tool's result under `content` with the function's `name`
beside it. What is not there is absent, never None and never an empty list: templates print `None`, and some
refuse an empty `tool_calls`. `content` is a string, but for assistant turns of templates that want thoughts in it.

Everything that a client wrote is in the private alphabet (see `provenance`); roles, types and ids are ours.
"""

from __future__ import annotations

from typing import Final

from b3node.contract.request import FunctionTool, ImagePart
from b3node.prompt.template.conversation import (
    AssistantTurn,
    Call,
    Conversation,
    Thoughts,
    ToolTurn,
    Turn,
    UserTurn,
)
from b3node.prompt.tokens.provenance import IMAGE, client, client_value, schema

Json = dict[str, object]

NO_PARAMETERS: Final[Json] = {"type": "object", "properties": {}}
"""The schema of a function that takes no arguments."""
_PARTS: Final = {
    "chunks": (("thinking", "thinking"), ("text", "text")),
    "blocks": (("thoughts", "text"), ("response", "text")),
}
"""The types of a thought's and of a text's part, each with the member that has the words."""


def messages(conversation: Conversation) -> list[Json]:
    """The conversation's messages, a system message first if there is a system text."""
    system: list[Json] = [{"role": "system", "content": client(conversation.system)}]
    thoughts = _needed(conversation)
    return (system if conversation.system else []) + [_message(turn, thoughts) for turn in conversation.turns]


def tools(declared: tuple[FunctionTool, ...]) -> list[Json] | None:
    """The declared functions; None if there are none, as templates expect.

    `description` and `parameters` are always there: templates print them without asking.
    """
    return [{"type": "function", "function": _function(tool)} for tool in declared] or None


def function(tool: FunctionTool) -> Json:
    """A declared function as JSON, in the client's own characters."""
    return {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": tool.parameters or NO_PARAMETERS,
    }


def _function(tool: FunctionTool) -> Json:
    members = function(tool)
    return {
        name: schema(value) if name == "parameters" else client_value(value)
        for name, value in members.items()
    }


def _needed(conversation: Conversation) -> Thoughts:
    """The form of the assistant's content: the template's for thoughts where there are any, else plain strings."""
    said = (turn for turn in conversation.turns if isinstance(turn, AssistantTurn))
    return conversation.thoughts if any(turn.reasoning for turn in said) else "field"


def _message(turn: Turn, thoughts: Thoughts) -> Json:
    if isinstance(turn, UserTurn):
        return {"role": "user", "content": _content(turn)}
    if isinstance(turn, ToolTurn):
        return {
            "role": "tool",
            "tool_call_id": turn.call_id,
            "name": client(turn.name),
            "content": client(turn.text),
        }
    return _assistant(turn, thoughts)


def _content(turn: UserTurn) -> str:
    return "\n".join(IMAGE if isinstance(part, ImagePart) else client(part.text) for part in turn.content)


def _assistant(turn: AssistantTurn, thoughts: Thoughts) -> Json:
    message: Json = {"role": "assistant", "content": _said(turn, thoughts)}
    if turn.reasoning and thoughts == "field":
        thought = client(turn.reasoning)
        message |= {"reasoning_content": thought, "reasoning": thought, "thinking": thought}
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    return message


def _said(turn: AssistantTurn, thoughts: Thoughts) -> object:
    """A turn's content: its text, or its thought and its text as parts."""
    text = client(turn.text)
    text += "\n" + turn.spelled if text and turn.spelled else turn.spelled
    if thoughts == "field":
        return text
    parts = [
        {"type": kind, member: words}
        for (kind, member), words in zip(_PARTS[thoughts], (client(turn.reasoning), text), strict=True)
        if words
    ]
    return {"blocks": parts} if thoughts == "blocks" else parts


def _call(call: Call) -> Json:
    function = {"name": client(call.name), "arguments": client_value(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}
