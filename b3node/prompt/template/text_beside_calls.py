"""What a model said beside its calls, for templates that have no place for it there.

Many templates write either a turn's text or its calls, some the text behind the calls, some refuse a text beside a
thought. The text is then told in another way, and nothing of it is lost.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from b3node.contract.request import TextPart
from b3node.prompt.template.conversation import PARAGRAPH, AssistantTurn, Turn, UserTurn

Aside = Literal["text", "thought", "turn", "apart"]
"""`text`: where it is. `thought`: at the end of the thought. `turn`: in a turn of its own before the calls. `apart`: the
same, and an empty user turn between the two, for templates that count turns."""

WAYS: Final[tuple[Aside, ...]] = ("text", "thought", "turn", "apart")
"""From the one that says it best to the one that always can be written."""

SILENT_USER: Final = UserTurn((TextPart(""),))
"""A user who says nothing, where a template insists on one."""


def told(turn: AssistantTurn, way: Aside) -> tuple[Turn, ...]:
    """A turn that calls, its text told in `way`."""
    if not turn.text or way == "text":
        return (turn,)
    if way == "thought":
        thought = PARAGRAPH.join(words for words in (turn.reasoning, turn.text) if words)
        return (replace(turn, text="", reasoning=thought),)
    between = (SILENT_USER,) if way == "apart" else ()
    return (AssistantTurn(turn.text), *between, replace(turn, text=""))
