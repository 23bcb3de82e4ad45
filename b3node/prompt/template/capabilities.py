"""The capabilities of a chat template as a value; `prompt.probe` finds them out."""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.prompt.template.conversation import ThinkingPlacement
from b3node.prompt.template.text_beside_calls import TextPlacement

ArgumentsForm = Literal["mapping", "text"]


class TemplateCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The constructs that a template writes. The defaults are those of the least capable one."""

    system: bool = False
    """A system message, whatever the conversation ends with."""
    users_in_a_row: bool = False
    """Two user turns without anything between them."""
    assistant_first: bool = False
    """A conversation that the assistant begins."""
    no_user: bool = False
    """A conversation without any user turn."""
    empty_answer: bool = False
    """An assistant turn with nothing in it, without failing."""
    user_after_result: bool = False
    """A user turn right after a tool's result."""
    tools: bool = False
    """Declared functions."""
    no_tools: Literal["none", "empty"] = "none"
    """The value of `tools` if there are no functions: None, or an empty list where None fails."""
    calls: bool = False
    """An assistant turn's calls, with their arguments."""
    results: bool = False
    """Tools' results, in turns of their own."""
    parallel: bool = False
    """Both of two calls in one turn, and their results."""
    arguments: ArgumentsForm = "mapping"
    """The form in which it takes a call's arguments."""
    loose_arguments: bool = False
    """Arguments that are text, even if it takes mappings."""
    text_beside_calls: TextPlacement = "apart"
    """Placement of a text next to calls, after the last user turn."""
    old_text_beside_calls: TextPlacement = "apart"
    """The same, before the last user turn."""
    thinking_placement: ThinkingPlacement = "field"
    """Where it looks for a turn's thinking; "field" if it writes none at all."""
    answer_last: bool = False
    """A prompt for a new answer after a conversation that ends with one."""
    reasoning: bool = False
    """Different output with reasoning asked for than without."""
