"""Abilities of a chat template, as a value: what it writes when it is asked to (found out in `prompt.probe`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from b3node.prompt.template.conversation import Thoughts
from b3node.prompt.template.text_beside_calls import Aside

Arguments = Literal["mapping", "text"]


class Abilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a template writes when it is asked to. The defaults are those of the least able one."""

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
    """How it wants to be told that there are no functions: None, or an empty list where None fails."""
    calls: bool = False
    """An assistant turn's calls, with their arguments."""
    results: bool = False
    """Tools' results, in turns of their own."""
    parallel: bool = False
    """Both of two calls in one turn, and their results."""
    arguments: Arguments = "mapping"
    """The form in which it takes a call's arguments."""
    loose_arguments: bool = False
    """Arguments that are text, even if it takes mappings."""
    aside: Aside = "apart"
    """How it can be told what was said beside calls, after the last user turn."""
    old_aside: Aside = "apart"
    """The same, before that."""
    thoughts: Thoughts = "field"
    """Where it looks for a turn's thought; "field" if it writes none at all."""
    answer_last: bool = False
    """A prompt for a new answer after a conversation that ends with one."""
    reasoning: bool = False
    """Something else if it is asked for reasoning than if not."""
